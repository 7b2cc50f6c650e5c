//! `stepwell signal` and `stepwell cancel`, and what `stepwell show` tells of waits.

use std::time::Duration;

use rstest::rstest;
use serde_json::json;
use stepwell::testing::TestEngine;
use stepwell::{Engine, PostgresStore, RunStatus, Sent, SqliteStore, Workflow};
use tempfile::TempDir;

use crate::command::{records, stderr, stdout, stepwell, stepwell_as};
use crate::payloads::OtherCodec;
use crate::story::Kind;

/// A store with runs that wait for a payment in euros, and the engine that executes them.
struct Shop {
    store: String,
    engine: TestEngine,
    _folder: Option<TempDir>,
}

fn paying() -> Workflow<String, u32> {
    let mut w = Workflow::define::<String, ()>("paying");
    let paid = w.wait::<u32>("payment", "paid").matching("currency", "EUR").from_start();
    let book = w.step("book").after(paid).run(async |_, paid| Ok(paid));
    w.output(book)
}

impl Shop {
    fn open(kind: Kind, ids: &[&str]) -> Self {
        let (store, folder, mut builder) = kind.engine();
        let paying = builder.workflow(paying());
        let engine = builder.start().expect("it starts");
        for id in ids {
            let run = engine.start(&paying, "card 4111".to_owned()).tenant("bakery").id(*id).now();
            run.expect("it starts");
        }
        engine.run_until_idle();
        Self { store, engine, _folder: folder }
    }

    fn call(&self, args: &[&str]) -> assert_cmd::assert::Assert {
        let store = ["--store", &self.store];
        stepwell(&[args, &store].concat())
    }

    fn status(&self, id: &str) -> RunStatus {
        let run = self.engine.run_handle("bakery", id).expect("it is there");
        run.status().expect("it can be read")
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_is_signalled_and_goes_on(#[case] kind: Kind) {
    let shop = Shop::open(kind, &["cake"]);
    let first = ["signal", "bakery/cake", "paid", "7", "--attr", "currency=USD"];
    let sent = shop.call(&first).success();
    assert_eq!(stdout(&sent).trim(), "Run bakery/cake has signal paid as its number 1");
    let shown = records(&shop.call(&["show", "bakery/cake", "--json"]).success());
    let wait = &shown[0]["waits"][0];
    assert_eq!((&wait["step"], &wait["signals"]), (&json!("payment"), &json!(["paid"])));
    assert_eq!(wait["matching"], json!({"currency": "EUR"}));
    let signal = &shown[0]["unconsumed_signals"][0];
    assert_eq!((&signal["name"], &signal["number"]), (&json!("paid"), &json!(1)));
    assert_eq!(signal.get("payload"), None, "payloads only if asked for");
    let shown = stdout(&shop.call(&["show", "bakery/cake"]).success());
    assert!(shown.contains("Waits") && shown.contains("currency=USD"), "{shown}");
    let second = ["signal", "cake", "--tenant", "bakery", "paid", "42", "--attr", "currency=EUR"];
    let keyed = [&second[..], &["--key", "evt-1", "--json"]].concat();
    for _ in 0..2 {
        let sent = records(&shop.call(&keyed).success());
        assert_eq!((&sent[0]["signal"], &sent[0]["number"]), (&json!("paid"), &json!(2)));
    }
    let shown = records(&shop.call(&["show", "bakery/cake", "--json"]).success());
    let states = [&shown[0]["tasks"][0]["state"], &shown[0]["tasks"][1]["state"]];
    assert_eq!(states, [&json!("COMPLETED"), &json!("QUEUED")]);
    let log = stdout(&shop.call(&["show", "bakery/cake"]).success());
    assert!(log.contains("SIGNALLED") && log.contains("paid, signal 2"), "{log}");
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_is_cancelled_with_who_and_why_in_its_log(#[case] kind: Kind) {
    let shop = Shop::open(kind, &["cake"]);
    let cancel = ["cancel", "bakery/cake", "--reason", "the customer called", "--by", "ada@desk"];
    let cancelled = shop.call(&cancel).success();
    assert_eq!(stdout(&cancelled).trim(), "Run bakery/cake is cancelled");
    assert_eq!(shop.status("cake"), RunStatus::Cancelled);
    let shown = stdout(&shop.call(&["show", "bakery/cake"]).success());
    assert!(shown.contains("by ada@desk: the customer called"), "{shown}");
    let again = records(&shop.call(&["cancel", "bakery/cake", "--json"]).success());
    let expected = (&json!("already_ended"), &json!("CANCELLED"));
    assert_eq!((&again[0]["answer"], &again[0]["status"]), expected);
    let late = shop.call(&["signal", "bakery/cake", "paid", "1"]).failure();
    let words = stderr(&late);
    assert!(words.contains("SW0038") && words.contains("CANCELLED"), "{words}");
}

#[test]
fn who_cancels_is_the_user_at_this_host_unless_told() {
    let shop = Shop::open(Kind::Sqlite, &["cake"]);
    stepwell_as("ada", &["cancel", "bakery/cake", "--store", &shop.store]).success();
    let shown = records(&shop.call(&["show", "bakery/cake", "--json"]).success()).remove(0);
    let log = shown["log"].as_array().expect("it is a list");
    let cancel = log.iter().find(|event| event["event"] == "RUN_CANCELLED").expect("it is there");
    let by = cancel["data"]["by"].as_str().expect("it is text");
    assert!(by.strip_prefix("ada@").is_some_and(|host| !host.is_empty()), "{by}");
    assert_eq!(cancel["data"]["reason"], serde_json::Value::Null);
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn what_makes_no_sense_is_refused_and_changes_nothing(#[case] kind: Kind) {
    let shop = Shop::open(kind, &["cake"]);
    let refuse = |args: &[&str], words: &[&str]| {
        let text = stderr(&shop.call(args).failure());
        assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
    };
    refuse(&["signal", "bakery/cake", "paid", "yes"], &["JSON", "quotes"]);
    refuse(&["signal", "bakery/cake", "paid", "1", "--attr", "currency"], &["NAME=VALUE"]);
    refuse(&["signal", "bakery/cake", "paid", &"9".repeat(400)], &["JSON", "out of range"]);
    refuse(&["signal", "bakery/cake", "paid", "--kye", "evt-1"], &["unexpected argument '--kye'"]);
    refuse(&["signal", "bakery/cake", "paid", "-1e-7"], &["'-- -1"]);
    refuse(&["signal", "bakery/tart", "paid", "1"], &["SW0013", "tart"]);
    refuse(&["signal", "bakery/cake", "", "1"], &["SW0003", "signal"]);
    refuse(&["cancel", "bakery/cake", "--reason", &"x".repeat(2_000)], &["SW0035", "1,024"]);
    let run = shop.engine.run_handle("bakery", "cake").expect("it is there");
    assert!(run.signals().expect("they can be read").is_empty());
    assert_eq!(shop.status("cake"), RunStatus::Running);
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn numbers_are_sent_as_they_were_typed(#[case] kind: Kind) {
    let shop = Shop::open(kind, &["cake"]);
    let long = "1234567890".repeat(20);
    let numbers = ["-5", "-1.50e3", "18446744073709551616", "0.1000000000000000055", &long];
    for number in numbers {
        shop.call(&["signal", "bakery/cake", "seen", number]).success();
    }
    let store = ["signal", "--store", &shop.store];
    stepwell(&[&store[..], &["bakery/cake", "seen", "--", "-1e-7"]].concat()).success();
    let shown = stdout(&shop.call(&["show", "bakery/cake", "--payloads", "--json"]).success());
    for number in numbers.iter().chain(&["-1e-7"]) {
        assert!(shown.contains(&format!("\"value\":{number}}}")), "{number} in {shown}");
    }
}

/// Sends a payment from a client of a few lines that has the codec of the service.
#[tokio::main(flavor = "current_thread")]
async fn pay_from_a_client(kind: Kind, store: &str) -> Sent {
    let builder = match kind {
        Kind::Sqlite => Engine::builder(SqliteStore::open(store).await.expect("it is there")),
        Kind::Postgres => Engine::builder(PostgresStore::connect(store).await.expect("it answers")),
    };
    let engine = builder.codec(OtherCodec).client_only().start().await.expect("it starts");
    let signal = engine.signal("paid", &42).attr("currency", "EUR").to("bakery", "cake");
    let sent = signal.await.expect("it is sent");
    engine.stop_gracefully().await;
    sent
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn a_run_of_another_codec_is_signalled_as_the_page_of_the_error_says(#[case] kind: Kind) {
    let (store, _folder, builder) = kind.engine();
    let mut builder = builder.codec(OtherCodec);
    let paying = builder.workflow(paying());
    let engine = builder.start().expect("it starts");
    let run = engine.start(&paying, "card 4111".to_owned()).tenant("bakery").id("cake").now();
    let run = run.expect("it starts");
    engine.run_until_idle();
    let signal = ["signal", "bakery/cake", "paid", "42", "--attr", "currency=EUR"];
    let refused = stderr(&stepwell(&[&signal[..], &["--store", &store]].concat()).code(1));
    assert!(refused.contains("SW0039") && refused.contains("\"other\""), "{refused}");
    assert!(run.signals().expect("they can be read").is_empty());
    for args in [["show", "bakery/cake"].as_slice(), &["show", "bakery/cake", "--payloads"]] {
        stepwell(&[args, &["--store", &store]].concat()).success();
    }

    assert_eq!(pay_from_a_client(kind, &store), Sent::Accepted { number: 1 });
    // The engine of the test hears of other processes by its polls only.
    engine.advance(Duration::from_hours(1));
    assert_eq!(run.result().expect("it completes"), 42);
}

#[test]
fn commands_that_change_runs_make_no_store() {
    let folder = TempDir::new().expect("there is room for a file");
    let path = folder.path().join("missing.db");
    let store = path.to_str().expect("a plain path");
    for args in [["signal", "a/b", "paid"].as_slice(), &["cancel", "a/b"]] {
        let refused = stepwell(&[args, &["--store", store]].concat()).failure();
        assert!(stderr(&refused).contains("SW00"), "{}", stderr(&refused));
        assert!(!path.exists(), "no file appears");
    }
}
