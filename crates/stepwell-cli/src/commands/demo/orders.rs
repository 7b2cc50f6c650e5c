//! The orders that come in: who sends them, and what will become of each.
//!
//! The first few are always the same mix, so that even a small demo shows every path. The rest
//! is drawn from the seed.

use serde::{Deserialize, Serialize};

/// The shops that share the engine. Each is a tenant.
const SHOPS: [&str; 3] = ["bakery", "bookshop", "florist"];

/// Every path through the workflow, in the order in which they come in.
const MIX: [ExpectedEnd; 6] = [
    ExpectedEnd::Shipped,
    ExpectedEnd::Rejected,
    ExpectedEnd::ShippedAfterRetries,
    ExpectedEnd::Failed,
    ExpectedEnd::Shipped,
    ExpectedEnd::Rejected,
];

const FIRST_NUMBER: u32 = 1001;

/// Largest order a shop accepts.
pub(super) const CENTS_MAX: u64 = 50_000;

/// An order as a shop hands it in: the input of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) id: String,
    pub(super) n_items: u32,
    pub(super) cents: u64,
    pub(super) card: Card,
}

/// How the bank treats the customer's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Card {
    /// It pays.
    Good,
    /// The connection to the bank breaks twice, then it pays.
    Flaky,
    /// The bank declines it for good.
    Declined,
}

/// An order, whose it is, and how it should end.
pub(super) struct Incoming {
    pub(super) tenant: &'static str,
    pub(super) order: Order,
    pub(super) expected: ExpectedEnd,
}

/// How an order should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedEnd {
    Shipped,
    ShippedAfterRetries,
    Rejected,
    Failed,
}

/// `n_orders` orders, the same for the same seed.
pub(super) fn incoming(n_orders: u32, seed: u64) -> Vec<Incoming> {
    let mut chance = Chance(seed);
    let numbers = FIRST_NUMBER..FIRST_NUMBER + n_orders;
    let shops = SHOPS.iter().cycle();
    let expected_ends = MIX.iter().copied().map(Some).chain(std::iter::repeat(None));
    let order = |((number, tenant), expected): ((u32, &&'static str), Option<ExpectedEnd>)| {
        let expected = expected.unwrap_or_else(|| chance.expected());
        Incoming { tenant, order: order(number, expected, &mut chance), expected }
    };
    numbers.zip(shops).zip(expected_ends).map(order).collect()
}

fn order(number: u32, expected: ExpectedEnd, chance: &mut Chance) -> Order {
    let n_items = 1 + chance.below(9);
    let cents = u64::from(n_items * (250 + chance.below(3_000)));
    let card = match expected {
        ExpectedEnd::ShippedAfterRetries => Card::Flaky,
        ExpectedEnd::Failed => Card::Declined,
        ExpectedEnd::Shipped | ExpectedEnd::Rejected => Card::Good,
    };
    let (n_items, cents) = match expected {
        ExpectedEnd::Rejected if chance.below(2) == 0 => (0, 0),
        ExpectedEnd::Rejected => (n_items, cents + CENTS_MAX),
        _ => (n_items, cents),
    };
    Order { id: format!("order-{number}"), n_items, cents, card }
}

/// `SplitMix64`: small, and the same on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).expect("the remainder is below a u32")
    }

    /// Most orders go well.
    fn expected(&mut self) -> ExpectedEnd {
        match self.below(10) {
            0 => ExpectedEnd::Failed,
            1 => ExpectedEnd::ShippedAfterRetries,
            2 | 3 => ExpectedEnd::Rejected,
            _ => ExpectedEnd::Shipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_orders() {
        let text = |seed| -> Vec<String> {
            incoming(20, seed).iter().map(|incoming| format!("{:?}", incoming.order)).collect()
        };
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn no_order_that_should_ship_is_over_the_limit() {
        for Incoming { order, expected, .. } in incoming(1_000, 1) {
            let is_valid = order.n_items > 0 && order.cents <= CENTS_MAX;
            assert_eq!(is_valid, expected != ExpectedEnd::Rejected, "{order:?}");
        }
    }
}
