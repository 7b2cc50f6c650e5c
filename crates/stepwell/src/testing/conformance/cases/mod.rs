//! The one list of all cases, in two files.
//!
//! A case that is written but not listed here is dead code, which the compiler reports.

mod fleet;
mod runs;
