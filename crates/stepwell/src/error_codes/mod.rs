//! A page for every error code: what happened, why, and the remedy.
//!
//! The pages are part of the program, so that `stepwell explain` answers without a network and
//! always for the version at hand.

use stepwell_core::code::Code;

/// The page of a code, as Markdown. Its first line is a heading with the code and a title.
///
/// ```
/// let page = stepwell::explain(stepwell::Code::BadConfig);
/// assert!(page.starts_with("# SW0007: "));
/// ```
#[must_use]
pub fn explain(code: Code) -> &'static str {
    match code {
        Code::Cycle => include_str!("SW0001.md"),
        Code::UnknownParent => include_str!("SW0002.md"),
        Code::BadName => include_str!("SW0003.md"),
        Code::DuplicateName => include_str!("SW0004.md"),
        Code::BadSize => include_str!("SW0005.md"),
        Code::BadPolicy => include_str!("SW0006.md"),
        Code::BadConfig => include_str!("SW0007.md"),
        Code::PayloadTooLarge => include_str!("SW0008.md"),
        Code::NotSerialisable => include_str!("SW0009.md"),
        Code::DoesNotFit => include_str!("SW0010.md"),
        Code::RunIdConflict => include_str!("SW0011.md"),
        Code::UnknownWorkflow => include_str!("SW0012.md"),
        Code::UnknownRun => include_str!("SW0013.md"),
        Code::UnknownStep => include_str!("SW0014.md"),
        Code::Stopped => include_str!("SW0015.md"),
        Code::NoTenant => include_str!("SW0016.md"),
        Code::RunFailed => include_str!("SW0017.md"),
        Code::RunCancelled => include_str!("SW0018.md"),
        Code::WaitTimedOut => include_str!("SW0019.md"),
        Code::StoreUnavailable => include_str!("SW0020.md"),
        Code::StoreCorrupt => include_str!("SW0021.md"),
        Code::FairnessLimit => include_str!("SW0022.md"),
        Code::VersionConflict => include_str!("SW0023.md"),
        Code::BlockingInAsync => include_str!("SW0024.md"),
        Code::StepSkipped => include_str!("SW0025.md"),
        Code::NotLeader => include_str!("SW0026.md"),
        Code::LoginRefused => include_str!("SW0027.md"),
        Code::MissingRights => include_str!("SW0028.md"),
        Code::NewerSchema => include_str!("SW0029.md"),
        Code::OlderSchema => include_str!("SW0030.md"),
        Code::ReadOnlyStore => include_str!("SW0031.md"),
        Code::NotAStore => include_str!("SW0032.md"),
        Code::NoSuchPlace => include_str!("SW0033.md"),
        Code::NoEncryption => include_str!("SW0034.md"),
        Code::BadArgument => include_str!("SW0035.md"),
        Code::SignalKeyConflict => include_str!("SW0036.md"),
        Code::TooManySignals => include_str!("SW0037.md"),
        Code::RunTakesNoSignals => include_str!("SW0038.md"),
        Code::OtherCodec => include_str!("SW0039.md"),
        Code::DamagedStore => include_str!("SW0050.md"),
        // The enum may grow in another crate; the test below finds a code without a page.
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_whose_first_line_names_it() {
        for code in Code::ALL {
            let page = explain(*code);
            let title = page.lines().next().and_then(|line| line.strip_prefix("# "));
            let title = title.and_then(|line| line.strip_prefix(&format!("{code}: ")));
            assert!(title.is_some_and(|title| !title.is_empty()), "{code}: {page}");
        }
    }

    #[test]
    fn every_page_says_what_happened_why_and_what_to_do() {
        for code in Code::ALL {
            let page = explain(*code);
            let has = |heading: &str| page.lines().any(|line| line == heading);
            assert!(has("## What happened") && has("## Remedy"), "{code}");
            assert!(has("## Why it is so") || has("## Cause"), "{code}");
            let n_lines = page.lines().count();
            assert!((8..=25).contains(&n_lines), "{code} has {n_lines} lines");
        }
    }
}
