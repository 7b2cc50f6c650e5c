use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};

use super::MemoryStore;
use super::tables::{LeaderEntry, Tables};
use crate::ports::{Lead, Leadership, StoreError};

#[async_trait]
impl Leadership for MemoryStore {
    async fn lead(&self, candidate: &WorkerId, ttl: Duration) -> Result<Lead, StoreError> {
        Ok(self.transact(|tables| lead(tables, candidate, ttl)))
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.transact(|tables| {
            if tables.check_epoch(epoch).is_ok() {
                tables.leader = None;
            }
        });
        Ok(())
    }
}

fn lead(tables: &mut Tables, candidate: &WorkerId, ttl: Duration) -> Lead {
    let now = tables.now;
    match &mut tables.leader {
        Some(leader) if leader.worker == *candidate && leader.until > now => {
            leader.until = now.after(ttl);
            Lead::Leading(leader.epoch)
        }
        Some(leader) if leader.until > now => Lead::Following,
        _ => {
            tables.last_epoch += 1;
            let epoch = Epoch(tables.last_epoch);
            let entry = LeaderEntry { worker: candidate.clone(), epoch, until: now.after(ttl) };
            tables.leader = Some(entry);
            Lead::Leading(epoch)
        }
    }
}

impl Tables {
    /// Fences a leader's write.
    pub(super) fn check_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        match &self.leader {
            Some(leader) if leader.epoch == epoch => Ok(()),
            _ => Err(StoreError::NotLeader),
        }
    }
}
