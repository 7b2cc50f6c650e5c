use std::time::Duration;

use async_trait::async_trait;
use stepwell_core::id::{Epoch, WorkerId};
use stepwell_core::lead::{self, Leading, Term};

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
    let until = tables.now.after(ttl);
    let term = tables.leader.as_ref().map(|leader| Term {
        worker: leader.worker.as_str(),
        epoch: leader.epoch,
        until: leader.until,
        ttl: leader.ttl,
        is_vacant: false,
    });
    let epoch = match lead::lead(term.as_ref(), candidate.as_str(), tables.now) {
        Leading::Follow => return Lead::Following,
        Leading::Keep(epoch) => epoch,
        Leading::TakeOver => {
            tables.last_epoch += 1;
            Epoch(tables.last_epoch)
        }
    };
    tables.leader = Some(LeaderEntry { worker: candidate.clone(), epoch, until, ttl });
    Lead::Leading(epoch)
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
