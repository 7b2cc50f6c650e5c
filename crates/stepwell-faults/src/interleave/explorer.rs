//! Every order of two calls that can matter.
//!
//! Orders that differ only in neighbours which [commute](Footprint::commutes_with) come to the
//! same, so one of them stands for all. They are found while they are played: what a call sends,
//! and when it has to wait, shows only then. Of two that can go, first the one goes, later the
//! other; a side that went first before need not go again until something happened that it could
//! tell (sleep sets, after Godefroid).

use super::footprint::{Footprint, Past};
use super::orders::Side;

/// Says who goes next, and hears who went.
pub trait Guide {
    /// Chooses one of those that can go; at least one can.
    fn choose(&mut self, can_go: [bool; 2]) -> Side;

    /// A statement went.
    fn went(&mut self, side: Side, text: &str);
}

/// Leads two calls through every order that can matter, one play after the other.
#[derive(Debug, Default)]
pub struct Explorer {
    /// The choices that the last play was led by.
    trail: Vec<Fork>,
    /// How many choices of this play are made.
    depth: usize,
    pasts: [Past; 2],
    is_begun: bool,
    is_repetition: bool,
    interruptions_max: Option<usize>,
    minds_time: bool,
}

/// A moment at which one of two went.
#[derive(Debug)]
struct Fork {
    can_go: [bool; 2],
    /// Whose next statement was tried at an earlier moment, and nobody could tell since then.
    asleep: [Option<Footprint>; 2],
    /// What was tried here.
    tried: [Option<Footprint>; 2],
    /// Who went before, and how often somebody was interrupted until then.
    before: Option<Side>,
    n_interruptions: usize,
    chosen: Side,
}

impl Fork {
    /// How often somebody was interrupted, this choice included.
    fn n_interruptions_after(&self) -> usize {
        let is_one =
            self.before == Some(self.chosen.across()) && self.can_go[self.chosen.across() as usize];
        self.n_interruptions + usize::from(is_one)
    }

    /// Who is asleep once the chosen side has gone.
    fn asleep_after(&self) -> [Option<Footprint>; 2] {
        let mut after = [None, None];
        let across = self.chosen.across() as usize;
        if let Some(gone) = &self.tried[self.chosen as usize] {
            let before = self.asleep[across].as_ref().or(self.tried[across].as_ref());
            after[across] = before.filter(|other| other.commutes_with(gone)).cloned();
        }
        after
    }

    /// Turns to the other side, if it can go, was not tried, and interrupts not too often.
    fn turn(&mut self, interruptions_max: Option<usize>) -> bool {
        self.chosen = self.chosen.across();
        let ix = self.chosen as usize;
        let is_open = self.can_go[ix] && self.asleep[ix].is_none() && self.tried[ix].is_none();
        is_open && interruptions_max.is_none_or(|max| self.n_interruptions_after() <= max)
    }
}

impl Explorer {
    /// Leads only through orders in which a side that could go on is interrupted so many times,
    /// for calls that have too many orders for a test.
    #[must_use]
    pub fn with_interruptions_max(max: usize) -> Self {
        Self { interruptions_max: Some(max), ..Self::default() }
    }

    /// For calls on time that goes on: also who began first may matter.
    #[must_use]
    pub fn that_minds_time() -> Self {
        Self { minds_time: true, ..Self::default() }
    }

    /// Begins the next play; says whether there is one.
    pub fn begin(&mut self) -> bool {
        if self.is_begun {
            let max = self.interruptions_max;
            while self.trail.last_mut().is_some_and(|fork| !fork.turn(max)) {
                self.trail.pop();
            }
        }
        let is_over = self.is_begun && self.trail.is_empty();
        self.is_begun = true;
        (self.depth, self.is_repetition) = (0, false);
        self.pasts = [Past::new(self.minds_time), Past::new(self.minds_time)];
        !is_over
    }

    /// Whether the last play came to the same as an earlier one, which shows only in its midst.
    #[must_use]
    pub const fn is_repetition(&self) -> bool {
        self.is_repetition
    }
}

impl Guide for Explorer {
    fn choose(&mut self, can_go: [bool; 2]) -> Side {
        let either = if can_go[Side::One as usize] { Side::One } else { Side::Other };
        if self.is_repetition {
            return either;
        }
        match self.trail.get(self.depth) {
            Some(fork) if fork.can_go == can_go => return fork.chosen,
            // A store remembers what it saw in earlier plays and may go another way this time.
            _ => self.trail.truncate(self.depth),
        }
        let last = self.trail.last();
        // An order that stands for another may interrupt more often, so then none stands for any.
        let asleep = last.filter(|_| self.interruptions_max.is_none()).map(Fork::asleep_after);
        let asleep = asleep.unwrap_or_default();
        let (before, n_interruptions) =
            last.map(|fork| (fork.chosen, fork.n_interruptions_after())).unzip();
        let is_open = |side: &Side| can_go[*side as usize] && asleep[*side as usize].is_none();
        let first = before.unwrap_or(Side::One);
        let Some(chosen) = [first, first.across()].into_iter().find(is_open) else {
            self.is_repetition = true;
            return either;
        };
        let (tried, n_interruptions) = ([None, None], n_interruptions.unwrap_or_default());
        self.trail.push(Fork { can_go, asleep, tried, before, n_interruptions, chosen });
        chosen
    }

    fn went(&mut self, side: Side, text: &str) {
        let footprint = self.pasts[side as usize].add(text);
        if self.is_repetition {
            return;
        }
        if let Some(fork) = self.trail.get_mut(self.depth) {
            fork.tried[side as usize] = Some(footprint);
        }
        self.depth += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::interleave::orders::{Along, all};

    /// A database of tables with a number each, which counts who wrote it.
    #[derive(Default)]
    struct Toy {
        numbers: BTreeMap<String, u64>,
        owners: BTreeMap<String, Side>,
    }

    const ONE: &[&str] = &[
        "begin",
        "select 1 from stepwell.a",
        "update stepwell.b set x",
        "commit",
        "select 1 from stepwell.c",
        "begin",
        "update stepwell.c set x",
        "select 1 from stepwell.a",
        "commit",
    ];
    const OTHER: &[&str] = &[
        "begin",
        "update stepwell.a set x",
        "select 1 from stepwell.b",
        "update stepwell.c set x",
        "commit",
        "select 1 from stepwell.b",
        "select 1 from stepwell.d",
    ];

    impl Toy {
        /// Runs a statement; says what it saw, or that it has to wait.
        fn run(&mut self, side: Side, text: &str) -> Option<String> {
            let table = text.split("stepwell.").nth(1).map(|rest| rest[..1].to_owned());
            let Some(table) = table else {
                if text == "commit" {
                    let (own, others) =
                        std::mem::take(&mut self.owners).into_iter().partition(|(_, o)| *o == side);
                    self.owners = others;
                    for (table, _) in BTreeMap::<String, Side>::from_iter(own) {
                        *self.numbers.entry(table).or_default() += 1 + side as u64;
                    }
                }
                return Some(String::new());
            };
            if text.starts_with("update") {
                if self.owners.get(&table).is_some_and(|owner| *owner != side) {
                    return None;
                }
                self.owners.insert(table.clone(), side);
            }
            Some(self.numbers.get(&table).copied().unwrap_or_default().to_string())
        }
    }

    /// What the two saw.
    fn play(guide: &mut impl Guide) -> [Vec<String>; 2] {
        let (programs, mut toy, mut n_gone) = ([ONE, OTHER], Toy::default(), [0; 2]);
        let mut seen: [Vec<String>; 2] = Default::default();
        let mut waits = [false; 2];
        while [0, 1].iter().any(|ix| n_gone[*ix] < programs[*ix].len()) {
            let can_go = [0, 1].map(|ix| n_gone[ix] < programs[ix].len() && !waits[ix]);
            let side = guide.choose(can_go);
            let text = programs[side as usize][n_gone[side as usize]];
            guide.went(side, text);
            let mut gone = vec![side];
            if text == "commit" && waits[side.across() as usize] {
                gone.push(side.across());
            }
            for side in gone {
                let ix = side as usize;
                let saw = toy.run(side, programs[ix][n_gone[ix]]);
                waits[ix] = saw.is_none();
                n_gone[ix] += usize::from(saw.is_some());
                seen[ix].extend(saw);
            }
        }
        seen
    }

    fn explore(mut explorer: Explorer) -> (usize, BTreeSet<[Vec<String>; 2]>) {
        let (mut n, mut seen) = (0, BTreeSet::new());
        while explorer.begin() {
            seen.insert(play(&mut explorer));
            n += 1;
        }
        (n, seen)
    }

    #[test]
    fn what_can_come_of_two_calls_comes_of_the_orders_that_are_tried() {
        let orders = all(ONE.len(), OTHER.len());
        let every: BTreeSet<_> = orders.map(|o| play(&mut Along(o.into_iter()))).collect();
        let (n, seen) = explore(Explorer::default());
        assert!(every.len() > 4, "they meet: {every:?}");
        assert_eq!(seen, every);
        assert!(n * 10 < all(ONE.len(), OTHER.len()).count(), "{n} orders");
    }

    #[test]
    fn with_one_interruption_each_side_stops_once_at_every_place() {
        let (n, seen) = explore(Explorer::with_interruptions_max(1));
        // Some stop for a lock without being interrupted.
        assert!(n <= ONE.len() + OTHER.len(), "{n} orders");
        assert!(n > ONE.len(), "{n} orders");
        assert!(seen.len() > 2);
    }
}
