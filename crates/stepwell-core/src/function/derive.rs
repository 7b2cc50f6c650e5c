//! Numbers that look like chance and are the same on every replay.

use sha2::{Digest, Sha256};

use crate::id::{Node, RunKey};

/// Bytes that follow from a run, a task of it, its round and a key: the same whenever they are
/// asked for, and others for everything else.
#[must_use]
pub fn derived(run: RunKey, node: Node, round: u32, key: &str) -> [u8; 32] {
    let mut sha = Sha256::new();
    sha.update(b"stepwell function");
    sha.update(run.0.to_le_bytes());
    sha.update(node.0.to_le_bytes());
    sha.update(round.to_le_bytes());
    sha.update(key.as_bytes());
    sha.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_follows_from_run_task_round_and_key() {
        let base = derived(RunKey(1), Node(0), 0, "id");
        assert_eq!(base, derived(RunKey(1), Node(0), 0, "id"));
        for other in [
            derived(RunKey(2), Node(0), 0, "id"),
            derived(RunKey(1), Node(1), 0, "id"),
            derived(RunKey(1), Node(0), 1, "id"),
            derived(RunKey(1), Node(0), 0, "id#2"),
        ] {
            assert_ne!(base, other);
        }
    }
}
