//! Payloads are shown to those who ask for them, and to nobody else.

use rstest::rstest;
use stepwell::Workflow;
use stepwell::ports::{Codec, CodecError, JsonCodec};
use stepwell::testing::TestEngine;

use crate::command::{records, stdout, stepwell_on};
use crate::story::{CENTS, Kind, RUNS, SECRET, Story};

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn payloads_are_not_shown_unless_asked_for(#[case] kind: Kind) {
    let story = Story::tell(kind);
    for (name, _) in RUNS {
        for args in [&["show", name][..], &["show", name, "--json"]] {
            let text = stdout(&stepwell_on(&story.store, args).success());
            assert!(!text.contains(SECRET) && !text.contains("parcel-1"), "{text}");
        }
    }
}

#[rstest]
#[case::sqlite(Kind::Sqlite)]
#[case::postgres(Kind::Postgres)]
fn payloads_are_shown_digit_for_digit(#[case] kind: Kind) {
    let story = Story::tell(kind);
    let args = ["show", "bakery/well", "--payloads"];
    let text = stdout(&stepwell_on(&story.store, &args).success());
    let input = format!(
        "\nInput\n{{\n  \"card\": \"{SECRET}\",\n  \"cents\": {CENTS},\n  \"items\": [\n    \
         \"cake\",\n    \"bread\"\n  ]\n}}\n"
    );
    assert!(text.contains(&input), "{text}");
    assert!(text.contains(&format!("\nOutput of charge\n\"{SECRET}\"\n")), "{text}");
    assert!(text.contains("\nOutput of ship\n\"parcel-1\"\n"), "{text}");

    let json = stdout(&stepwell_on(&story.store, &[&args[..], &["--json"]].concat()).success());
    assert!(json.contains(&format!("\"cents\":{CENTS}")), "{json}");
}

#[test]
fn what_has_no_output_of_its_own_shows_none() {
    let story = Story::tell(Kind::Sqlite);
    let args = ["show", "bakery/declined", "--payloads", "--json"];
    let run = records(&stepwell_on(&story.store, &args).success()).remove(0);
    assert_eq!(run["input"]["codec"], "json");
    let tasks = run["tasks"].as_array().expect("it is a list");
    let with_value: Vec<_> =
        tasks.iter().filter(|task| task["output"].get("value").is_some()).collect();
    assert_eq!(with_value.len(), 1);
    assert_eq!(with_value[0]["step"], "check");
    let text = stdout(&stepwell_on(&story.store, &args[..3]).success());
    assert!(text.contains("Output of check") && !text.contains("Output of charge"), "{text}");
    assert!(!text.contains("Output of on_failure"), "{text}");
}

/// JSON under another tag, as of a codec that the binary does not have.
pub(crate) struct OtherCodec;

impl Codec for OtherCodec {
    fn tag(&self) -> &'static str {
        "other"
    }

    fn encode(&self, value: &dyn stepwell::erased_serde::Serialize) -> Result<Vec<u8>, CodecError> {
        JsonCodec.encode(value)
    }

    fn decode(
        &self,
        bytes: &[u8],
        read: &mut dyn FnMut(
            &mut dyn stepwell::erased_serde::Deserializer<'_>,
        ) -> Result<(), stepwell::erased_serde::Error>,
    ) -> Result<(), CodecError> {
        JsonCodec.decode(bytes, read)
    }
}

#[test]
fn payloads_of_another_codec_are_told_by_size_and_tag() {
    let folder = tempfile::TempDir::new().expect("there is room for a file");
    let path = folder.path().join("shop.db");
    let mut w = Workflow::define::<String, ()>("echo");
    let echo = w.step("echo").run(async |ctx| Ok(ctx.input().clone()));
    let mut builder = TestEngine::on_sqlite(&path).codec(OtherCodec);
    let echo = builder.workflow(w.output(echo));
    let engine = builder.start().expect("it starts");
    let run = engine.start(&echo, SECRET.to_owned()).tenant("bakery").id("one").now();
    run.and_then(|run| run.result()).expect("it completes");

    let store = path.to_str().expect("a plain path");
    let args = ["show", "bakery/one", "--payloads"];
    let text = stdout(&stepwell_on(store, &args).success());
    assert!(text.contains("\nInput\n11 bytes, written by the codec \"other\"\n"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
    let json = stepwell_on(store, &[&args[..], &["--json"]].concat()).success();
    let input = records(&json).remove(0)["input"].clone();
    assert_eq!(input, serde_json::json!({ "codec": "other", "n_bytes": 11 }));
}
