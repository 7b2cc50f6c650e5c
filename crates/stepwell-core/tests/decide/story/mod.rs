//! A store of one run that does nothing but what the rules tell it to.
//!
//! It loads only the rows that [`affected`] names and writes only what `Changes` lists; a rule that
//! needs another row, or that forgets to list a change, is noticed. After everything that happens
//! the invariants of [`check`] must hold.

pub(crate) mod check;
mod check_inbox;
mod print;
mod script;
mod store;
pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use stepwell_core::decide::{
    Happening, NewSignal, RunHappening, RunSeed, TaskHappening, Verdict, affected, claim, decide,
    may_start, start,
};
use stepwell_core::id::{DefinitionId, Node, RunId, RunKey, Tenant, Token, WorkerId};
use stepwell_core::lease::losses_after;
use stepwell_core::run::{
    AttemptRow, EventRow, MemoRow, Phase, RunImage, RunLog, RunRow, RunStatus, SignalRow, TaskRow,
    WaitRow,
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
    /// Open waits, by task and key.
    pub(crate) waits: BTreeMap<(Node, String), WaitRow>,
    /// What functions have done, by task and key.
    pub(crate) memos: BTreeMap<(Node, String), MemoRow>,
    pub(crate) signals: BTreeMap<u64, SignalRow>,
    /// Every wait that ever stood, in the order in which they opened.
    pub(crate) all_waits: Vec<WaitRow>,
    /// Every memo that was ever stored by a decision.
    pub(crate) all_memos: Vec<MemoRow>,
    /// Tasks that were skipped by their own condition, not by the rule.
    pub(crate) conditions: BTreeSet<Node>,
    /// Answers to those who came too late, to requests to cancel, and to signals that were not
    /// stored.
    pub(crate) answers: Vec<String>,
    n_claims: u64,
    n_sent: u64,
}

impl Story {
    /// Starts a run.
    pub(crate) fn start(definition: Definition) -> Self {
        Self::start_with(definition, None)
    }

    /// Starts a run with a deadline of its own.
    pub(crate) fn start_with(definition: Definition, deadline: Option<Duration>) -> Self {
        let definition = Rc::new(definition);
        let now = Timestamp::EPOCH;
        let name = "checked in the story itself";
        let seed = RunSeed {
            key: RunKey(1),
            tenant: Tenant::new("tenant").expect(name),
            id: RunId::new("run").expect(name),
            definition: DefinitionId(1),
            deadline,
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
            waits: BTreeMap::new(),
            memos: BTreeMap::new(),
            signals: BTreeMap::new(),
            all_waits: Vec::new(),
            all_memos: Vec::new(),
            conditions: BTreeSet::new(),
            answers: Vec::new(),
            n_claims: 0,
            n_sent: 0,
        };
        story.write(image);
        story
    }

    /// Starts a run of the workflow in the first text and plays the script in the second.
    pub(crate) fn play(workflow: &str, script: &str) -> Self {
        let mut story = Self::start(text::workflow(workflow));
        story.go_on(script);
        story
    }

    /// The policies of a workflow of the same structure apply from now on.
    pub(crate) fn deploy(&mut self, workflow: &str) {
        let deployed = text::workflow(workflow);
        assert_eq!(deployed.signature, self.definition.signature, "policies may change, no more");
        let policy = self.definition.policy_of(&deployed);
        self.definition = Rc::new(Definition { policy, ..(*self.definition).clone() });
    }

    /// As many signals lie there that nobody waits for.
    pub(crate) fn keep_signals(&mut self, name: &str, n_kept: u32) {
        for number in 1..=u64::from(n_kept) {
            let NewSignal { name, key, attributes, digest, .. } =
                text::signal(name, &format!("kept {number}"));
            let (sent_at, consumed_by) = (self.now, None);
            let row = SignalRow { number, name, key, attributes, digest, sent_at, consumed_by };
            self.signals.insert(number, row);
        }
        self.run.n_signals = n_kept.into();
        self.run.n_unconsumed = n_kept;
        check::invariants(self);
    }

    fn find(&self, name: &str) -> Node {
        let found = self.definition.find(name);
        found.unwrap_or_else(|| panic!("no step {name:?}"))
    }

    /// The task of a step.
    pub(crate) fn task(&self, name: &str) -> &TaskRow {
        &self.tasks[&self.find(name)]
    }

    /// What the death of a worker that held these tasks does to each of them.
    pub(crate) fn losses(&self, nodes: &[Node]) -> Vec<Happening> {
        let before: Vec<u32> = nodes.iter().map(|node| self.tasks[node].losses).collect();
        let losses = losses_after(&before, CRASH_LIMIT);
        let lost = |losses| TaskHappening::Lost { losses, crash_limit: CRASH_LIMIT };
        let each = nodes.iter().zip(losses);
        each.map(|(node, losses)| Happening::Task(*node, lost(losses))).collect()
    }

    /// A worker takes a task from the queue.
    pub(crate) fn claim(&mut self, node: Node) {
        let place = self.queue.iter().position(|queued| *queued == node);
        if !may_start(self.run.standing_deadline(), self.now) {
            return self.refuse(node);
        }
        self.n_claims += 1;
        let token = Token::new(self.n_claims, 0);
        let worker = WorkerId::new("worker").expect("a good name");
        let task = self.tasks.get_mut(&node).expect("a task of this run");
        let was_ready = claim(task, &worker, token, self.now);
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

    /// Decides a batch of happenings on one image, in order.
    pub(crate) fn happen(&mut self, batch: Vec<Happening>) {
        let definition = Rc::clone(&self.definition);
        let batch: Vec<Happening> = batch.into_iter().map(|each| self.counted(each)).collect();
        let mut affected = affected(&definition, &batch);
        let mut image = self.image(&definition, &mut affected, &batch);
        for happening in batch {
            match happening {
                Happening::Task(node, happened) => self.decide_task(&mut image, node, happened),
                Happening::Run(happened) => self.decide_run(&mut image, happened),
            }
        }
        self.write_affected(image, &affected);
    }

    fn decide_task(&mut self, image: &mut RunImage<'_>, node: Node, happening: TaskHappening) {
        let is_timer = matches!(happening, TaskHappening::TimerFired);
        let is_condition = matches!(happening, TaskHappening::Skipped);
        // A store fires what is due; that a timer still means something is the rules' matter.
        if is_timer && !self.may_fire(node) {
            return self.refuse(node);
        }
        let current = image.task(node).is_some_and(|task| match &task.phase {
            Phase::Running(_) => !is_timer,
            phase => is_timer && phase.due().is_some(),
        });
        let verdict = decide(image, Happening::Task(node, happening));
        if let Verdict::Listening(heard) = verdict {
            assert!(current, "S6: only what is current changes a task");
            self.answers.extend(print::heard(self, node, heard));
            return;
        }
        let expected = if current { Verdict::Applied } else { Verdict::NotCurrent };
        assert_eq!(verdict, expected, "S6: only what is current changes a task");
        if current && is_condition {
            self.conditions.insert(node);
        } else if !current {
            self.refuse(node);
        }
    }

    fn decide_run(&mut self, image: &mut RunImage<'_>, happening: RunHappening) {
        if let RunHappening::TimerFired(timer) = happening
            && !self.may_fire(timer.node())
        {
            return self.refuse(timer.node());
        }
        let title = print::title(&happening);
        let verdict = decide(image, Happening::Run(happening));
        self.answers.extend(print::answer(&title, verdict));
    }

    fn may_fire(&self, node: Node) -> bool {
        self.timers.get(&node).is_none_or(|due| *due <= self.now)
    }

    /// A failure with the count that its task was claimed with.
    fn counted(&self, happening: Happening) -> Happening {
        match happening {
            Happening::Task(
                node,
                TaskHappening::Failed { failure, notes, chance, forgets, .. },
            ) => {
                let failures = self.tasks.get(&node).map_or(0, |task| task.failures);
                let failed = TaskHappening::Failed { failure, notes, chance, failures, forgets };
                Happening::Task(node, failed)
            }
            other => other,
        }
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
        self.answers.push(format!("{}: refused", print::name(self, node)));
    }

    /// Whether the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.run.status != RunStatus::Running && self.run.status != RunStatus::Ending
    }
}

/// Plays a script and compares what stands at its end: the run with its tasks, queue, timers, what
/// ended the waits of tasks, the signals, the failure, and the answers that were given. A line or
/// `;` separates them, and what is empty is left out.
#[track_caller]
pub(crate) fn check(workflow: &str, script: &str, expected: &str) {
    check_outcome(&Story::play(workflow, script), expected);
}

/// Compares what stands at the end of a story that was played.
#[track_caller]
pub(crate) fn check_outcome(story: &Story, expected: &str) {
    assert_eq!(print::outcome(story), print::normal(expected));
}

/// Plays a script and compares the log as it is read, one event per line; `-` stands for the
/// number of an event that has none yet.
#[track_caller]
pub(crate) fn check_log(workflow: &str, script: &str, expected: &str) {
    let story = Story::play(workflow, script);
    assert_eq!(print::log(&story), print::normal(expected));
}
