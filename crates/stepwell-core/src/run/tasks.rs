use alloc::vec::{self, Vec};

use super::TaskRow;
use crate::id::Node;

/// Some tasks of a run, in the order of their nodes.
///
/// Most decisions look at two or three, and a list of those takes one small piece of memory.
#[derive(Debug, Default)]
pub struct Tasks(Vec<TaskRow>);

impl Tasks {
    /// A task by its node.
    #[must_use]
    pub fn get(&self, node: Node) -> Option<&TaskRow> {
        self.find(node).ok().map(|ix| &self.0[ix])
    }

    /// A task that is about to change.
    pub fn get_mut(&mut self, node: Node) -> Option<&mut TaskRow> {
        self.find(node).ok().map(|ix| &mut self.0[ix])
    }

    /// The tasks in order.
    pub fn iter(&self) -> impl Iterator<Item = &TaskRow> {
        self.0.iter()
    }

    /// Adds a task, in the place of one with the same node.
    pub(crate) fn insert(&mut self, task: TaskRow) {
        match self.find(task.node) {
            Ok(ix) => self.0[ix] = task,
            Err(ix) => self.0.insert(ix, task),
        }
    }

    fn find(&self, node: Node) -> Result<usize, usize> {
        self.0.binary_search_by_key(&node, |task| task.node)
    }
}

impl FromIterator<TaskRow> for Tasks {
    /// Of several with one node the last one stays.
    fn from_iter<T: IntoIterator<Item = TaskRow>>(tasks: T) -> Self {
        let mut tasks: Vec<TaskRow> = tasks.into_iter().collect();
        if !tasks.is_sorted_by(|one, next| one.node < next.node) {
            tasks.sort_by_key(|task| task.node);
            tasks.dedup_by(|later, earlier| {
                let is_same = later.node == earlier.node;
                if is_same {
                    core::mem::swap(later, earlier);
                }
                is_same
            });
        }
        Self(tasks)
    }
}

impl IntoIterator for Tasks {
    type Item = TaskRow;
    type IntoIter = vec::IntoIter<TaskRow>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Phase;

    fn task(node: u32, attempt: u32) -> TaskRow {
        TaskRow {
            node: Node(node),
            phase: Phase::Pending,
            n_unmet: 0,
            n_skipped: 0,
            attempt,
            failures: 0,
            losses: 0,
            queued_logged: false,
            resumed: None,
            next_memo: 0,
        }
    }

    #[test]
    fn tasks_lie_in_order_and_the_last_of_a_node_stays() {
        let mut tasks: Tasks =
            [(3, 1), (1, 1), (3, 2), (2, 1)].map(|(n, a)| task(n, a)).into_iter().collect();
        tasks.insert(task(0, 1));
        tasks.insert(task(1, 9));
        let listed: Vec<(u32, u32)> =
            tasks.iter().map(|task| (task.node.0, task.attempt)).collect();
        assert_eq!(listed, [(0, 1), (1, 9), (2, 1), (3, 2)]);
        assert!(tasks.get(Node(4)).is_none());
        assert_eq!(tasks.get_mut(Node(3)).map(|task| task.attempt), Some(2));
    }
}
