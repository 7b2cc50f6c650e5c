//! Payloads go through a codec of the user's choice.

use stepwell::{Code, FailureKind, Retry, StepError, Workflow};

use crate::support::{HOUR, Inverted, World, beside, builder, refused, trail};

fn sums() -> Workflow<Vec<u32>, u32, World> {
    let mut w = Workflow::define::<Vec<u32>, World>("sums");
    let sum = w.step("sum").run(async |ctx| Ok(ctx.input().iter().sum::<u32>()));
    let none = w.step("none").after(sum).when(|n| *n > 99).run(async |_, n| Ok(n));
    let nap = w.sleep("nap", HOUR).after(sum);
    let last = w.step("last").after((sum, none, nap)).retry(Retry::exponential(1)).run(
        move |ctx, (n, none, ())| async move {
            if ctx.attempt() == 1 {
                return Err(StepError::new("once more"));
            }
            assert_eq!((ctx.output(&sum).await?, none), (n, None));
            Ok(n * 2)
        },
    );
    w.output(last)
}

#[test]
fn another_codec_carries_inputs_outputs_and_conditions() {
    // R28
    let mut builder = builder().codec(Inverted).state(World::default());
    let sums = builder.workflow(sums());
    let test = builder.start().unwrap();
    let run = test.start(&sums, vec![1, 2, 3]).id("s").now().unwrap();
    test.run_to_end();
    assert_eq!(run.result().unwrap(), 12);
    assert_eq!(run.outputs().unwrap()["sum"], 6);
    let again = test.start(&sums, vec![1, 2, 3]).id("s").now().unwrap();
    assert_eq!(again.key(), run.key());
    refused(test.start(&sums, vec![1, 2, 4]).id("s").now(), Code::RunIdConflict, &[]);
}

#[test]
fn a_payload_that_another_codec_wrote_is_refused() {
    // R28
    let mut builder = builder().codec(Inverted).state(World::default());
    let handle = builder.workflow(sums());
    let inverted = builder.start().unwrap();
    inverted.start(&handle, vec![1]).id("s").now().unwrap();
    inverted.run_to_end();
    let client = beside(&inverted).configure(|config| config.slots = 0).start().unwrap();
    let run = client.run_handle("test", "s").unwrap();
    refused(run.result(), Code::DoesNotFit, &["\"inverted\"", "\"json\""]);
    refused(run.outputs(), Code::DoesNotFit, &["\"inverted\"", "\"json\""]);
}

#[test]
fn a_step_whose_input_another_codec_wrote_fails_for_good() {
    // R28
    let client = builder().codec(Inverted).state(World::default());
    let mut client = client.configure(|config| config.slots = 0);
    let handle = client.workflow(sums());
    let client = client.start().unwrap();
    let run = client.start(&handle, vec![1]).now().unwrap();
    World::default().beside(&client, sums());
    refused(run.result(), Code::RunFailed, &["SW0010", "\"inverted\""]);
    assert_eq!(trail(&run, "sum"), "QUEUED STARTED FAILED");
    assert_eq!(run.outcome().unwrap().failure.unwrap().failure.kind, FailureKind::Payload);
}

in_memory_only!("here codecs are the point, and stores never look into payloads":
    another_codec_carries_inputs_outputs_and_conditions,
    a_payload_that_another_codec_wrote_is_refused,
    a_step_whose_input_another_codec_wrote_fails_for_good,
);
