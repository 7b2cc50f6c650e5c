//! Orders in which the statements of two sides can follow each other.

use super::explorer::Guide;

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

/// Who goes, statement by statement.
pub type Order = Vec<Side>;

/// Leads along an order. Who should go but cannot lets the other go; where the order ends, whoever
/// can goes on.
#[derive(Debug)]
pub struct Along<I>(pub I);

impl<I: Iterator<Item = Side>> Guide for Along<I> {
    fn choose(&mut self, can_go: [bool; 2]) -> Side {
        let wanted = self.0.next().unwrap_or(Side::One);
        if can_go[wanted as usize] { wanted } else { wanted.across() }
    }

    fn went(&mut self, _side: Side, _text: &str) {}
}

/// All orders, one after the other as they are asked for: there may be very many.
pub fn all(n_one: usize, n_other: usize) -> impl Iterator<Item = Order> {
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

    #[test]
    fn all_orders_of_three_and_four_statements_are_thirty_five() {
        let orders: std::collections::BTreeSet<Order> = all(3, 4).collect();
        assert_eq!(orders.len(), 35);
        let n_one = |order: &Order| order.iter().filter(|side| **side == Side::One).count();
        assert!(orders.iter().all(|order| (n_one(order), order.len()) == (3, 7)));
    }
}
