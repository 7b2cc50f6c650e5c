//! The statements of the store, one file each; this is their list.

pub(super) const ADVANCE_RUN: &str = include_str!("sql/advance_run.sql");
pub(super) const ANY_READY: &str = include_str!("sql/any_ready.sql");
pub(super) const BEAT: &str = include_str!("sql/beat.sql");
pub(super) const BURY_WORKER: &str = include_str!("sql/bury_worker.sql");
pub(super) const CLAIM_TASK: &str = include_str!("sql/claim_task.sql");
pub(super) const CLEAR_LEADER: &str = include_str!("sql/clear_leader.sql");
pub(super) const CLEAR_QUEUES: &str = include_str!("sql/clear_queues.sql");
pub(super) const CLEAR_SERVE: &str = include_str!("sql/clear_serve.sql");
pub(super) const CLEAR_TIMER: &str = include_str!("sql/clear_timer.sql");
pub(super) const COMPLETE_TASK: &str = include_str!("sql/complete_task.sql");
pub(super) const COUNT_DOWN: &str = include_str!("sql/count_down.sql");
pub(super) const COUNT_PARKED: &str = include_str!("sql/count_parked.sql");
pub(super) const COUNT_TENANTS: &str = include_str!("sql/count_tenants.sql");
pub(super) const COUNT_THROTTLED: &str = include_str!("sql/count_throttled.sql");
pub(super) const DATA_VERSION: &str = include_str!("sql/data_version.sql");
pub(super) const DEFINITION_REVISIONS: &str = include_str!("sql/definition_revisions.sql");
pub(super) const DUE_TIMERS: &str = include_str!("sql/due_timers.sql");
pub(super) const DUMP_ATTEMPTS: &str = include_str!("sql/dump_attempts.sql");
pub(super) const DUMP_EVENTS: &str = include_str!("sql/dump_events.sql");
pub(super) const DUMP_RUNS: &str = include_str!("sql/dump_runs.sql");
pub(super) const DUMP_TASKS: &str = include_str!("sql/dump_tasks.sql");
pub(super) const FIND_ATTEMPT: &str = include_str!("sql/find_attempt.sql");
pub(super) const FIND_RUN: &str = include_str!("sql/find_run.sql");
pub(super) const FIND_TENANT: &str = include_str!("sql/find_tenant.sql");
pub(super) const FIND_WORKER: &str = include_str!("sql/find_worker.sql");
pub(super) const FIRST_READY: &str = include_str!("sql/first_ready.sql");
pub(super) const FIRST_SUSPECTS: &str = include_str!("sql/first_suspects.sql");
pub(super) const FORGET_PARKED: &str = include_str!("sql/forget_parked.sql");
pub(super) const FORGET_THROTTLED: &str = include_str!("sql/forget_throttled.sql");
pub(super) const INSERT_ATTEMPT: &str = include_str!("sql/insert_attempt.sql");
pub(super) const INSERT_DEFINITION: &str = include_str!("sql/insert_definition.sql");
pub(super) const INSERT_EVENT: &str = include_str!("sql/insert_event.sql");
pub(super) const INSERT_INPUT: &str = include_str!("sql/insert_input.sql");
pub(super) const INSERT_OUTPUT: &str = include_str!("sql/insert_output.sql");
pub(super) const INSERT_PARKED: &str = include_str!("sql/insert_parked.sql");
pub(super) const INSERT_PENDING: &str = include_str!("sql/insert_pending.sql");
pub(super) const INSERT_QUEUE: &str = include_str!("sql/insert_queue.sql");
pub(super) const INSERT_RUN: &str = include_str!("sql/insert_run.sql");
pub(super) const INSERT_SERVE: &str = include_str!("sql/insert_serve.sql");
pub(super) const INSERT_TASK: &str = include_str!("sql/insert_task.sql");
pub(super) const INSERT_TENANT: &str = include_str!("sql/insert_tenant.sql");
pub(super) const INSERT_THROTTLED: &str = include_str!("sql/insert_throttled.sql");
pub(super) const IS_SERVED: &str = include_str!("sql/is_served.sql");
pub(super) const LIST_RUNS: &str = include_str!("sql/list_runs.sql");
pub(super) const MOVE_TASK: &str = include_str!("sql/move_task.sql");
pub(super) const NEXT_THROTTLED: &str = include_str!("sql/next_throttled.sql");
pub(super) const NEXT_TIMER: &str = include_str!("sql/next_timer.sql");
pub(super) const PASS_THE_TURN: &str = include_str!("sql/pass_the_turn.sql");
pub(super) const READ_ATTEMPTS: &str = include_str!("sql/read_attempts.sql");
pub(super) const READ_CLAIMS: &str = include_str!("sql/read_claims.sql");
pub(super) const READ_COUNTERS: &str = include_str!("sql/read_counters.sql");
pub(super) const READ_DEFAULTS: &str = include_str!("sql/read_defaults.sql");
pub(super) const READ_DEFINITION: &str = include_str!("sql/read_definition.sql");
pub(super) const READ_DEFINITIONS: &str = include_str!("sql/read_definitions.sql");
pub(super) const READ_ENDED: &str = include_str!("sql/read_ended.sql");
pub(super) const READ_EVENTS: &str = include_str!("sql/read_events.sql");
pub(super) const READ_FRONTIER: &str = include_str!("sql/read_frontier.sql");
pub(super) const READ_GIVEN: &str = include_str!("sql/read_given.sql");
pub(super) const READ_INPUT: &str = include_str!("sql/read_input.sql");
pub(super) const READ_LEADER: &str = include_str!("sql/read_leader.sql");
pub(super) const READ_LEFT: &str = include_str!("sql/read_left.sql");
pub(super) const READ_LEFT_BETWEEN: &str = include_str!("sql/read_left_between.sql");
pub(super) const READ_LIVES: &str = include_str!("sql/read_lives.sql");
pub(super) const READ_OUTPUT: &str = include_str!("sql/read_output.sql");
pub(super) const READ_OUTPUTS: &str = include_str!("sql/read_outputs.sql");
pub(super) const READ_PLACES: &str = include_str!("sql/read_places.sql");
pub(super) const READ_QUEUES: &str = include_str!("sql/read_queues.sql");
pub(super) const READ_READY: &str = include_str!("sql/read_ready.sql");
pub(super) const READ_RUN: &str = include_str!("sql/read_run.sql");
pub(super) const READ_SERVE: &str = include_str!("sql/read_serve.sql");
pub(super) const READ_STANDING: &str = include_str!("sql/read_standing.sql");
pub(super) const READ_TASK: &str = include_str!("sql/read_task.sql");
pub(super) const READ_TASKS: &str = include_str!("sql/read_tasks.sql");
pub(super) const READ_TENANT: &str = include_str!("sql/read_tenant.sql");
pub(super) const READ_TENANTS: &str = include_str!("sql/read_tenants.sql");
pub(super) const READ_TIMERS: &str = include_str!("sql/read_timers.sql");
pub(super) const READ_TOLD: &str = include_str!("sql/read_told.sql");
pub(super) const READ_WORKER_NO: &str = include_str!("sql/read_worker_no.sql");
pub(super) const READ_WORKERS: &str = include_str!("sql/read_workers.sql");
pub(super) const READY_BELOW: &str = include_str!("sql/ready_below.sql");
pub(super) const RETIRE_WORKER: &str = include_str!("sql/retire_worker.sql");
pub(super) const SET_ADMITTED: &str = include_str!("sql/set_admitted.sql");
pub(super) const SET_COUNTERS: &str = include_str!("sql/set_counters.sql");
pub(super) const SET_DEFAULTS: &str = include_str!("sql/set_defaults.sql");
pub(super) const SET_FRONTIER: &str = include_str!("sql/set_frontier.sql");
pub(super) const SET_LEADER: &str = include_str!("sql/set_leader.sql");
pub(super) const SET_STANDING: &str = include_str!("sql/set_standing.sql");
pub(super) const SET_TENANT: &str = include_str!("sql/set_tenant.sql");
pub(super) const SET_TIMER: &str = include_str!("sql/set_timer.sql");
pub(super) const UNPARK: &str = include_str!("sql/unpark.sql");
pub(super) const UNSERVED_READY: &str = include_str!("sql/unserved_ready.sql");
pub(super) const UPDATE_DEFINITION: &str = include_str!("sql/update_definition.sql");
pub(super) const UPDATE_RUN: &str = include_str!("sql/update_run.sql");
pub(super) const UPDATE_TASK: &str = include_str!("sql/update_task.sql");
pub(super) const UPSERT_WORKER: &str = include_str!("sql/upsert_worker.sql");
pub(super) const YOUNGEST_READY: &str = include_str!("sql/youngest_ready.sql");

/// Every statement, for the test that prepares each against the migrated schema.
#[cfg(test)]
pub(super) const ALL: &[(&str, &str)] = &[
    ("advance_run", ADVANCE_RUN),
    ("any_ready", ANY_READY),
    ("beat", BEAT),
    ("bury_worker", BURY_WORKER),
    ("claim_task", CLAIM_TASK),
    ("clear_leader", CLEAR_LEADER),
    ("clear_queues", CLEAR_QUEUES),
    ("clear_serve", CLEAR_SERVE),
    ("clear_timer", CLEAR_TIMER),
    ("complete_task", COMPLETE_TASK),
    ("count_down", COUNT_DOWN),
    ("count_parked", COUNT_PARKED),
    ("count_tenants", COUNT_TENANTS),
    ("count_throttled", COUNT_THROTTLED),
    ("data_version", DATA_VERSION),
    ("definition_revisions", DEFINITION_REVISIONS),
    ("due_timers", DUE_TIMERS),
    ("dump_attempts", DUMP_ATTEMPTS),
    ("dump_events", DUMP_EVENTS),
    ("dump_runs", DUMP_RUNS),
    ("dump_tasks", DUMP_TASKS),
    ("find_attempt", FIND_ATTEMPT),
    ("find_run", FIND_RUN),
    ("find_tenant", FIND_TENANT),
    ("find_worker", FIND_WORKER),
    ("first_ready", FIRST_READY),
    ("first_suspects", FIRST_SUSPECTS),
    ("forget_parked", FORGET_PARKED),
    ("forget_throttled", FORGET_THROTTLED),
    ("insert_attempt", INSERT_ATTEMPT),
    ("insert_definition", INSERT_DEFINITION),
    ("insert_event", INSERT_EVENT),
    ("insert_input", INSERT_INPUT),
    ("insert_output", INSERT_OUTPUT),
    ("insert_parked", INSERT_PARKED),
    ("insert_pending", INSERT_PENDING),
    ("insert_queue", INSERT_QUEUE),
    ("insert_run", INSERT_RUN),
    ("insert_serve", INSERT_SERVE),
    ("insert_task", INSERT_TASK),
    ("insert_tenant", INSERT_TENANT),
    ("insert_throttled", INSERT_THROTTLED),
    ("is_served", IS_SERVED),
    ("list_runs", LIST_RUNS),
    ("move_task", MOVE_TASK),
    ("next_throttled", NEXT_THROTTLED),
    ("next_timer", NEXT_TIMER),
    ("pass_the_turn", PASS_THE_TURN),
    ("read_attempts", READ_ATTEMPTS),
    ("read_claims", READ_CLAIMS),
    ("read_counters", READ_COUNTERS),
    ("read_defaults", READ_DEFAULTS),
    ("read_definition", READ_DEFINITION),
    ("read_definitions", READ_DEFINITIONS),
    ("read_ended", READ_ENDED),
    ("read_events", READ_EVENTS),
    ("read_frontier", READ_FRONTIER),
    ("read_given", READ_GIVEN),
    ("read_input", READ_INPUT),
    ("read_leader", READ_LEADER),
    ("read_left", READ_LEFT),
    ("read_left_between", READ_LEFT_BETWEEN),
    ("read_lives", READ_LIVES),
    ("read_output", READ_OUTPUT),
    ("read_outputs", READ_OUTPUTS),
    ("read_places", READ_PLACES),
    ("read_queues", READ_QUEUES),
    ("read_ready", READ_READY),
    ("read_run", READ_RUN),
    ("read_serve", READ_SERVE),
    ("read_standing", READ_STANDING),
    ("read_task", READ_TASK),
    ("read_tasks", READ_TASKS),
    ("read_tenant", READ_TENANT),
    ("read_tenants", READ_TENANTS),
    ("read_timers", READ_TIMERS),
    ("read_told", READ_TOLD),
    ("read_worker_no", READ_WORKER_NO),
    ("read_workers", READ_WORKERS),
    ("ready_below", READY_BELOW),
    ("retire_worker", RETIRE_WORKER),
    ("set_admitted", SET_ADMITTED),
    ("set_counters", SET_COUNTERS),
    ("set_defaults", SET_DEFAULTS),
    ("set_frontier", SET_FRONTIER),
    ("set_leader", SET_LEADER),
    ("set_standing", SET_STANDING),
    ("set_tenant", SET_TENANT),
    ("set_timer", SET_TIMER),
    ("unpark", UNPARK),
    ("unserved_ready", UNSERVED_READY),
    ("update_definition", UPDATE_DEFINITION),
    ("update_run", UPDATE_RUN),
    ("update_task", UPDATE_TASK),
    ("upsert_worker", UPSERT_WORKER),
    ("youngest_ready", YOUNGEST_READY),
];
