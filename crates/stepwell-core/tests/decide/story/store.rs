//! What the story's store loads and writes.

use stepwell_core::decide::{Affected, Happening, InboxNeeds};
use stepwell_core::id::Node;
use stepwell_core::run::{Changes, Extras, Inbox, RunImage, SignalRow, TaskRow};
use stepwell_core::workflow::Definition;

use super::{Story, check};

impl Story {
    /// The rows that a decision may look at, and no others.
    pub(super) fn image<'d>(
        &self,
        definition: &'d Definition,
        affected: &mut Affected,
        happenings: &[Happening],
    ) -> RunImage<'d> {
        let inbox = affected.inbox.clone().map(|needs| self.inbox(&needs));
        if let Some(inbox) = &inbox {
            affected.add_waits(definition, &inbox.waits, happenings);
        }
        let loaded = self.rows(|task| {
            let is_open = !task.state().is_terminal();
            affected.tasks.contains(&task.node) || (affected.all_open && is_open)
        });
        let image = RunImage::new(definition, self.now, self.run.clone(), loaded);
        match inbox {
            Some(inbox) => image.with_inbox(inbox),
            None => image,
        }
    }

    /// The open waits, and of the signals only those that were asked for. What nobody got is not
    /// looked for if the run counts none.
    fn inbox(&self, needs: &InboxNeeds) -> Inbox {
        let unconsumed = needs.unconsumed && self.run.n_unconsumed > 0;
        let is_needed = |signal: &&SignalRow| {
            needs.keys.contains(&signal.key) || (unconsumed && signal.consumed_by.is_none())
        };
        Inbox {
            waits: self.waits.values().cloned().collect(),
            signals: self.signals.values().filter(is_needed).cloned().collect(),
        }
    }

    /// Writes what was decided. Queued tasks, which a claim could take, change only if that was
    /// announced.
    pub(super) fn write_affected(&mut self, image: RunImage<'_>, affected: &Affected) {
        let queued: Vec<TaskRow> = self.queue.iter().map(|node| self.tasks[node].clone()).collect();
        self.write(image);
        let is_same = |row: &TaskRow| self.tasks[&row.node] == *row;
        assert!(affected.may_touch_queued || queued.iter().all(is_same), "a queued task changed");
    }

    /// Writes what the rules listed, nothing else.
    pub(super) fn write(&mut self, image: RunImage<'_>) {
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
        for (node, claim) in &changes.claims_ended {
            let held = self.claims.remove(node);
            assert_eq!(held, Some(claim.token), "a claim ends once");
        }
        self.queue.retain(|node| !changes.dequeued.contains(node));
        self.write_timers(&changes);
        if let Some(extras) = changes.extras {
            self.write_inbox(*extras);
        }
        self.queue.extend(changes.enqueued);
        self.attempts.extend(changes.attempts);
        self.events.extend(changes.events);
        let ends = run.status.is_terminal() && !before.status.is_terminal();
        assert_eq!(changes.run_ended, ends, "the end of a run is listed once");
        self.run = run;
        before.absorbed_by(self);
        check::invariants(self);
        before.looked_rightly(self);
    }

    fn write_timers(&mut self, changes: &Changes) {
        for node in changes.all_timers_cleared() {
            self.timers.remove(&node);
        }
        for timer in &changes.timers {
            let due = self.now.after(timer.after);
            let stood = self.timers.insert(timer.node, due);
            assert_eq!(stood, None, "the timer of {:?} goes before it is set, once", timer.node);
        }
    }

    /// Waits that close go first, since one that opens may take the place of one.
    fn write_inbox(&mut self, extras: Extras) {
        for node in &extras.waits_closed {
            self.waits.retain(|(of, _), _| of != node);
        }
        for ended in &extras.waits_ended {
            assert!(self.waits.remove(ended).is_some(), "{ended:?} was no open wait");
        }
        for wait in extras.waits_opened {
            self.all_waits.push(wait.clone());
            let stood = self.waits.insert((wait.node, wait.key.clone()), wait);
            assert_eq!(stood, None, "a wait opens once");
        }
        for signal in extras.signals_stored {
            let stood = self.signals.insert(signal.number, signal);
            assert_eq!(stood, None, "a number is given once");
        }
        for (number, node) in extras.signals_consumed {
            self.consume(number, node);
        }
        for node in &extras.memos_cleared {
            self.memos.retain(|(of, _), _| of != node);
        }
        for forgotten in &extras.memos_forgotten {
            self.memos.remove(forgotten);
        }
        for memo in extras.memos {
            self.all_memos.push(memo.clone());
            self.memos.insert((memo.node, memo.key.clone()), memo);
        }
    }

    fn consume(&mut self, number: u64, node: Node) {
        let signal = self.signals.get_mut(&number).expect("a signal that was stored");
        let before = signal.consumed_by.replace(node);
        assert_eq!(before, None, "signal {number} is consumed once");
    }
}
