//! Keys of calls: what a function asks for a memo by.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::{Journal, Value};
use crate::limits::MEMO_KEY_BYTES_MAX;

/// What a call is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name that the function gave it, with its scope.
    pub name: String,
    /// How many calls of that name there were, this one included.
    pub count: u32,
}

impl Key {
    /// What its memo is stored under: the name, and from the second call on its number.
    #[must_use]
    pub fn text(&self) -> String {
        match self.count {
            0 | 1 => self.name.clone(),
            count => format!("{}#{count}", self.name),
        }
    }
}

#[derive(Default)]
pub(super) struct Names {
    by_name: BTreeMap<String, Name>,
    /// The number of the poll that goes on.
    poll: u64,
    /// Whether something outside of the function caused it.
    is_poll_foreign: bool,
}

#[derive(Default)]
struct Name {
    n_calls: u32,
    /// Whether one of its calls was made in an order that nothing fixes.
    was_unordered: bool,
    /// The last poll in which it was called and awaited.
    awaited_in: Option<u64>,
}

impl Names {
    pub(super) const fn poll(&self) -> u64 {
        self.poll
    }

    /// A call is awaited in the poll in which it was made.
    pub(super) fn awaited(&mut self, name: &str) {
        let poll = self.poll;
        if let Some(name) = self.by_name.get_mut(name) {
            name.awaited_in = Some(poll);
        }
    }
}

/// Whether a name ends as the key of a later call does: it would answer for that call.
fn looks_counted(name: &str) -> bool {
    let count = name.rsplit_once('#').map(|(_, count)| count);
    count.is_some_and(|count| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
}

impl<V: Value> Journal<V> {
    /// The function is polled, perhaps because of something outside of it.
    pub fn begin_poll(&mut self, is_foreign: bool) {
        self.names.poll += 1;
        self.names.is_poll_foreign = is_foreign;
    }

    /// Takes the key of a call. The call is unordered if nothing fixes when it is made, as in a
    /// poll during which something outside woke the function, or on a thread of its own.
    pub fn take_key(&mut self, name: &str, is_unordered: bool) -> Key {
        self.check_name(name);
        let (poll, is_unordered) = (self.names.poll, is_unordered || self.names.is_poll_foreign);
        let of_name = self.names.by_name.entry(name.into()).or_default();
        of_name.n_calls += 1;
        of_name.was_unordered |= is_unordered;
        let is_again = of_name.n_calls > 1;
        let is_contested = is_again && of_name.awaited_in == Some(poll);
        let why = match (is_again && of_name.was_unordered, is_contested) {
            (true, _) => Some(
                "something outside of steps decided which call came first; move that into a step, \
                 or",
            ),
            (_, true) => Some("two futures that run side by side make them;"),
            _ => None,
        };
        let key = Key { name: name.into(), count: of_name.n_calls };
        if let Some(why) = why {
            self.refuse(&format!(
                "the calls of {name:?} come in an order that nothing fixes: {why} name them apart, \
                 as `(\"{name}\", id)`, by `ctx.scope(..)` or by `ctx.map(..)`"
            ));
        }
        if let Some(record) = self.records.get_mut(&key.text()) {
            record.is_called = true;
        }
        key
    }

    fn check_name(&mut self, name: &str) {
        if name.is_empty() {
            self.refuse("a step of a function has an empty name; give it one");
        } else if looks_counted(name) || name.contains('\0') {
            self.refuse(&format!(
                "{name:?} cannot name a step of a function: `#` and a number at its end are for \
                 counting calls, and NUL cannot be stored"
            ));
        } else if name.len() > MEMO_KEY_BYTES_MAX - 16 {
            let n = name.len();
            self.refuse(&format!(
                "the name of a step of a function has {n} bytes with its scope and id, the limit \
                 is {}; give it a shorter one",
                MEMO_KEY_BYTES_MAX - 16
            ));
        }
    }

    /// Warns when a call is executed although later ones of its name are recorded: a deploy has
    /// inserted one before them, and they answer for the wrong calls.
    pub(super) fn warn_of_inserted(&mut self, key: &Key) {
        let later = Key { count: key.count + 1, ..key.clone() }.text();
        if self.records.contains_key(&later) {
            self.warnings.push(format!(
                "{:?} is executed although {later:?} is recorded: a call of that name seems to \
                 have been inserted before others, whose records now answer for other calls",
                key.text()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_reads_as_the_key_of_a_later_call_is_refused_wherever_it_stands() {
        for name in ["a#2", "eu/a#2", "map[1]/a#12", "#3"] {
            assert!(looks_counted(name), "{name}");
        }
        for name in ["a", "a#", "a#b", "item[x#2]", "map[x#2]/a", "a#2b"] {
            assert!(!looks_counted(name), "{name}");
        }
    }
}
