//! Random sequences of commands, applied to all three stores on one manual clock, get the same
//! answers at every step and leave the same rows behind.
//!
//! Sequences come from a fixed seed, so that every run plays the same ones. `PROPTEST_CASES` asks
//! for more of them, `PROPTEST_RNG_SEED` for others. A failure shows the shortest list of commands
//! that was found, with the seed.
#![cfg(all(feature = "testing", feature = "sqlite", feature = "postgres"))]

mod command;
mod functions;
mod leading;
mod letters;
mod looks;
mod outcomes;
mod player;
mod shapes;
mod stage;
mod words;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use command::{Command, Theme};
use stage::Stage;

/// The seed, unless `PROPTEST_RNG_SEED` gives another.
const SEED: u64 = 20_260_101;

/// A trial takes about half a second, so the search for a shorter list must end some time.
const SHRINKS_MAX: u32 = 250;

#[test]
fn steps_and_outcomes_get_the_same_answers() {
    play(Theme::Outcomes, 25);
}

#[test]
fn limits_and_weights_get_the_same_answers() {
    play(Theme::Tenants, 25);
}

#[test]
fn workers_that_come_and_go_get_the_same_answers() {
    play(Theme::Workers, 25);
}

/// What becomes ready in one transaction over many runs has no promised order, so here everything
/// is compared but the order.
#[test]
fn large_batches_get_the_same_answers() {
    play(Theme::Batches, 25);
}

/// What a worker is handed over plus what it claims next is the same on all stores; which of the
/// two it is may differ, and so may positions.
#[test]
fn offers_of_free_slots_get_the_same_answers() {
    play(Theme::Offers, 25);
}

/// Many runs are signalled at once, while others are cancelled, time out and pass their deadlines.
#[test]
fn signals_and_waits_get_the_same_answers() {
    play(Theme::Signals, 25);
}

/// Steps store memos, wait while they run, suspend and begin new rounds.
#[test]
fn functions_get_the_same_answers() {
    play(Theme::Functions, 40);
}

/// Plays so many random sequences, unless `PROPTEST_CASES` asks for more or fewer.
fn play(theme: Theme, n_cases: u32) {
    let asked = Config::default();
    let is_asked = |name: &str| std::env::var_os(name).is_some();
    let seed = match asked.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => SEED,
    };
    let config = Config {
        cases: if is_asked("PROPTEST_CASES") { asked.cases } else { n_cases },
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: SHRINKS_MAX,
        ..asked
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a test machine has room for a runtime");
    let mut runner = TestRunner::new(config);
    let played = runner.run(&command::sequences(theme), |commands| {
        let told = runtime.block_on(Stage::play(theme, &commands));
        told.map_err(TestCaseError::fail)
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(why, commands)) => {
            panic!("seed {seed}, theme {theme:?}:\n{}\n\n{why}", listed(&commands))
        }
        Err(TestError::Abort(why)) => panic!("seed {seed}, theme {theme:?}: {why}"),
    }
}

fn listed(commands: &[Command]) -> String {
    let lines = commands.iter().enumerate().map(|(ix, command)| format!("{ix:3} {command:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_seed_gives_the_same_commands() {
    let drawn = || {
        let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
        let mut runner = TestRunner::new(config);
        let tree = command::sequences(Theme::Outcomes).new_tree(&mut runner);
        format!("{:?}", proptest::strategy::ValueTree::current(&tree.expect("it draws")))
    };
    assert_eq!(drawn(), drawn());
}
