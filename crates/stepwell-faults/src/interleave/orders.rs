//! Orders in which the statements of two sides can follow each other.

use std::collections::BTreeSet;

use crate::wire::draw;

/// Up to so many orders, all are tried.
const ALL_MAX: u128 = 1_000;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first.
    One,
    /// The second.
    Other,
}

impl Side {
    /// The one across.
    #[must_use]
    pub const fn across(self) -> Self {
        match self {
            Self::One => Self::Other,
            Self::Other => Self::One,
        }
    }
}

/// Who goes, statement by statement. Where it ends, whoever can goes on.
pub type Order = Vec<Side>;

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All orders of few; of many, those with at most two switches and so many by chance.
    Sample(usize),
    /// So many by chance, and no others.
    ByChance(usize),
    /// All orders, however many.
    All,
}

impl Effort {
    /// What an environment variable says: `all`, or how many are drawn. `usual` if it is not set.
    ///
    /// # Panics
    /// If it says anything else.
    #[must_use]
    pub fn from_env(variable: &str, usual: Self) -> Self {
        match std::env::var(variable).as_deref() {
            Err(_) => usual,
            Ok("all") => Self::All,
            Ok(n) => {
                let number = n.parse().ok();
                Self::Sample(number.unwrap_or_else(|| panic!("{variable}: `all` or a number")))
            }
        }
    }
}

/// Orders of `n_one` and `n_other` statements.
pub fn orders(
    n_one: usize,
    n_other: usize,
    effort: Effort,
    seed: u64,
) -> Box<dyn Iterator<Item = Order>> {
    match effort {
        Effort::Sample(n) if n_orders(n_one, n_other) > ALL_MAX => {
            let mut chosen = by_chance(n_one, n_other, n, seed);
            chosen.extend(with_few_switches(n_one, n_other));
            Box::new(chosen.into_iter())
        }
        Effort::ByChance(n) => Box::new(by_chance(n_one, n_other, n, seed).into_iter()),
        _ => Box::new(all(n_one, n_other)),
    }
}

/// Those with at most two switches.
fn with_few_switches(n_one: usize, n_other: usize) -> Vec<Order> {
    let mut orders = Vec::with_capacity(n_one + n_other + 2);
    for (first, n_first, n_second) in [(Side::One, n_one, n_other), (Side::Other, n_other, n_one)] {
        for n_before in 0..=n_first {
            let mut order = vec![first; n_before];
            order.extend(vec![first.across(); n_second]);
            order.extend(vec![first; n_first - n_before]);
            orders.push(order);
        }
    }
    orders
}

fn by_chance(n_one: usize, n_other: usize, n: usize, seed: u64) -> BTreeSet<Order> {
    let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let order = |ix| by_chance_once(n_one, n_other, ix, &mut chance);
    (0..n).map(order).collect()
}

fn by_chance_once(n_one: usize, n_other: usize, ix: usize, chance: &mut u64) -> Order {
    // Long stretches reach states that a shuffle never does, and the other way round.
    let stretch_max = 1 + ix % 6;
    // By their numbers the two end together; by a coin the shorter one ends in the midst.
    let is_by_coin = ix.is_multiple_of(2);
    let (mut left_one, mut left_other) = (n_one, n_other);
    let mut order = Vec::with_capacity(n_one + n_other);
    while left_one + left_other > 0 {
        let stretch = 1 + below(chance, stretch_max);
        let is_open = left_one > 0 && left_other > 0;
        let is_one = if is_by_coin && is_open {
            below(chance, 2) == 0
        } else {
            below(chance, left_one + left_other) < left_one
        };
        let (side, left) =
            if is_one { (Side::One, &mut left_one) } else { (Side::Other, &mut left_other) };
        let n = stretch.min(*left);
        *left -= n;
        order.extend(vec![side; n]);
    }
    order
}

fn below(chance: &mut u64, n: usize) -> usize {
    usize::try_from(draw(chance) >> 8).unwrap_or(0) % n.max(1)
}

/// How many orders there are: (n + m) over n.
fn n_orders(n_one: usize, n_other: usize) -> u128 {
    let mut n: u128 = 1;
    for ix in 1..=n_one.min(n_other) {
        let factor = (n_one.max(n_other) + ix) as u128;
        n = n.saturating_mul(factor) / ix as u128;
    }
    n
}

/// All orders, one after the other as they are asked for: there may be very many.
fn all(n_one: usize, n_other: usize) -> impl Iterator<Item = Order> {
    let mut first = vec![Side::One; n_one];
    first.extend(vec![Side::Other; n_other]);
    std::iter::successors(Some(first), next)
}

/// The next order of the same statements, as words follow each other in a dictionary.
fn next(order: &Order) -> Option<Order> {
    let mut order = order.clone();
    let rise = order.windows(2).rposition(|pair| pair[0] < pair[1])?;
    let greater = order.iter().rposition(|side| *side > order[rise])?;
    order.swap(rise, greater);
    order[rise + 1..].reverse();
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n_switches(order: &Order) -> usize {
        order.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn few_statements_are_tried_in_all_orders() {
        assert_eq!(orders(3, 4, Effort::Sample(0), 1).count(), 35);
        assert_eq!(n_orders(3, 4), 35);
    }

    #[test]
    fn many_statements_are_tried_with_up_to_two_switches_and_by_chance() {
        let few: Vec<Order> = orders(20, 30, Effort::Sample(0), 1).collect();
        // Every place within one side for all of the other; the two ends are shared.
        assert_eq!(few.len(), 21 + 31 - 2);
        assert!(few.iter().all(|order| n_switches(order) <= 2));
        let more: Vec<Order> = orders(20, 30, Effort::Sample(40), 1).collect();
        assert!(more.len() > few.len() + 30);
        let is_whole = |order: &Order| {
            let n_one = order.iter().filter(|side| **side == Side::One).count();
            (n_one, order.len()) == (20, 50)
        };
        assert!(more.iter().all(is_whole));
        let again: Vec<Order> = orders(20, 30, Effort::Sample(40), 1).collect();
        assert_eq!(more, again, "a seed gives the same again");
    }
}
