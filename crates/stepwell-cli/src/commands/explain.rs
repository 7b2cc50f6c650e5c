//! `stepwell explain`: the page of an error code, or the list of all codes.

use serde::Serialize;
use stepwell::Code;
use stepwell::cli::{Output, Tone};

use super::Failure;
use crate::args::ExplainArgs;

/// A code as JSON.
#[derive(Serialize)]
struct CodeRecord {
    code: String,
    title: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

pub(super) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    match &args.code {
        Some(text) => print_page(parse(text)?, output),
        None => print_list(output),
    }
}

fn parse(text: &str) -> Result<Code, Failure> {
    text.to_uppercase().parse().map_err(|_| Failure::Usage {
        message: format!("there is no error code {text:?}; codes look like SW0007"),
        hint: "`stepwell explain` lists them all",
    })
}

fn print_page(code: Code, output: Output) -> Result<(), Failure> {
    let page = stepwell::explain(code);
    if output.is_json() {
        let record = CodeRecord { code: code.to_string(), title: title(code), page: Some(page) };
        return Ok(output.record(&record)?);
    }
    for line in page.lines() {
        let tone = if line.starts_with('#') { Tone::Strong } else { Tone::Plain };
        output.line(&output.paint(tone, line))?;
    }
    Ok(())
}

fn print_list(output: Output) -> Result<(), Failure> {
    for code in Code::ALL.iter().copied() {
        if output.is_json() {
            let record = CodeRecord { code: code.to_string(), title: title(code), page: None };
            output.record(&record)?;
        } else {
            let name = output.paint(Tone::Strong, &code.to_string());
            output.line(&format!("{name}  {}", title(code)))?;
        }
    }
    Ok(())
}

/// What the first line of a page says besides the code.
fn title(code: Code) -> &'static str {
    let heading = stepwell::explain(code).lines().next().unwrap_or_default();
    heading.split_once(": ").map_or(heading, |(_, title)| title)
}
