//! Scripts: what happens to a run, clause by clause.

use stepwell_core::decide::{
    CancelRequest, Happening, Listening, RunHappening, Suspension, TaskHappening,
};
use stepwell_core::id::Node;
use stepwell_core::run::MemoRow;

use super::{Story, text};

impl Story {
    /// Plays a script from where the story stands.
    pub(crate) fn go_on(&mut self, script: &str) {
        for clause in text::clauses(script) {
            self.play_clause(&clause);
        }
    }

    /// One clause: `+5s`, or parts joined by `&`, which are decided on one image, in order.
    fn play_clause(&mut self, clause: &str) {
        if let Some(span) = clause.strip_prefix('+') {
            self.now = self.now.after(text::parse_span(span));
            return;
        }
        let mut batch = Vec::new();
        for part in clause.split('&').map(str::trim) {
            batch.extend(self.happenings(part));
        }
        if !batch.is_empty() {
            self.happen(batch);
        }
    }

    /// What one part says: `cancel`, `cancel!` with force, `deadline` and `look` for the timers of
    /// the run, `signal`, or a verb with tasks: `claim`, `fire`, `lose`, `wait a paid/3h`, `suspend
    /// a nap~1h`, `listen` and those of [`text::happening`]. Several tasks of a verb follow one
    /// another; `lose a b` kills one worker that held both.
    fn happenings(&mut self, part: &str) -> Vec<Happening> {
        let (verb, rest) = part.split_once(' ').unwrap_or((part, ""));
        match verb {
            "cancel" | "cancel!" => return vec![cancel(verb.ends_with('!'))],
            "deadline" => return vec![Happening::timer_fired(Node::DEADLINE)],
            "signal" | "signal!" => return vec![self.signal(rest, verb.ends_with('!'))],
            "wait" => return vec![self.wait(rest)],
            "look" => return vec![Happening::timer_fired(Node::LOOK_AGAIN)],
            "suspend" | "listen" => return vec![self.function(verb, rest)],
            _ => {}
        }
        let nodes: Vec<Node> = rest.split_whitespace().map(|name| self.find(name)).collect();
        assert!(!nodes.is_empty(), "{part:?} names no task");
        let of_each = |happening: TaskHappening| {
            nodes.iter().map(|node| Happening::Task(*node, happening.clone())).collect()
        };
        match verb {
            "claim" => {
                for node in nodes {
                    self.claim(node);
                }
                Vec::new()
            }
            "fire" => of_each(TaskHappening::TimerFired),
            "lose" => {
                self.claim_queued(&nodes);
                self.losses(&nodes)
            }
            _ => {
                self.claim_queued(&nodes);
                of_each(text::happening(verb))
            }
        }
    }

    /// What happens to a task in the queue happens to whoever claims it now.
    fn claim_queued(&mut self, nodes: &[Node]) {
        for node in nodes {
            if self.queue.contains(node) {
                self.claim(*node);
            }
        }
    }

    /// `paid order=7 key=k1`: a signal with attributes, under a key of its own if none is given.
    /// `to_many` is one that is dropped if nobody waits for it.
    pub(crate) fn signal(&mut self, text: &str, to_many: bool) -> Happening {
        self.n_sent += 1;
        let mut signal = text::signal(text, &format!("sent {}", self.n_sent));
        signal.only_if_awaited = to_many;
        Happening::Run(RunHappening::Signalled(signal))
    }

    /// `a paid/3h`: a claimed step waits; `w` alone: a wait node opens as its policy says.
    fn wait(&mut self, text: &str) -> Happening {
        let (name, wait_for) = text.split_once(' ').unwrap_or((text, ""));
        let node = self.find(name);
        self.claim_queued(&[node]);
        let of_node = || self.definition.step_policy(node)?.wait.clone();
        let wait_for = match wait_for {
            "" => of_node().expect("a wait node").wait_for,
            wait_for => text::wait_for(wait_for),
        };
        Happening::Task(node, TaskHappening::Waits { wait_for, notes: [].into() })
    }

    /// `a ok?paid/3h nap~24h save*5s`: a function waits for all of these, in the order of its
    /// calls, and suspends or listens.
    fn function(&mut self, verb: &str, text: &str) -> Happening {
        let (name, waits) = text.split_once(' ').unwrap_or((text, ""));
        let node = self.find(name);
        self.claim_queued(&[node]);
        self.open(node, verb == "suspend", waits)
    }

    /// A function waits for all of these.
    pub(crate) fn open(&self, node: Node, suspends: bool, waits: &str) -> Happening {
        let waits = (0_u32..).zip(waits.split_whitespace());
        let waits = waits.map(|(place, wait)| text::function_wait(wait, place, self.now)).collect();
        let of_function = |memo: &&MemoRow| memo.node == node;
        let numbers = self.memos.values().filter(of_function).map(|memo| memo.number);
        let next_memo = numbers.max().unwrap_or(0) + 1;
        let had_waits = self.tasks[&node].may_have_waits();
        let happening = if suspends {
            let suspension = Box::new(Suspension { waits, next_memo, had_waits });
            TaskHappening::Suspended { suspension, notes: [].into() }
        } else {
            TaskHappening::Listens(Box::new(Listening { waits, next_memo }))
        };
        Happening::Task(node, happening)
    }
}

/// Somebody asks to cancel the run.
pub(crate) fn cancel(force: bool) -> Happening {
    let reason = force.then(|| "it hangs".into());
    let request = CancelRequest { reason, force, ..CancelRequest::by("somebody") };
    Happening::Run(RunHappening::Cancelled(request))
}
