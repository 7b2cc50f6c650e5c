//! What a statement has to do with those of another session.
//!
//! At read committed a statement sees what was committed when it began, and waits for nothing but
//! locks. So two statements can only matter to each other if both lock rows of one table, or if
//! one makes changes visible in a table that the other looks at. All others can change places and
//! nobody can tell. At repeatable read the first statement sees for all that follow. Tables are
//! compared, not rows: that finds too much, never too little. What foreign keys lock is left out:
//! nobody deletes what they point to, nor changes its key.

use std::collections::{BTreeMap, BTreeSet};

/// How a table, sequence or advisory lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Shared,
    Alone,
}

/// What a statement touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    names: BTreeSet<String>,
    holds: BTreeMap<String, Hold>,
    /// Where it makes changes visible and frees locks.
    shows: BTreeSet<String>,
    /// Whether it sees for all statements that follow in its transaction, whatever they look at.
    takes_snapshot: bool,
}

impl Footprint {
    /// Whether nobody can tell which of the two went first.
    pub(super) fn commutes_with(&self, other: &Self) -> bool {
        let is_fought_over = |(name, hold): (&String, &Hold)| match other.holds.get(name) {
            Some(Hold::Shared) => *hold == Hold::Alone,
            Some(Hold::Alone) => true,
            None => false,
        };
        !self.holds.iter().any(is_fought_over)
            && !self.sees(&other.shows)
            && !other.sees(&self.shows)
    }

    /// Whether it looks at what becomes visible there.
    fn sees(&self, shows: &BTreeSet<String>) -> bool {
        !self.names.is_disjoint(shows) || self.takes_snapshot && !shows.is_empty()
    }

    fn of(text: &str) -> Self {
        let is_code = |line: &&str| !line.trim_start().starts_with("--");
        let code: Vec<&str> = text.lines().filter(is_code).collect();
        let code = code.join(" ").to_lowercase();
        let mut found = Self::default();
        for (at, _) in code.match_indices(PREFIX) {
            let name = code[at + PREFIX.len()..].split(|c: char| !is_word(c)).next();
            let before = code[..at].trim_end_matches([' ', '\'', '(']);
            found.add(name.unwrap_or_default(), hold_after(before));
        }
        for (at, _) in code.match_indices("advisory") {
            let is_shared =
                code[at..].split('(').next().is_some_and(|name| name.contains("shared"));
            found.add("advisory", Some(if is_shared { Hold::Shared } else { Hold::Alone }));
        }
        // Whose rows are locked is not told apart.
        let has = |locks: [&str; 2]| locks.iter().any(|lock| code.contains(lock));
        let shared = has([" for share", " for key share"]).then_some(Hold::Shared);
        let alone = has([" for update", " for no key update"]).then_some(Hold::Alone);
        if let Some(hold) = alone.or(shared) {
            for name in found.names.clone() {
                found.add(&name, Some(hold));
            }
        }
        found
    }

    fn add(&mut self, name: &str, hold: Option<Hold>) {
        self.names.insert(name.to_owned());
        if let Some(hold) = hold {
            let held = self.holds.entry(name.to_owned()).or_insert(hold);
            if hold == Hold::Alone {
                *held = Hold::Alone;
            }
        }
    }
}

/// The time of a transaction is that of its begin: it tells who began first, and who began before
/// another committed.
const TIME: &str = "the time";

/// Tables and sequences are named with their schema.
const PREFIX: &str = "stepwell.";

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How a name is held, by the words before it.
fn hold_after(before: &str) -> Option<Hold> {
    let writes = ["insert into", "update", "delete from", "lock table", "nextval", "truncate"];
    writes.iter().any(|word| before.ends_with(word)).then_some(Hold::Alone)
}

/// What the statements of a transaction see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sight {
    /// Each what is there when it begins.
    #[default]
    PerStatement,
    /// All what is there when the first begins, which is yet to come.
    SnapshotToCome,
    /// All what was there when the first began.
    SnapshotTaken,
}

/// What a session did so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    minds_time: bool,
    is_in_transaction: bool,
    sight: Sight,
    held: BTreeSet<String>,
}

impl Past {
    /// Of a session that did nothing yet. Where time stands still, nobody needs to mind it.
    pub(super) fn new(minds_time: bool) -> Self {
        Self { minds_time, ..Self::default() }
    }

    /// Takes the session's next statement. A transaction of one snapshot only reads.
    pub(super) fn add(&mut self, text: &str) -> Footprint {
        let command = text.trim_start().to_lowercase();
        if command.starts_with("begin") {
            let is_snapshot = command.contains("isolation level repeatable read");
            self.sight = if is_snapshot { Sight::SnapshotToCome } else { Sight::PerStatement };
            self.is_in_transaction = true;
            let mut footprint = Footprint::default();
            if self.minds_time {
                self.held.insert(TIME.to_owned());
                footprint.add(TIME, Some(Hold::Alone));
            }
            return footprint;
        }
        if command.starts_with("commit") || command.starts_with("rollback") {
            (self.is_in_transaction, self.sight) = (false, Sight::PerStatement);
            let shows = std::mem::take(&mut self.held);
            return Footprint { shows, ..Footprint::default() };
        }
        match self.sight {
            Sight::PerStatement => {}
            Sight::SnapshotToCome => {
                self.sight = Sight::SnapshotTaken;
                return Footprint { takes_snapshot: true, ..Footprint::default() };
            }
            Sight::SnapshotTaken => return Footprint::default(),
        }
        let mut footprint = Footprint::of(text);
        let held = footprint.holds.keys().cloned();
        if self.is_in_transaction {
            self.held.extend(held);
        } else {
            footprint.shows = held.collect();
        }
        footprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: &str = "-- read: stepwell.run\nselect 1 from stepwell.task join stepwell.serve s";
    const LOCKS: &str = "select key from stepwell.run where key = any($1) for update of run";
    const WRITES: &str = "with a as (delete from stepwell.ready) update stepwell.task set x = 1";

    /// The footprints of a transaction, from begin to commit.
    fn transaction(texts: &[&str]) -> Vec<Footprint> {
        transaction_in(Past::default(), texts)
    }

    fn transaction_in(mut past: Past, texts: &[&str]) -> Vec<Footprint> {
        let whole = ["begin"].iter().chain(texts).chain(&["commit"]);
        whole.map(|text| past.add(text)).collect()
    }

    #[test]
    fn what_is_not_committed_is_not_seen() {
        let (one, other) = (transaction(&[READS]), transaction(&[WRITES]));
        assert!(one[1].commutes_with(&other[1]));
        assert!(!one[1].commutes_with(&other[2]), "the commit shows what was written");
        assert!(one[2].commutes_with(&other[2]), "nobody sees who of two committed first");
        assert!(one[0].commutes_with(&other[2]), "a statement looks, not its transaction");
    }

    #[test]
    fn a_begin_meets_begins_and_commits_where_time_goes_on() {
        let begin_to_commit = || transaction_in(Past::new(true), &[READS]);
        let (one, other) = (begin_to_commit(), begin_to_commit());
        let commutes = [0, 1, 2].map(|ix| one[0].commutes_with(&other[ix]));
        assert_eq!(commutes, [false, true, false]);
    }

    #[test]
    fn the_first_statement_of_a_snapshot_sees_for_all() {
        let texts = ["begin isolation level repeatable read read only", READS, READS, "commit"];
        let mut past = Past::default();
        let reads = texts.map(|text| past.add(text));
        let writes = transaction(&[WRITES]);
        let commutes = [0, 1, 2, 3].map(|ix| reads[ix].commutes_with(&writes[2]));
        assert_eq!(commutes, [true, false, true, true]);
        assert!(reads[1].commutes_with(&writes[1]), "what is not committed is not seen");
        assert!(!past.add(READS).commutes_with(&writes[2]), "later statements see for themselves");
    }

    #[test]
    fn those_who_lock_one_table_meet() {
        let (one, other) = (transaction(&[LOCKS]), transaction(&[LOCKS, WRITES]));
        assert!(!one[1].commutes_with(&other[1]));
        assert!(one[1].commutes_with(&other[2]));
        assert!(!one[1].commutes_with(&other[3]), "the commit sets the other free");
        let other = transaction(&["insert into stepwell.run (key) values (1)"]);
        assert!(!one[1].commutes_with(&other[1]));
    }

    #[test]
    fn shared_locks_meet_only_those_who_want_it_alone() {
        let shared = transaction(&["select pg_advisory_xact_lock_shared(1)"]);
        let alone = transaction(&["select pg_advisory_xact_lock(1)"]);
        assert!(shared[1].commutes_with(&shared[1]));
        assert!(!shared[1].commutes_with(&alone[1]));
        let leader = transaction(&["select 1 from stepwell.leader for share"]);
        let takes = transaction(&["select 1 from stepwell.leader for update"]);
        assert!(leader[1].commutes_with(&leader[1]));
        assert!(!leader[1].commutes_with(&takes[1]));
        let claims = transaction(&["select no from stepwell.leader for key share"]);
        assert!(!claims[1].commutes_with(&takes[1]));
    }

    #[test]
    fn numbers_of_a_sequence_and_lone_statements_are_seen_at_once() {
        let number = transaction(&["select nextval('stepwell.arrival')"]);
        assert!(!number[1].commutes_with(&number[1]));
        let lone = Past::default().add("update stepwell.worker set x = 1");
        let reads = transaction(&["select 1 from stepwell.worker"]);
        assert!(!lone.commutes_with(&reads[1]));
    }
}
