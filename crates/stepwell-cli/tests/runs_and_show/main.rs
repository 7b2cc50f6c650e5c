//! `stepwell runs`, `show`, `signal` and `cancel` as their users meet them, on a SQLite file and on
//! PostgreSQL.

mod command;
mod forced;
mod listing;
mod one_run;
mod payloads;
mod refusals;
mod signals;
mod story;
