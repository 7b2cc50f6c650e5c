//! `start`, `resume` and `events` of a user's program.

use std::process::ExitCode;

use serde_json::{Value, json};
use stepwell::cli::App;
use stepwell::ports::{Codec, CodecError, JsonCodec};
use stepwell::{Ctx, Engine, SqliteStore, erased_serde};

use crate::{Place, stderr, stdout};

#[test]
fn a_run_is_started_and_resumed_to_its_end() {
    let place = Place::new();
    let started = place.record(&["start", "greet", "--id", "ada", "--input", "\"Ada\""]);
    assert_eq!((&started["tenant"], &started["id"]), (&json!("bakery"), &json!("ada")));
    assert_eq!((&started["workflow"], &started["status"]), (&json!("greet"), &json!("RUNNING")));
    let end = place.record(&["resume", "bakery/ada"]);
    assert_eq!((&end["record"], &end["status"]), (&json!("end"), &json!("COMPLETED")));
    assert_eq!(end["output"], "Hello, ADA!");
    let again = place.call(&["resume", "ada", "--tenant", "bakery"]).success();
    let says = "Run bakery/ada has ended as COMPLETED\n  output  \"Hello, ADA!\"\n";
    assert_eq!((stdout(&again).as_str(), stderr(&again).as_str()), (says, ""), "it was over");
}

#[test]
fn starting_again_finds_the_run_that_is_there() {
    let place = Place::new();
    let start = ["start", "double", "--id", "d", "--input", "21", "--tenant", "florist"];
    let text = stdout(&place.call(&start).success());
    assert_eq!(text, "Run florist/d is started\n");
    let end = place.record(&["resume", "florist/d"]);
    assert_eq!(end["output"], 42);
    let text = stdout(&place.call(&[&start[..], &["--wait"]].concat()).success());
    let says = "Run florist/d had already ended as COMPLETED\n\
                Run florist/d has ended as COMPLETED\n  output  42\n";
    assert_eq!(text, says);
    let other = ["start", "double", "--id", "d", "--input", "22", "--tenant", "florist"];
    assert!(stderr(&place.call(&other).code(1)).contains("SW0011"));
    let unnamed = place.record(&["start", "double", "--input", "1"]);
    assert_eq!(unnamed["id"], unnamed["key"], "an id is made");
}

#[test]
fn a_run_that_failed_or_was_cancelled_exits_with_1() {
    let place = Place::new();
    place.call(&["start", "declined", "--id", "d"]).success();
    for _ in 0..2 {
        let (assert, records) = place.records(&["resume", "bakery/d"]);
        let errors = stderr(&assert.code(1));
        assert!(errors.contains("SW0017") && errors.contains("declined"), "{errors}");
        assert_eq!(
            (&records[0]["status"], &records[0]["output"]),
            (&json!("FAILED"), &Value::Null)
        );
        assert_eq!(records[0]["failure"]["message"], "the card was declined");
    }
    place.call(&["start", "approval", "--id", "a"]).success();
    place.call(&["cancel", "bakery/a"]).success();
    let assert = place.call(&["resume", "bakery/a"]).code(1);
    assert_eq!(stdout(&assert), "Run bakery/a has ended as CANCELLED\n");
    assert!(stderr(&assert).contains("hint: stepwell explain SW0018"), "{}", stderr(&assert));
}

#[test]
fn the_log_of_a_run_is_printed_alone() {
    let place = Place::new();
    place.call(&["start", "double", "--id", "d", "--input", "21"]).success();
    place.call(&["resume", "bakery/d"]).success();
    let (assert, events) = place.records(&["events", "bakery/d"]);
    assert.success();
    let names: Vec<&Value> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["RUN_STARTED", "QUEUED", "STARTED", "COMPLETED", "RUN_ENDED"]);
    assert!(events.iter().all(|event| event["record"] == "event" && event["id"] == "d"));
    let text = stdout(&place.call(&["events", "bakery/d", "--lines", "2"]).success());
    assert!(text.starts_with("3 earlier events") && text.contains("RUN_ENDED"), "{text}");
    assert!(!text.contains("QUEUED"), "{text}");
    assert!(stderr(&place.call(&["events", "bakery/none"]).code(1)).contains("SW0013"));
}

#[test]
fn what_the_program_has_no_code_for_is_refused() {
    let place = Place::new();
    let unknown = stderr(&place.call(&["start", "lunch"]).code(1));
    let says = "this program has no workflow \"lunch\"; it has approval, declined, double, greet, \
                patient";
    assert!(unknown.contains("SW0012") && unknown.contains(says), "{unknown}");
    start_elsewhere(&place);
    let resumed = stderr(&place.call(&["resume", "bakery/cake"]).code(1));
    assert!(resumed.contains("SW0012") && resumed.contains("\"bake\" in version"), "{resumed}");
    // A start of it would find nobody who could execute it, so the program does not offer it.
    assert!(stderr(&place.call(&["start", "bake"]).code(1)).contains("SW0012"));
    assert!(stderr(&place.call(&["resume", "bakery/none"]).code(1)).contains("SW0013"));
    place.call(&["start", "double", "--input", "two"]).code(2);
    place.call(&["start"]).code(2);
}

/// A run that another program has started.
fn start_elsewhere(place: &Place) {
    let runtime = tokio::runtime::Runtime::new().expect("a test can have a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(&place.store).await.expect("it opens");
        let mut builder = Engine::builder(store).client_only().default_tenant("bakery");
        let bake = builder.function("bake", async |_: Ctx<()>| Ok(()));
        let engine = builder.start().await.expect("it starts");
        engine.start(&bake, ()).id("cake").await.expect("it is started");
        engine.stop_gracefully().await;
    });
}

#[test]
fn runs_of_a_codec_of_the_program_are_started_and_read_by_it() {
    let place = Place::new();
    let call = |args: &[&str]| {
        let app = App::new(|builder| {
            let mut builder = builder.default_tenant("bakery").codec(OtherCodec);
            builder.function("double", async |ctx: Ctx<u64>| Ok(2 * ctx.input()));
            builder
        });
        app.args([&["shop"], args, &["--store", &place.store]].concat()).run_blocking()
    };
    let start = ["start", "double", "--id", "d", "--input", "21"];
    assert_eq!(call(&start), ExitCode::SUCCESS);
    for _ in 0..2 {
        assert_eq!(call(&["resume", "bakery/d"]), ExitCode::SUCCESS);
    }
    let shown = place.record(&["show", "bakery/d", "--payloads"]);
    assert_eq!(
        (&shown["input"]["codec"], &shown["run"]["status"]),
        (&json!("other"), &json!("COMPLETED"))
    );
}

/// JSON under another tag.
struct OtherCodec;

impl Codec for OtherCodec {
    fn tag(&self) -> &'static str {
        "other"
    }

    fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, CodecError> {
        JsonCodec.encode(value)
    }

    fn decode(
        &self,
        bytes: &[u8],
        read: &mut dyn FnMut(
            &mut dyn erased_serde::Deserializer<'_>,
        ) -> Result<(), erased_serde::Error>,
    ) -> Result<(), CodecError> {
        JsonCodec.decode(bytes, read)
    }
}

#[test]
fn help_and_version_are_those_of_the_program() {
    let help = stdout(&Place::new().call(&["start", "--help"]).success());
    assert!(help.contains("  shop start order --id order-4711"), "{help}");
    assert!(help.contains("--tenant"), "{help}");
    let version = stdout(&Place::new().call(&["--version"]).success());
    assert!(version.starts_with("shop (stepwell "), "{version}");
}
