//! A store of one run that does nothing but what the rules tell it to.
//!
//! It loads only the rows that [`affected`] names and writes only what `Changes` lists; a rule that
//! needs another row, or that forgets to list a change, is noticed. After everything that happens
//! the invariants of [`check`] must hold.

pub(crate) mod check;
mod print;
pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stepwell_core::decide::{
    Affected, CancelAnswer, Happening, RunHappening, RunSeed, TaskHappening, Verdict, affected,
    claim, decide, start,
};
use stepwell_core::id::{DefinitionId, Node, RunId, RunKey, Tenant, Token, WorkerId};
use stepwell_core::lease::losses_after;
use stepwell_core::run::{
    AttemptRow, EventRow, Phase, RunImage, RunLog, RunRow, RunStatus, TaskRow,
};
use stepwell_core::time::Timestamp;
use stepwell_core::workflow::Definition;

/// The number of losses that ends a task in every story.
pub(crate) const CRASH_LIMIT: u32 = 3;

/// One run, its queue, timers and claims, and a clock that is moved by hand.
pub(crate) struct Story {
    pub(crate) definition: Rc<Definition>,
    pub(crate) now: Timestamp,
    pub(crate) run: RunRow,
    pub(crate) tasks: BTreeMap<Node, TaskRow>,
    pub(crate) queue: Vec<Node>,
    pub(crate) timers: BTreeMap<Node, Timestamp>,
    pub(crate) claims: BTreeMap<Node, Token>,
    pub(crate) attempts: Vec<AttemptRow>,
    pub(crate) events: Vec<EventRow>,
    /// Tasks that were skipped by their own condition, not by the rule.
    pub(crate) conditions: BTreeSet<Node>,
    /// Answers to those who came too late, and to requests to cancel.
    pub(crate) answers: Vec<String>,
    n_claims: u64,
}

impl Story {
    /// Starts a run.
    pub(crate) fn start(definition: Definition) -> Self {
        let definition = Rc::new(definition);
        let now = Timestamp::EPOCH;
        let name = "checked in the story itself";
        let seed = RunSeed {
            key: RunKey(1),
            tenant: Tenant::new("tenant").expect(name),
            id: RunId::new("run").expect(name),
            definition: DefinitionId(1),
        };
        let owned = Rc::clone(&definition);
        let image = start(&owned, now, seed);
        let mut story = Self {
            definition,
            now,
            run: image.run().clone(),
            tasks: BTreeMap::new(),
            queue: Vec::new(),
            timers: BTreeMap::new(),
            claims: BTreeMap::new(),
            attempts: Vec::new(),
            events: Vec::new(),
            conditions: BTreeSet::new(),
            answers: Vec::new(),
            n_claims: 0,
        };
        story.write(image);
        story
    }

    /// Starts a run of the workflow in the first text and plays the script in the second.
    pub(crate) fn play(workflow: &str, script: &str) -> Self {
        let mut story = Self::start(text::workflow(workflow));
        for clause in text::clauses(script) {
            story.play_clause(&clause);
        }
        story
    }

    /// One clause: `+5s`, `cancel`, or verbs with tasks: `claim`, `fire`, `lose` and those of
    /// [`text::happening`]. Several tasks of a verb follow one another; `lose a b` kills one
    /// worker that held both. Parts joined by `&` are decided on one image, in order.
    fn play_clause(&mut self, clause: &str) {
        if let Some(span) = clause.strip_prefix('+') {
            self.now = self.now.after(text::parse_span(span));
            return;
        }
        if clause == "cancel" {
            let answer = self.cancel();
            self.answers.push(format!("cancel: {answer:?}"));
            return;
        }
        let mut batch = Vec::new();
        for part in clause.split('&') {
            let (verb, names) = part.trim().split_once(' ').expect("a verb and its tasks");
            let nodes: Vec<Node> = names.split_whitespace().map(|n| self.find(n)).collect();
            match verb {
                "claim" => nodes.into_iter().for_each(|node| self.claim(node)),
                "fire" => batch.extend(nodes.into_iter().map(|n| (n, TaskHappening::TimerFired))),
                "lose" => {
                    self.claim_queued(&nodes);
                    batch.extend(self.losses(&nodes));
                }
                _ => {
                    self.claim_queued(&nodes);
                    batch.extend(nodes.into_iter().map(|n| (n, text::happening(verb))));
                }
            }
        }
        self.happen(batch);
    }

    /// What happens to a task in the queue happens to whoever claims it now.
    fn claim_queued(&mut self, nodes: &[Node]) {
        for node in nodes {
            if self.queue.contains(node) {
                self.claim(*node);
            }
        }
    }

    fn find(&self, name: &str) -> Node {
        let found = self.definition.find(name);
        found.unwrap_or_else(|| panic!("no step {name:?}"))
    }

    /// What the death of a worker that held these tasks does to each of them.
    pub(crate) fn losses(&self, nodes: &[Node]) -> Vec<(Node, TaskHappening)> {
        let before: Vec<u32> = nodes.iter().map(|node| self.tasks[node].losses).collect();
        let losses = losses_after(&before, CRASH_LIMIT);
        let lost = |losses| TaskHappening::Lost { losses, crash_limit: CRASH_LIMIT };
        nodes.iter().copied().zip(losses.into_iter().map(lost)).collect()
    }

    /// A worker takes a task from the queue.
    pub(crate) fn claim(&mut self, node: Node) {
        self.n_claims += 1;
        let token = Token::new(self.n_claims, 0);
        let worker = WorkerId::new("worker").expect("a good name");
        let task = self.tasks.get_mut(&node).expect("a task of this run");
        let was_ready = claim(task, &worker, token, self.now);
        let place = self.queue.iter().position(|queued| *queued == node);
        assert_eq!(was_ready, place.is_some(), "the queue holds what is ready");
        match place {
            Some(place) => {
                self.queue.remove(place);
                self.claims.insert(node, token);
            }
            None => self.refuse(node),
        }
        check::invariants(self);
    }

    /// Decides a batch of happenings to tasks on one image.
    pub(crate) fn happen(&mut self, batch: Vec<(Node, TaskHappening)>) {
        let definition = Rc::clone(&self.definition);
        let batch: Vec<(Node, TaskHappening)> = batch
            .into_iter()
            .map(|(node, happened)| (node, self.counted(node, happened)))
            .collect();
        let listed: Vec<Happening> =
            batch.iter().map(|(node, happened)| Happening::Task(*node, happened.clone())).collect();
        let affected = affected(&definition, &listed);
        let mut image = self.image(&definition, &affected);
        for (node, happening) in batch {
            let is_timer = matches!(happening, TaskHappening::TimerFired);
            let is_condition = matches!(happening, TaskHappening::Skipped);
            // A store fires what is due; that a timer still means something is the rules' matter.
            if is_timer && self.timers.get(&node).is_some_and(|due| *due > self.now) {
                self.refuse(node);
                continue;
            }
            let current = image.task(node).is_some_and(|task| match &task.phase {
                Phase::Running(_) => !is_timer,
                Phase::Sleeping { .. } | Phase::Queued { due: Some(_), .. } => is_timer,
                _ => false,
            });
            let verdict = decide(&mut image, Happening::Task(node, happening));
            let expected = if current { Verdict::Applied } else { Verdict::NotCurrent };
            assert_eq!(verdict, expected, "S6: only what is current changes a task");
            if current && is_condition {
                self.conditions.insert(node);
            } else if !current {
                self.refuse(node);
            }
        }
        self.write_affected(image, &affected);
    }

    /// A failure with the count that its task was claimed with.
    fn counted(&self, node: Node, happening: TaskHappening) -> TaskHappening {
        match happening {
            TaskHappening::Failed { failure, notes, chance, .. } => {
                let failures = self.tasks.get(&node).map_or(0, |task| task.failures);
                TaskHappening::Failed { failure, notes, chance, failures }
            }
            other => other,
        }
    }

    /// Somebody cancels the run.
    pub(crate) fn cancel(&mut self) -> CancelAnswer {
        let definition = Rc::clone(&self.definition);
        let cancelled = Happening::Run(RunHappening::Cancelled);
        let affected = affected(&definition, [&cancelled]);
        let mut image = self.image(&definition, &affected);
        let verdict = decide(&mut image, cancelled);
        self.write_affected(image, &affected);
        let Verdict::Cancel(answer) = verdict else { panic!("{verdict:?} to a cancel") };
        answer
    }

    /// The rows that a decision may look at, and no others.
    fn image<'d>(&self, definition: &'d Definition, affected: &Affected) -> RunImage<'d> {
        let loaded = self.rows(|task| {
            let is_open = !task.state().is_terminal();
            affected.tasks.contains(&task.node) || (affected.all_open && is_open)
        });
        RunImage::new(definition, self.now, self.run.clone(), loaded)
    }

    /// Writes what was decided. Queued tasks, which a claim could take, change only if that was
    /// announced.
    fn write_affected(&mut self, image: RunImage<'_>, affected: &Affected) {
        let queued: Vec<TaskRow> = self.queue.iter().map(|node| self.tasks[node].clone()).collect();
        self.write(image);
        let is_same = |row: &TaskRow| self.tasks[&row.node] == *row;
        assert!(affected.may_touch_queued || queued.iter().all(is_same), "a queued task changed");
    }

    /// The log as a store would hold it.
    pub(crate) fn log(&self) -> RunLog {
        RunLog {
            run: self.run.clone(),
            open: self.rows(|task| !task.state().is_terminal()),
            attempts: self.attempts.clone(),
            events: self.events.clone(),
        }
    }

    fn rows(&self, wanted: impl Fn(&TaskRow) -> bool) -> Vec<TaskRow> {
        self.tasks.values().filter(|task| wanted(task)).cloned().collect()
    }

    fn refuse(&mut self, node: Node) {
        let refusal = format!("{}: refused", self.definition.name(node));
        self.answers.push(refusal);
    }

    /// Writes what the rules listed, nothing else.
    fn write(&mut self, image: RunImage<'_>) {
        let before = check::Before::of(self);
        let (run, rows, changes) = image.into_parts();
        for row in rows {
            let node = row.node;
            let is_new = !self.tasks.contains_key(&node) && !before.is_start;
            assert_eq!(changes.is_inserted(node), is_new, "a new row is listed as inserted");
            if changes.touched.contains(&node) {
                self.tasks.insert(node, row);
            } else {
                assert_eq!(self.tasks[&node], row, "a changed row is listed as touched");
            }
        }
        for (node, claim) in changes.claims_ended {
            let held = self.claims.remove(&node);
            assert_eq!(held, Some(claim.token), "a claim ends once");
        }
        self.queue.retain(|node| !changes.dequeued.contains(node));
        self.timers.retain(|node, _| !changes.timers_cleared.contains(node));
        for timer in changes.timers {
            self.timers.insert(timer.node, self.now.after(timer.after));
        }
        self.queue.extend(changes.enqueued);
        self.attempts.extend(changes.attempts);
        self.events.extend(changes.events);
        let ends = run.status.is_terminal() && !before.status.is_terminal();
        assert_eq!(changes.run_ended, ends, "the end of a run is listed once");
        self.run = run;
        before.absorbed_by(self);
        check::invariants(self);
    }

    /// Whether the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.run.status != RunStatus::Running && self.run.status != RunStatus::Ending
    }
}

/// Plays a script and compares what stands at its end: the run with its tasks, queue, timers, the
/// failure, and the answers that were given. A line or `;` separates them, and what is empty is
/// left out.
#[track_caller]
pub(crate) fn check(workflow: &str, script: &str, expected: &str) {
    let story = Story::play(workflow, script);
    assert_eq!(print::outcome(&story), print::normal(expected));
}

/// Plays a script and compares the log as it is read, one event per line; `-` stands for the
/// number of an event that has none yet.
#[track_caller]
pub(crate) fn check_log(workflow: &str, script: &str, expected: &str) {
    let story = Story::play(workflow, script);
    assert_eq!(print::log(&story), print::normal(expected));
}
