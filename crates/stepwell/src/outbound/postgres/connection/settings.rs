//! Settings of the server that the store's transactions rest on.

use std::time::Duration;

use super::options::{Access, PostgresOptions};

/// A process that freezes inside a transaction loses it after this span, and its locks with it.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(5);

/// What plans rest on. Statements join a few given rows with large tables by their keys. On an
/// empty table the planner prefers to read it whole, and a prepared statement keeps such a plan
/// when the table has grown. With that certain, one plan serves every call.
pub(crate) const PLANNER_SETTINGS: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    // The first tasks of a queue come from its index in order, however many there are.
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// A server or role that makes commits lazy would lose what was acknowledged; stronger settings
/// than `on` stay.
fn durable(is_local: bool) -> String {
    format!(
        "select set_config('synchronous_commit', 'on', {is_local}) \
         where current_setting('synchronous_commit') = 'off'"
    )
}

/// Time-outs and what plans rest on.
fn settings(set: &str, options: &PostgresOptions) -> String {
    let timeout = options.statement_timeout.as_millis().min(i32::MAX as u128);
    let idle = IDLE_IN_TRANSACTION_MAX.as_millis();
    let timeouts = [
        format!("{set} statement_timeout = {timeout}"),
        format!("{set} idle_in_transaction_session_timeout = {idle}"),
    ];
    let plans = PLANNER_SETTINGS.map(|(name, value)| format!("{set} {name} = {value}"));
    [timeouts.join("; "), plans.join("; ")].join("; ")
}

/// What a connection is set to once, where nobody else uses it.
pub(crate) fn session_settings(options: &PostgresOptions) -> String {
    format!("{}; {}", settings("set", options), durable(false))
}

/// How a transaction begins.
pub(crate) fn begin(options: &PostgresOptions) -> String {
    // A server or role may have another default.
    let access = if options.access == Access::Read { "read only" } else { "read write" };
    let begin = format!("begin isolation level read committed {access}");
    if options.is_pooled {
        return format!("{begin}; {}; {}", settings("set local", options), durable(true));
    }
    begin
}
