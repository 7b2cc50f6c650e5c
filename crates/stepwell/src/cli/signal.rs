//! `stepwell signal`: tells a run something from outside.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stepwell_core::code::Code;

use super::client::Client;
use super::pretty_json::compact;
use super::run_name::RunArgs;
use super::words::printable;
use super::{Failure, Output, StoreArgs};
use crate::api::Sent;
use crate::error::Error;
use crate::ports::{Codec, JsonCodec, RunView};

const EXAMPLES: &str = "\
Examples:
  stepwell signal bakery/order-4711 paid '{\"amount\": 42}' --store shop.db
  stepwell signal bakery/order-4711 approved --key evt-123
  stepwell signal order-4711 paid 42 --tenant bakery --attr currency=EUR

The payload is JSON; without one it is null. A signal that comes before its wait is kept.";

/// Options of `stepwell signal`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SignalArgs {
    #[command(flatten)]
    run: RunArgs,

    /// The name of the signal
    #[arg(value_name = "NAME")]
    name: String,

    /// The payload, as JSON
    #[arg(
        value_name = "JSON",
        default_value = "null",
        allow_negative_numbers = true,
        value_parser = parse_json
    )]
    payload: Box<RawValue>,

    #[command(flatten)]
    store: StoreArgs,

    /// What tells this signal from others to the run; sent again under it, it counts once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// An attribute beside the payload; may be given several times
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = parse_attribute)]
    attributes: Vec<(String, String)>,
}

/// What became of the signal, as JSON.
#[derive(Serialize)]
struct SignalRecord<'run> {
    record: &'static str,
    tenant: &'run str,
    id: &'run str,
    signal: &'run str,
    number: u64,
}

pub(super) async fn run(args: &SignalArgs, output: Output) -> Result<(), Failure> {
    let client = Client::connect(&args.store).await?;
    let found = args.run.find(&client.store).await?;
    check_codec(&client, &found).await?;
    let run = client.run(&found).await?;
    let mut signal = run.signal(&args.name, &args.payload);
    for (name, value) in &args.attributes {
        signal = signal.attr(name, value);
    }
    if let Some(key) = &args.key {
        signal = signal.key(key);
    }
    let sent = signal.await?;
    client.close().await;
    let (tenant, id, signal) = (run.tenant(), run.id(), args.name.as_str());
    let name = printable(&format!("{tenant}/{id}"));
    let refuse = |why: String| {
        let message = format!("run {name:?} {why}; signal {signal:?} was not stored");
        Err(Error::refused(Code::RunTakesNoSignals, message).into())
    };
    let number = match sent {
        Sent::Accepted { number } => number,
        Sent::AlreadyEnding(status) => return refuse(format!("is ending as {status}")),
        Sent::AlreadyEnded(status) => return refuse(format!("has ended as {status}")),
    };
    if output.is_json() {
        let record = SignalRecord { record: "signal", tenant, id, signal, number };
        return Ok(output.record(&record)?);
    }
    let signal = printable(signal);
    Ok(output.line(&format!("Run {name} has signal {signal} as its number {number}"))?)
}

/// Steps could not read what this program writes if the run's payloads are not JSON.
async fn check_codec(client: &Client, found: &RunView) -> Result<(), Failure> {
    let input = client.store.input(found.row.key).await?;
    let other = input.filter(|input| !["", JsonCodec.tag()].contains(&&*input.codec));
    let Some(other) = other else { return Ok(()) };
    let message = format!(
        "codec {:?} wrote the payloads of this run, and commands write JSON only; send the signal \
         by `engine.signal(..)` from a program that is built with the codec",
        other.codec
    );
    Err(Error::refused(Code::OtherCodec, message).into())
}

/// Reads a payload. Its digits stay as they were typed: a value would round long numbers.
pub(super) fn parse_json(text: &str) -> Result<Box<RawValue>, String> {
    let refuse = |why| format!("no JSON to send: {why}; a text needs its quotes, as in '\"yes\"'");
    // Raw JSON may hold what no step could read: half a character, or a number beyond all floats.
    serde_json::from_str::<Value>(text).map_err(refuse)?;
    RawValue::from_string(compact(text)).map_err(refuse)
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "give NAME=VALUE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_and_nothing_else() {
        for text in ["42", "\"yes\"", "null", r#"{"b":[1,2],"a":"x y"}"#] {
            assert_eq!(parse_json(text).expect(text).get(), text);
        }
        let spaced = parse_json(" { \"a\" :\n 1 } ").expect("it is JSON");
        assert_eq!(spaced.get(), "{\"a\":1}");
        assert!(parse_json("yes").is_err_and(|why| why.contains("quotes")));
    }

    #[test]
    fn the_digits_of_a_payload_stay_as_they_were_typed() {
        let long = "9".repeat(60);
        for text in ["-5", "-0.10", "1e-7", "18446744073709551616", "0.1000000000000000055", &long]
        {
            assert_eq!(parse_json(text).expect(text).get(), text);
        }
    }

    #[test]
    fn what_no_step_could_read_is_refused() {
        let deep = "[".repeat(1_000) + &"]".repeat(1_000);
        for text in ["", "1e999", &"9".repeat(400), "\"\\ud800\"", "NaN", "-", &deep] {
            assert!(parse_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_attribute_has_a_name_and_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse_attribute("order=4711"), pair("order", "4711"));
        assert_eq!(parse_attribute("a=b=c"), pair("a", "b=c"));
        assert!(parse_attribute("order").is_err());
    }
}
