//! Fairness for random arrivals, weights, limits, cancels, joins and names that nobody serves
//! (DESIGN 8, R2, R26, S15, T3, FE5).
#![cfg(feature = "testing")]

mod support_props;

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use stepwell::core::id::Tenant;
use stepwell::ports::{Clock, Tenants};
use stepwell::testing::ManualClock;
use stepwell::{Ctx, EngineBuilder, TenantSettings, Workflow};

use support_props::cases;
use support_props::fleet::{Fleet, settings};
use support_props::market::{Market, Ware, tenant};
use support_props::shares::{assert_nobody_is_overtaken, assert_shares};
use support_props::steps::Seat;
use support_props::watch::Watch;

/// What happens on a market.
#[derive(Clone, Debug)]
enum Deal {
    Order {
        tenant: usize,
        ware: Ware,
        n: usize,
    },
    Claim {
        worker: usize,
        tasks_max: usize,
    },
    Complete {
        n: usize,
    },
    Cancel {
        tenant: usize,
        nth_youngest: usize,
    },
    Limit {
        tenant: usize,
        tasks_max: Option<u32>,
    },
    /// Orphans are served, or not any more.
    Adopt(bool),
}

fn wares() -> impl Strategy<Value = Ware> {
    prop_oneof![
        5 => Just(Ware::Single),
        3 => Just(Ware::Join),
        1 => Just(Ware::Stray),
        1 => Just(Ware::Orphan),
    ]
}

fn deals(n_max: usize) -> impl Strategy<Value = Vec<Deal>> {
    let who = || 0..6_usize;
    let limit = prop::option::weighted(0.8, 1..6_u32);
    let one = prop_oneof![
        6 => (who(), wares(), 1..=6_usize)
            .prop_map(|(tenant, ware, n)| Deal::Order { tenant, ware, n }),
        8 => (0..2_usize, 1..=5_usize)
            .prop_map(|(worker, tasks_max)| Deal::Claim { worker, tasks_max }),
        6 => (1..=5_usize).prop_map(|n| Deal::Complete { n }),
        1 => (who(), 0..8_usize)
            .prop_map(|(tenant, nth_youngest)| Deal::Cancel { tenant, nth_youngest }),
        1 => (who(), limit).prop_map(|(tenant, tasks_max)| Deal::Limit { tenant, tasks_max }),
        1 => any::<bool>().prop_map(Deal::Adopt),
    ];
    vec(one, 1..n_max)
}

fn strike(market: &mut Market, deal: &Deal) {
    match *deal {
        Deal::Order { tenant: who, ware, n } => market.order(&tenant(who), ware, n),
        Deal::Claim { worker, tasks_max } => {
            market.claim(worker, tasks_max);
        }
        Deal::Complete { n } => market.complete(n),
        Deal::Cancel { tenant: who, nth_youngest } => market.cancel(&tenant(who), nth_youngest),
        Deal::Limit { tenant: who, tasks_max } => market.set(&tenant(who), 1, tasks_max),
        Deal::Adopt(is_adopted) => market.adopt(is_adopted),
    }
}

/// Serves everything that can be served.
fn sell_out(market: &mut Market) {
    market.adopt(true);
    while market.claim(0, 3) > 0 || market.n_held() > 0 {
        market.complete(2);
    }
}

/// A round of a market whose first tenants always have a backlog.
#[derive(Clone, Debug)]
struct Round {
    worker: usize,
    n_claimed: usize,
    n_completed: usize,
    /// How much a tenant orders when its line gets short.
    ware: Ware,
    n_ordered: usize,
    /// What else happens: to tenants that come and go, or the end of a line is cancelled.
    beside: Option<Deal>,
}

/// Tenants that come and go have numbers from here on.
const GUESTS: usize = 100;

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let ware = prop_oneof![Just(Ware::Single), Just(Ware::Join)];
    let guest = || GUESTS..GUESTS + 3_usize;
    let beside = prop_oneof![
        4 => (guest(), wares(), 1..=10_usize)
            .prop_map(|(tenant, ware, n)| Deal::Order { tenant, ware, n }),
        1 => (guest(), prop::option::of(1..4_u32))
            .prop_map(|(tenant, tasks_max)| Deal::Limit { tenant, tasks_max }),
        1 => (guest(), 0..20_usize)
            .prop_map(|(tenant, nth_youngest)| Deal::Cancel { tenant, nth_youngest }),
        1 => (0..6_usize).prop_map(|tenant| Deal::Cancel { tenant, nth_youngest: 0 }),
        1 => any::<bool>().prop_map(Deal::Adopt),
    ];
    let beside = prop::option::weighted(0.3, beside);
    let sizes = (1..=20_usize, 1..=25_usize, 30..=120_usize);
    let round = (0..2_usize, sizes, ware, beside).prop_map(
        |(worker, (n_claimed, n_completed, n_ordered), ware, beside)| Round {
            worker,
            n_claimed,
            n_completed,
            ware,
            n_ordered,
            beside,
        },
    );
    vec(round, 1..40)
}

/// Plays rounds until so many tasks were claimed.
fn trade(market: &mut Market, n_tenants: usize, rounds: &[Round], n_starts: usize) {
    let mut n_started = 0;
    for round in rounds.iter().cycle() {
        for who in (0..n_tenants).map(tenant) {
            // More than one claim can take, so that nobody ever runs out.
            if market.n_ready(&who) < 25 {
                market.order(&who, round.ware, round.n_ordered);
            }
        }
        if let Some(deal) = &round.beside {
            strike(market, deal);
        }
        n_started += market.claim(round.worker, round.n_claimed);
        market.complete(round.n_completed);
        if n_started >= n_starts {
            return;
        }
    }
}

fn equal_weights(n_tenants: usize) -> Vec<(Tenant, u32)> {
    (0..n_tenants).map(|ix| (tenant(ix), 1)).collect()
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_ready_task_is_overtaken_by_one_of_each_other_tenant(deals in deals(150)) {
        // R2, R26, S15, T3, FE5
        let mut market = Market::strict();
        for deal in &deals {
            strike(&mut market, deal);
        }
        sell_out(&mut market);
        assert_nobody_is_overtaken(&market.journal());
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn tenants_with_a_backlog_get_equal_shares(n_tenants in 2..=8_usize, rounds in rounds()) {
        // R2, T3
        let mut market = Market::lenient();
        // A row that nobody takes must not hold the frontier back, or newcomers would take all.
        market.order(&tenant(GUESTS), Ware::Stray, 1);
        trade(&mut market, n_tenants - 1, &rounds, 300);
        let n_before = market.journal().starts().len();
        trade(&mut market, n_tenants, &rounds, 2_200);
        assert_shares(&market.journal().starts()[n_before..], &equal_weights(n_tenants));
    }

    #[test]
    fn tenants_with_a_backlog_get_shares_by_weight(
        weights in vec(1..=10_u32, 2..=5), rounds in rounds(),
    ) {
        // R2, T3
        let mut market = Market::lenient();
        let weights: Vec<(Tenant, u32)> =
            weights.into_iter().enumerate().map(|(ix, weight)| (tenant(ix), weight)).collect();
        for (tenant, weight) in &weights {
            market.set(tenant, *weight, None);
        }
        trade(&mut market, weights.len(), &rounds, 2_500);
        assert_shares(&market.journal().starts(), &weights);
    }
}

proptest! {
    #![proptest_config(cases(2))]

    #[test]
    fn a_hundred_thousand_rows_that_nobody_can_claim_do_not_matter(
        n_tenants in 2..=4_usize, rounds in rounds(),
    ) {
        // R2, T3
        let mut market = Market::lenient();
        market.crowd(&tenant(0), 100_000);
        trade(&mut market, n_tenants, &rounds, 1_500);
        assert_shares(&market.journal().starts(), &equal_weights(n_tenants));
        let parked = market.view(&tenant(0)).map(|view| view.n_parked);
        prop_assert!(parked >= Some(100_000), "{parked:?}");
    }
}

/// Registers wares with code that takes some time.
fn stock(builder: &mut EngineBuilder<Seat>) {
    let mut w = Workflow::define::<u64, Seat>("single");
    w.step("only").run(work);
    builder.workflow(w.no_output());
    let mut w = Workflow::define::<u64, Seat>("join");
    let (left, right) = (w.step("left").run(work), w.step("right").run(work));
    w.step("both").after((left, right)).run(|ctx, _| work(ctx));
    builder.workflow(w.no_output());
}

async fn work(ctx: Ctx<u64, Seat>) -> stepwell::Result<()> {
    let millis = ctx.input() % 5 * 20;
    ctx.state().clock.sleep(Duration::from_millis(millis)).await;
    Ok(())
}

fn fleet(watch: fn(&ManualClock) -> Arc<Watch>, n_seats: usize, slots: usize) -> Fleet {
    let clock = ManualClock::new();
    let watch = watch(&clock);
    Fleet::new((clock, watch), n_seats, settings(slots, 3), Box::new(|_, builder| stock(builder)))
}

/// A tenant orders from an engine.
fn order(fleet: &Fleet, who: usize, ware: Ware, n: usize) {
    let name = if ware == Ware::Join { "join" } else { "single" };
    let engine = fleet.engine(who % fleet.n_seats()).clone();
    fleet.spawn(async move {
        for number in 0..n as u64 {
            let start = engine.start_by_name(name, &number).tenant(tenant(who).as_str());
            start.await.expect("start a run");
        }
    });
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn engines_overtake_no_tenant_and_keep_limits(
        orders in vec((0..5_usize, wares(), 1..=4_usize, 0..60_u64), 1..25),
        limits in vec(prop::option::of(1..4_u32), 5),
        n_seats in 1..=3_usize,
        slots in 1..=4_usize,
    ) {
        // R2, R26, S15, T3
        let fleet = fleet(Watch::strict, n_seats, slots);
        for (who, tasks_max) in limits.into_iter().enumerate() {
            let settings = TenantSettings { weight: 1, tasks_max };
            let link = fleet.link(0).clone();
            let answer = fleet.drive(async move { link.set_tenant(&tenant(who), settings).await });
            answer.expect("set a tenant");
        }
        for (who, ware, n, millis) in orders {
            order(&fleet, who, ware, n);
            fleet.advance(Duration::from_millis(millis));
        }
        fleet.to_end(Duration::from_mins(1));
        assert_nobody_is_overtaken(&fleet.watch.journal());
    }
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn engines_serve_tenants_with_a_backlog_equally(
        n_tenants in 2..=5_usize,
        wares in vec(prop_oneof![Just(Ware::Single), Just(Ware::Join)], 5),
        n_seats in 1..=3_usize,
        slots in 1..=8_usize,
    ) {
        // R2, T3
        let fleet = fleet(Watch::lenient, n_seats, slots);
        let n_each = 1_300 / n_tenants;
        for (who, ware) in wares.into_iter().enumerate().take(n_tenants) {
            let n_tasks = if ware == Ware::Join { 3 } else { 1 };
            order(&fleet, who, ware, n_each.div_ceil(n_tasks));
        }
        fleet.to_end(Duration::from_mins(10));
        let mut starts = fleet.watch.journal().starts();
        // When all is nearly done, some have nothing left.
        starts.truncate(1_200);
        assert_shares(&starts, &equal_weights(n_tenants));
    }
}
