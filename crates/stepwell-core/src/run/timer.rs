//! Timers of a run as a whole, beside those of its tasks.

use crate::id::Node;

/// A timer of the run as a whole: at most one per purpose. It stands under a reserved node
/// number, so that stores keep it like any other timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunTimer {
    /// The run must have ended by then.
    Deadline,
    /// The leader looks at the run again, to do what a commit left to it.
    LookAgain,
}

impl RunTimer {
    /// Every purpose.
    pub const ALL: [Self; 2] = [Self::Deadline, Self::LookAgain];

    /// The reserved number it stands under.
    #[must_use]
    pub const fn node(self) -> Node {
        match self {
            Self::Deadline => Node::DEADLINE,
            Self::LookAgain => Node::LOOK_AGAIN,
        }
    }

    /// The run's timer that stands under this number, if the number is a reserved one.
    #[must_use]
    pub fn at(node: Node) -> Option<Self> {
        Self::ALL.into_iter().find(|timer| timer.node() == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::STEPS_MAX;

    #[test]
    fn timers_of_the_run_stand_under_numbers_that_no_task_has() {
        for timer in RunTimer::ALL {
            assert_eq!(RunTimer::at(timer.node()), Some(timer));
            assert!(timer.node().index() > STEPS_MAX);
            assert!(i32::try_from(timer.node().0).is_ok());
        }
        assert_eq!(RunTimer::at(Node(0)), None);
        assert_eq!(RunTimer::at(Node::ON_FAILURE), None);
    }
}
