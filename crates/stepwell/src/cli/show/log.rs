//! The log of a run.

use super::picture::RunPicture;
use crate::cli::words::later_clock_millis;
use crate::cli::{Failure, Output, Tone, log_table};

/// Prints the newest events, in their order.
pub(super) fn print(picture: &RunPicture, lines_max: usize, output: Output) -> Result<(), Failure> {
    let n_events = picture.log.len();
    let n_left_out = if lines_max == 0 { 0 } else { n_events.saturating_sub(lines_max) };
    output.line("")?;
    output.line(&output.paint(Tone::Strong, "Log (UTC)"))?;
    if n_left_out > 0 {
        let earlier = format!("{n_left_out} earlier events; --lines 0 shows all of them");
        output.line(&output.paint(Tone::Faint, &earlier))?;
    }
    let started_at = picture.row.started_at;
    let at = |at| later_clock_millis(started_at, at);
    Ok(log_table(output, &picture.log[n_left_out..], at)?)
}
