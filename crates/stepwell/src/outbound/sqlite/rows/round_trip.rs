//! What is written is what is read, column by column: the order of parameters follows that of the
//! columns.

use std::time::Duration;

use rusqlite::Connection;
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::id::{
    DefinitionId, Node, Queue, RunId, RunKey, ServiceId, Tenant, Token, WorkerId,
};
use stepwell_core::queue::{OrderKey, Position, TenantNo};
use stepwell_core::run::{
    AttemptRow, AttemptState, Claim, EventKind, EventRow, MemoOutcome, MemoRow, Phase, Resumed,
    RetryPlan, RunFailure, RunRow, RunStatus, SignalRow, TaskRow, WaitKind, WaitRow,
};
use stepwell_core::time::Timestamp;

use super::task::{Place, TaskWrite};
use super::wait::WaitingRun;
use super::{TABLES, attempt, event, memo, run, signal, task, tenant, wait, worker};
use crate::outbound::sqlite::file::{File, Statements};
use crate::outbound::sqlite::schema::migrate;
use crate::ports::{ClaimRef, Payload, TrafficCounter};

const TENANT: TenantNo = TenantNo(1);

/// Works on an empty file that has a tenant and a worker, both of number 1.
fn on_file(work: impl FnOnce(File<'_, '_>)) {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, Timestamp::EPOCH).unwrap();
    let worker =
        "insert into worker (no, id, lease_micros, seen_at, state) values (1, 'w', 1, 1, 0)";
    connection.execute(worker, []).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    let statements = Statements::of(&connection, TABLES);
    let file = File { statements: &statements, traffic: &TrafficCounter::default() };
    tenant::insert(file, TENANT, &Tenant::new("t").unwrap()).unwrap();
    let lease = Duration::from_secs(1);
    let no = worker::register(file, &claim().worker, lease, Timestamp::EPOCH, "").unwrap();
    assert_eq!(no, 1);
    work(file);
}

fn failure() -> Failure {
    Failure::new(FailureKind::Error, "E", "no")
}

fn fresh_run() -> RunRow {
    RunRow {
        key: RunKey(77),
        tenant: Tenant::new("t").unwrap(),
        id: RunId::new("r").unwrap(),
        definition: DefinitionId(3),
        status: RunStatus::Ending,
        n_open: 4,
        n_failed: 5,
        n_cancelled: 6,
        cancelled: true,
        n_signals: 11,
        n_unconsumed: 10,
        failure: None,
        next_event: 8,
        end_event: None,
        started_at: Timestamp::from_micros(9),
        deadline: Some(Timestamp::from_micros(12)),
        ended_at: None,
    }
}

#[test]
fn a_run_is_read_as_it_was_written() {
    on_file(|file| {
        let input = Payload::new("json".into(), *b"1");
        let no = run::insert(file, &fresh_run(), TENANT, &[7; 32], Some(&input)).unwrap().unwrap();
        let stored = run::load(file, RunKey(77)).unwrap().unwrap();
        assert_eq!((stored.no, stored.tenant_no, stored.input_digest), (no, TENANT, [7; 32]));
        assert_eq!(stored.row, fresh_run());
        let given = run::given(file, RunKey(77)).unwrap().unwrap();
        assert_eq!((given.definition, given.input), (DefinitionId(3), Some(input)));
        let failed = RunFailure { node: Node(1), step: "a".into(), attempt: 2, failure: failure() };
        let ended = RunRow {
            status: RunStatus::Failed,
            n_open: 0,
            n_failed: 15,
            n_cancelled: 16,
            cancelled: false,
            n_signals: 21,
            n_unconsumed: 20,
            failure: Some(Box::new(failed)),
            next_event: 18,
            end_event: Some(17),
            ended_at: Some(Timestamp::from_micros(19)),
            ..fresh_run()
        };
        run::update(file, no, &ended).unwrap();
        assert_eq!(run::load(file, RunKey(77)).unwrap().unwrap().row, ended);
    });
}

#[test]
fn a_run_is_read_as_it_was_written_by_narrow_statements() {
    on_file(|file| {
        let fresh = RunRow {
            status: RunStatus::Running,
            n_failed: 0,
            n_cancelled: 0,
            cancelled: false,
            n_signals: 0,
            n_unconsumed: 0,
            ..fresh_run()
        };
        let no = run::insert(file, &fresh, TENANT, &[7; 32], None).unwrap().unwrap();
        let stored = run::load(file, RunKey(77)).unwrap().unwrap();
        assert_eq!((stored.row, stored.input_digest), (fresh.clone(), [7; 32]));
        let ended = RunRow {
            status: RunStatus::Completed,
            n_open: 0,
            next_event: 18,
            end_event: Some(17),
            ended_at: Some(Timestamp::from_micros(19)),
            ..fresh
        };
        run::end(file, no, &ended).unwrap();
        assert_eq!(run::load(file, RunKey(77)).unwrap().unwrap().row, ended);
    });
}

fn row(phase: Phase) -> TaskRow {
    TaskRow {
        node: Node(2),
        phase,
        n_unmet: 0,
        n_skipped: 3,
        attempt: 4,
        failures: 5,
        losses: 6,
        queued_logged: true,
        resumed: Some(Resumed::Signal(7)),
        next_memo: 8,
    }
}

fn claim() -> Claim {
    Claim {
        worker: WorkerId::new("w").unwrap(),
        token: Token(7),
        queued_at: Timestamp::from_micros(8),
        started_at: Timestamp::from_micros(9),
    }
}

#[test]
fn a_task_is_read_as_it_was_written() {
    on_file(|file| {
        let run_no = run::insert(file, &fresh_run(), TENANT, &[0; 32], None).unwrap().unwrap();
        let place = Place {
            queue: Queue::default_queue(),
            order: OrderKey(21),
            number: 22,
            position: Position(23),
            service: ServiceId(24),
        };
        let since = Timestamp::from_micros(11);
        let ready = row(Phase::Queued { since, due: None });
        let (node, place) = (ready.node, Some(&place));
        let write = TaskWrite { run_no, row: &ready, place, worker_no: None };
        assert_eq!(write.insert(file).unwrap(), 1);
        let expected = Some((ready.clone(), place.cloned()));
        assert_eq!(task::load(file, run_no, node).unwrap(), expected);
        let (_, found) = task::load_ready(file, RunKey(77), node).unwrap().unwrap();
        assert_eq!(Some(found), expected);

        let (due, until) = (Some(Timestamp::from_micros(12)), Timestamp::from_micros(13));
        let delayed = Phase::Queued { since, due };
        let (asleep, waiting) = (Phase::Sleeping { until }, Phase::Waiting { due });
        for phase in [Phase::Running(claim()), delayed, asleep, waiting, Phase::Skipped] {
            let worker_no = matches!(phase, Phase::Running(_)).then_some(1);
            let row = row(phase);
            let write = TaskWrite { run_no, row: &row, place: None, worker_no };
            assert_eq!(write.update(file).unwrap(), 1);
            assert_eq!(task::load(file, run_no, node).unwrap(), Some((row.clone(), None)));
            let mut moved = row.clone();
            (moved.n_skipped, moved.attempt, moved.failures) = (14, 15, 16);
            (moved.queued_logged, moved.resumed) = (false, Some(Resumed::TimedOut));
            let write = TaskWrite { row: &moved, ..write };
            assert_eq!(write.move_on(file).unwrap(), 1);
            assert_eq!(task::load(file, run_no, node).unwrap(), Some((moved, None)));
        }
    });
}

#[test]
fn attempts_and_events_are_read_as_they_were_written() {
    on_file(|file| {
        let run_no = run::insert(file, &fresh_run(), TENANT, &[0; 32], None).unwrap().unwrap();
        let due = Timestamp::from_micros(14);
        let failed = AttemptRow {
            node: Node(2),
            attempt: 3,
            state: AttemptState::Failed,
            claim: claim(),
            ended_at: Timestamp::from_micros(10),
            first_event: 11,
            with_queued: true,
            failure: Some(failure()),
            retry: Some(RetryPlan { count: 12, delay: Duration::from_secs(13), due }),
            notes: [("k".to_owned(), "v".to_owned())].into(),
        };
        attempt::insert(file, run_no, 1, &failed).unwrap();
        assert_eq!(attempt::of_run(file, RunKey(77)).unwrap(), std::slice::from_ref(&failed));
        assert_eq!(attempt::all(file).unwrap(), [(RunKey(77), failed)]);
        let queued = EventRow {
            number: 5,
            at: Timestamp::from_micros(6),
            node: Some(Node(7)),
            attempt: 8,
            kind: EventKind::Queued,
        };
        event::insert(file, run_no, &queued).unwrap();
        assert_eq!(event::of_run(file, RunKey(77)).unwrap(), std::slice::from_ref(&queued));
        assert_eq!(event::all(file).unwrap(), [(RunKey(77), queued)]);
    });
}

#[test]
fn waits_are_read_as_they_were_written() {
    on_file(|file| {
        let key = RunKey(77);
        let no = run::insert(file, &fresh_run(), TENANT, &[0; 32], None).unwrap().unwrap();
        let run = WaitingRun { no, key, tenant_no: TENANT, definition: DefinitionId(3) };
        let open = WaitRow {
            node: Node(2),
            key: "approval#2".into(),
            number: 4,
            place: 9,
            kind: WaitKind::Signal,
            signals: vec!["paid".into(), "refunded".into()],
            matching: [("order".to_owned(), "4711".to_owned())].into(),
            n_signals_before: 5,
            opened_at: Timestamp::from_micros(6),
            deadline: Some(Timestamp::from_micros(7)),
        };
        let older = WaitRow { node: Node(8), number: 3, ..open.clone() };
        let (kind, signals) = (WaitKind::Sleep, Vec::new());
        let sleep = WaitRow { key: "nap".into(), place: 10, kind, signals, ..open.clone() };
        for wait in [&open, &older, &sleep] {
            wait::insert(file, run, wait).unwrap();
        }
        let all = [older, open.clone(), sleep.clone()];
        assert_eq!(wait::of_run(file, key).unwrap(), all);
        assert_eq!(wait::all(file).unwrap(), all.map(|wait| (key, wait)));
        wait::delete_all(file, no, Node(8)).unwrap();
        assert_eq!(wait::of_run(file, key).unwrap(), [open.clone(), sleep]);
        wait::delete(file, no, Node(2), "nap").unwrap();
        assert_eq!(wait::of_run(file, key).unwrap(), [open]);
    });
}

#[test]
fn memos_are_read_as_they_were_written() {
    on_file(|file| {
        let key = RunKey(77);
        let no = run::insert(file, &fresh_run(), TENANT, &[0; 32], None).unwrap().unwrap();
        let due = Some(Timestamp::from_micros(12));
        let outcomes = [
            MemoOutcome::Begun { due, failure: Some(failure()) },
            MemoOutcome::Given,
            MemoOutcome::Failed(failure()),
            MemoOutcome::Slept,
            MemoOutcome::Ended(Resumed::TimedOut),
            MemoOutcome::Round(3),
        ];
        for (number, outcome) in (1..).zip(outcomes) {
            let (node, memo_key) = (Node(2), format!("memo-{number}"));
            let (began_at, at) = (Timestamp::from_micros(5), Timestamp::from_micros(6));
            let row = MemoRow { node, key: memo_key, number, outcome, tries: 4, began_at, at };
            let given = Payload::new("json".into(), *b"1");
            let payload = Some(&given).filter(|_| row.outcome == MemoOutcome::Given);
            memo::put(file, no, &row, payload, Some(Token(7))).unwrap();
            let stored = memo::of_run(file, key, Some(Node(2))).unwrap().pop().unwrap();
            assert_eq!(stored.row, row);
            let is_over = row.outcome == MemoOutcome::Ended(Resumed::TimedOut);
            let expected = if is_over { Some(Payload::timed_out()) } else { payload.cloned() };
            assert_eq!(stored.payload, expected);
            assert_eq!(memo::all(file).unwrap(), [(key, row.clone())]);
            let claim = ClaimRef { run: key, node: Node(2), token: Token(7) };
            assert_eq!(memo::under(file, claim, &row.key).unwrap(), Some(row));
            memo::clear(file, no, Node(2)).unwrap();
        }
    });
}

#[test]
fn signals_are_read_as_they_were_written() {
    on_file(|file| {
        let key = RunKey(77);
        let no = run::insert(file, &fresh_run(), TENANT, &[0; 32], None).unwrap().unwrap();
        let mut sent = SignalRow {
            number: 3,
            name: "paid".into(),
            key: "evt-1".into(),
            attributes: [("order".to_owned(), "4711".to_owned())].into(),
            digest: [9; 32],
            sent_at: Timestamp::from_micros(5),
            consumed_by: None,
        };
        let payload = Payload::new("json".into(), *b"1");
        signal::insert(file, no, &sent, &payload).unwrap();
        assert_eq!(signal::unconsumed(file, key).unwrap(), std::slice::from_ref(&sent));
        signal::consume(file, no, 3, Node(6)).unwrap();
        sent.consumed_by = Some(Node(6));
        assert_eq!(signal::unconsumed(file, key).unwrap(), []);
        assert_eq!(signal::find(file, key, "evt-1").unwrap().as_ref(), Some(&sent));
        assert_eq!(signal::find(file, key, "evt-2").unwrap(), None);
        let payload = payload.of_signal("paid");
        assert_eq!(signal::payload(file, key, 3).unwrap().as_ref(), Some(&payload));
        let stored = signal::of_run(file, key).unwrap();
        assert_eq!((&stored[0].row, &stored[0].payload), (&sent, &payload));
        assert_eq!(signal::all(file).unwrap(), [(key, sent)]);
    });
}
