//! The statements of the store, one file each; this is their list.

pub(super) const ADMIT_EXISTING: &str = include_str!("sql/admit_existing.sql");
pub(super) const ALL_TENANTS: &str = include_str!("sql/all_tenants.sql");
pub(super) const ANY_DEAD_WORKER: &str = include_str!("sql/any_dead_worker.sql");
pub(super) const ANY_DUE_TIMER: &str = include_str!("sql/any_due_timer.sql");
pub(super) const BEAT: &str = include_str!("sql/beat.sql");
pub(super) const BURY_WORKERS: &str = include_str!("sql/bury_workers.sql");
pub(super) const CHANGE_SERVICE: &str = include_str!("sql/change_service.sql");
pub(super) const CHECK_LEADER: &str = include_str!("sql/check_leader.sql");
pub(super) const CLAIM_TASKS: &str = include_str!("sql/claim_tasks.sql");
pub(super) const CLEAR_LEADER: &str = include_str!("sql/clear_leader.sql");
pub(super) const CLEAR_SERVE: &str = include_str!("sql/clear_serve.sql");
pub(super) const CLEAR_TIMERS: &str = include_str!("sql/clear_timers.sql");
pub(super) const COUNT_ADMITTED: &str = include_str!("sql/count_admitted.sql");
pub(super) const DEFINITION_REVISIONS: &str = include_str!("sql/definition_revisions.sql");
pub(super) const DUE_TIMERS: &str = include_str!("sql/due_timers.sql");
pub(super) const DUMP_ATTEMPTS: &str = include_str!("sql/dump_attempts.sql");
pub(super) const DUMP_EVENTS: &str = include_str!("sql/dump_events.sql");
pub(super) const DUMP_RUNS: &str = include_str!("sql/dump_runs.sql");
pub(super) const DUMP_TASKS: &str = include_str!("sql/dump_tasks.sql");
pub(super) const END_CLAIMS: &str = include_str!("sql/end_claims.sql");
pub(super) const FIND_ATTEMPTS: &str = include_str!("sql/find_attempts.sql");
pub(super) const FIND_IDLE_WORKER: &str = include_str!("sql/find_idle_worker.sql");
pub(super) const FIND_RUNS: &str = include_str!("sql/find_runs.sql");
pub(super) const FIND_WORKER: &str = include_str!("sql/find_worker.sql");
pub(super) const FIRST_LEFT: &str = include_str!("sql/first_left.sql");
pub(super) const FIRST_READY: &str = include_str!("sql/first_ready.sql");
pub(super) const FORGET_ADMITTED: &str = include_str!("sql/forget_admitted.sql");
pub(super) const FORGET_PARKED: &str = include_str!("sql/forget_parked.sql");
pub(super) const FORGET_THROTTLED: &str = include_str!("sql/forget_throttled.sql");
pub(super) const FREE_ADMITTED: &str = include_str!("sql/free_admitted.sql");
pub(super) const GREATEST_POSITIONS: &str = include_str!("sql/greatest_positions.sql");
pub(super) const HAND_OVER: &str = include_str!("sql/hand_over.sql");
pub(super) const HOLD_TENANTS: &str = include_str!("sql/hold_tenants.sql");
pub(super) const INSERT_ADMITTED: &str = include_str!("sql/insert_admitted.sql");
pub(super) const INSERT_ATTEMPTS: &str = include_str!("sql/insert_attempts.sql");
pub(super) const INSERT_DEFINITION: &str = include_str!("sql/insert_definition.sql");
pub(super) const INSERT_EVENTS: &str = include_str!("sql/insert_events.sql");
pub(super) const INSERT_INPUTS: &str = include_str!("sql/insert_inputs.sql");
pub(super) const INSERT_NEW_RUNS: &str = include_str!("sql/insert_new_runs.sql");
pub(super) const INSERT_OUTPUTS: &str = include_str!("sql/insert_outputs.sql");
pub(super) const INSERT_PARKED: &str = include_str!("sql/insert_parked.sql");
pub(super) const INSERT_READY: &str = include_str!("sql/insert_ready.sql");
pub(super) const INSERT_RUNS: &str = include_str!("sql/insert_runs.sql");
pub(super) const INSERT_SERVE: &str = include_str!("sql/insert_serve.sql");
pub(super) const INSERT_TASKS: &str = include_str!("sql/insert_tasks.sql");
pub(super) const INSERT_TENANT: &str = include_str!("sql/insert_tenant.sql");
pub(super) const INSERT_THROTTLED: &str = include_str!("sql/insert_throttled.sql");
pub(super) const LEAVE_LEADER_LOCK: &str = include_str!("sql/leave_leader_lock.sql");
pub(super) const LIST_RUNS: &str = include_str!("sql/list_runs.sql");
pub(super) const LOCK_DEAD_WORKERS: &str = include_str!("sql/lock_dead_workers.sql");
pub(super) const LOCK_DEFINITIONS: &str = include_str!("sql/lock_definitions.sql");
pub(super) const LOCK_LEADER: &str = include_str!("sql/lock_leader.sql");
pub(super) const LOCK_OPEN_TASKS: &str = include_str!("sql/lock_open_tasks.sql");
pub(super) const LOCK_RUNS: &str = include_str!("sql/lock_runs.sql");
pub(super) const LOCK_STANDINGS: &str = include_str!("sql/lock_standings.sql");
pub(super) const LOCK_TASKS: &str = include_str!("sql/lock_tasks.sql");
pub(super) const LOCK_TENANT_TABLE: &str = include_str!("sql/lock_tenant_table.sql");
pub(super) const LOCK_TENANTS: &str = include_str!("sql/lock_tenants.sql");
pub(super) const LOCK_WORKER: &str = include_str!("sql/lock_worker.sql");
pub(super) const LOOK_AT_LINE: &str = include_str!("sql/look_at_line.sql");
pub(super) const LOOK_AT_QUEUE: &str = include_str!("sql/look_at_queue.sql");
pub(super) const MAKE_STANDINGS: &str = include_str!("sql/make_standings.sql");
pub(super) const MISCOUNTED_CLAIMS: &str = include_str!("sql/miscounted_claims.sql");
pub(super) const NEXT_EPOCH: &str = include_str!("sql/next_epoch.sql");
pub(super) const NEXT_THROTTLED: &str = include_str!("sql/next_throttled.sql");
pub(super) const NEXT_TIMER: &str = include_str!("sql/next_timer.sql");
pub(super) const PASS_QUEUE: &str = include_str!("sql/pass_queue.sql");
pub(super) const PASS_THE_TURN: &str = include_str!("sql/pass_the_turn.sql");
pub(super) const PASSED_OVER: &str = include_str!("sql/passed_over.sql");
pub(super) const READ_ADMITTED: &str = include_str!("sql/read_admitted.sql");
pub(super) const READ_ATTEMPTS: &str = include_str!("sql/read_attempts.sql");
pub(super) const READ_CLAIMS: &str = include_str!("sql/read_claims.sql");
pub(super) const READ_DEFINITION: &str = include_str!("sql/read_definition.sql");
pub(super) const READ_DEFINITIONS: &str = include_str!("sql/read_definitions.sql");
pub(super) const READ_ENDED: &str = include_str!("sql/read_ended.sql");
pub(super) const READ_EVENTS: &str = include_str!("sql/read_events.sql");
pub(super) const READ_FRONTIERS: &str = include_str!("sql/read_frontiers.sql");
pub(super) const READ_INPUTS: &str = include_str!("sql/read_inputs.sql");
pub(super) const READ_NOW: &str = include_str!("sql/read_now.sql");
pub(super) const READ_OUTPUTS: &str = include_str!("sql/read_outputs.sql");
pub(super) const READ_PLACES: &str = include_str!("sql/read_places.sql");
pub(super) const READ_RUN: &str = include_str!("sql/read_run.sql");
pub(super) const READ_RUNS: &str = include_str!("sql/read_runs.sql");
pub(super) const READ_SERVED: &str = include_str!("sql/read_served.sql");
pub(super) const READ_SOME_OUTPUTS: &str = include_str!("sql/read_some_outputs.sql");
pub(super) const READ_SOME_TASKS: &str = include_str!("sql/read_some_tasks.sql");
pub(super) const READ_TASKS: &str = include_str!("sql/read_tasks.sql");
pub(super) const READ_TENANTS: &str = include_str!("sql/read_tenants.sql");
pub(super) const READ_TENANTS_BY_NAME: &str = include_str!("sql/read_tenants_by_name.sql");
pub(super) const READ_TIMERS: &str = include_str!("sql/read_timers.sql");
pub(super) const READ_WORKER_NAMES: &str = include_str!("sql/read_worker_names.sql");
pub(super) const READ_WORKER_NUMBERS: &str = include_str!("sql/read_worker_numbers.sql");
pub(super) const READ_WORKERS: &str = include_str!("sql/read_workers.sql");
pub(super) const RENEW_LEADER: &str = include_str!("sql/renew_leader.sql");
pub(super) const RETIRE_WORKER: &str = include_str!("sql/retire_worker.sql");
pub(super) const SET_DEFAULT_TENANT: &str = include_str!("sql/set_default_tenant.sql");
pub(super) const SET_LEADER: &str = include_str!("sql/set_leader.sql");
pub(super) const SET_STANDINGS: &str = include_str!("sql/set_standings.sql");
pub(super) const SET_TENANT: &str = include_str!("sql/set_tenant.sql");
pub(super) const SET_TIMERS: &str = include_str!("sql/set_timers.sql");
pub(super) const SHARE_SERVICE: &str = include_str!("sql/share_service.sql");
pub(super) const SHARE_TENANTS: &str = include_str!("sql/share_tenants.sql");
pub(super) const TAKE_LEADER_LOCK: &str = include_str!("sql/take_leader_lock.sql");
pub(super) const TAKE_NUMBERS: &str = include_str!("sql/take_numbers.sql");
pub(super) const TAKE_READY: &str = include_str!("sql/take_ready.sql");
pub(super) const TAKE_UNSERVED: &str = include_str!("sql/take_unserved.sql");
pub(super) const UNPARK: &str = include_str!("sql/unpark.sql");
pub(super) const UPDATE_DEFINITION: &str = include_str!("sql/update_definition.sql");
pub(super) const UPDATE_RUNS: &str = include_str!("sql/update_runs.sql");
pub(super) const UPDATE_TASKS: &str = include_str!("sql/update_tasks.sql");
pub(super) const UPSERT_TASKS: &str = include_str!("sql/upsert_tasks.sql");
pub(super) const UPSERT_WORKER: &str = include_str!("sql/upsert_worker.sql");
pub(super) const VIEW_TENANT: &str = include_str!("sql/view_tenant.sql");
pub(super) const YOUNGEST_READY: &str = include_str!("sql/youngest_ready.sql");

/// What plans rest on. Statements join a few given rows with large tables by their keys. On an
/// empty table the planner prefers to read it whole, and a prepared statement keeps such a plan
/// when the table has grown. With that certain, one plan serves every call.
pub(super) const PLANNER_SETTINGS: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    // The first tasks of a queue come from its index in order, however many there are.
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// Every statement, for the test that prepares each against the migrated schema.
#[cfg(feature = "testing")]
pub(super) const ALL: &[(&str, &str)] = &[
    ("admit_existing", ADMIT_EXISTING),
    ("all_tenants", ALL_TENANTS),
    ("any_dead_worker", ANY_DEAD_WORKER),
    ("any_due_timer", ANY_DUE_TIMER),
    ("beat", BEAT),
    ("bury_workers", BURY_WORKERS),
    ("change_service", CHANGE_SERVICE),
    ("check_leader", CHECK_LEADER),
    ("claim_tasks", CLAIM_TASKS),
    ("clear_leader", CLEAR_LEADER),
    ("clear_serve", CLEAR_SERVE),
    ("clear_timers", CLEAR_TIMERS),
    ("count_admitted", COUNT_ADMITTED),
    ("definition_revisions", DEFINITION_REVISIONS),
    ("due_timers", DUE_TIMERS),
    ("dump_attempts", DUMP_ATTEMPTS),
    ("dump_events", DUMP_EVENTS),
    ("dump_runs", DUMP_RUNS),
    ("dump_tasks", DUMP_TASKS),
    ("end_claims", END_CLAIMS),
    ("find_attempts", FIND_ATTEMPTS),
    ("find_idle_worker", FIND_IDLE_WORKER),
    ("find_runs", FIND_RUNS),
    ("find_worker", FIND_WORKER),
    ("first_left", FIRST_LEFT),
    ("first_ready", FIRST_READY),
    ("forget_admitted", FORGET_ADMITTED),
    ("forget_parked", FORGET_PARKED),
    ("forget_throttled", FORGET_THROTTLED),
    ("free_admitted", FREE_ADMITTED),
    ("greatest_positions", GREATEST_POSITIONS),
    ("hand_over", HAND_OVER),
    ("hold_tenants", HOLD_TENANTS),
    ("insert_admitted", INSERT_ADMITTED),
    ("insert_attempts", INSERT_ATTEMPTS),
    ("insert_definition", INSERT_DEFINITION),
    ("insert_events", INSERT_EVENTS),
    ("insert_inputs", INSERT_INPUTS),
    ("insert_new_runs", INSERT_NEW_RUNS),
    ("insert_outputs", INSERT_OUTPUTS),
    ("insert_parked", INSERT_PARKED),
    ("insert_ready", INSERT_READY),
    ("insert_runs", INSERT_RUNS),
    ("insert_serve", INSERT_SERVE),
    ("insert_tasks", INSERT_TASKS),
    ("insert_tenant", INSERT_TENANT),
    ("insert_throttled", INSERT_THROTTLED),
    ("leave_leader_lock", LEAVE_LEADER_LOCK),
    ("list_runs", LIST_RUNS),
    ("lock_dead_workers", LOCK_DEAD_WORKERS),
    ("lock_definitions", LOCK_DEFINITIONS),
    ("lock_leader", LOCK_LEADER),
    ("lock_open_tasks", LOCK_OPEN_TASKS),
    ("lock_runs", LOCK_RUNS),
    ("lock_standings", LOCK_STANDINGS),
    ("lock_tasks", LOCK_TASKS),
    ("lock_tenant_table", LOCK_TENANT_TABLE),
    ("lock_tenants", LOCK_TENANTS),
    ("lock_worker", LOCK_WORKER),
    ("look_at_line", LOOK_AT_LINE),
    ("look_at_queue", LOOK_AT_QUEUE),
    ("make_standings", MAKE_STANDINGS),
    ("miscounted_claims", MISCOUNTED_CLAIMS),
    ("next_epoch", NEXT_EPOCH),
    ("next_throttled", NEXT_THROTTLED),
    ("next_timer", NEXT_TIMER),
    ("pass_queue", PASS_QUEUE),
    ("pass_the_turn", PASS_THE_TURN),
    ("passed_over", PASSED_OVER),
    ("read_admitted", READ_ADMITTED),
    ("read_attempts", READ_ATTEMPTS),
    ("read_claims", READ_CLAIMS),
    ("read_definition", READ_DEFINITION),
    ("read_definitions", READ_DEFINITIONS),
    ("read_ended", READ_ENDED),
    ("read_events", READ_EVENTS),
    ("read_frontiers", READ_FRONTIERS),
    ("read_inputs", READ_INPUTS),
    ("read_now", READ_NOW),
    ("read_outputs", READ_OUTPUTS),
    ("read_places", READ_PLACES),
    ("read_run", READ_RUN),
    ("read_runs", READ_RUNS),
    ("read_served", READ_SERVED),
    ("read_some_outputs", READ_SOME_OUTPUTS),
    ("read_some_tasks", READ_SOME_TASKS),
    ("read_tasks", READ_TASKS),
    ("read_tenants", READ_TENANTS),
    ("read_tenants_by_name", READ_TENANTS_BY_NAME),
    ("read_timers", READ_TIMERS),
    ("read_worker_names", READ_WORKER_NAMES),
    ("read_worker_numbers", READ_WORKER_NUMBERS),
    ("read_workers", READ_WORKERS),
    ("renew_leader", RENEW_LEADER),
    ("retire_worker", RETIRE_WORKER),
    ("set_default_tenant", SET_DEFAULT_TENANT),
    ("set_leader", SET_LEADER),
    ("set_standings", SET_STANDINGS),
    ("set_tenant", SET_TENANT),
    ("set_timers", SET_TIMERS),
    ("share_service", SHARE_SERVICE),
    ("share_tenants", SHARE_TENANTS),
    ("take_leader_lock", TAKE_LEADER_LOCK),
    ("take_numbers", TAKE_NUMBERS),
    ("take_ready", TAKE_READY),
    ("take_unserved", TAKE_UNSERVED),
    ("unpark", UNPARK),
    ("update_definition", UPDATE_DEFINITION),
    ("update_runs", UPDATE_RUNS),
    ("update_tasks", UPDATE_TASKS),
    ("upsert_tasks", UPSERT_TASKS),
    ("upsert_worker", UPSERT_WORKER),
    ("view_tenant", VIEW_TENANT),
    ("youngest_ready", YOUNGEST_READY),
];
