//! The numbers by which rows name workers.

use std::collections::HashMap;

use stepwell_core::id::WorkerId;

use crate::outbound::sqlite::file::{File, corrupt};
use crate::outbound::sqlite::rows;
use crate::ports::StoreError;

/// Numbers of workers. They never change.
#[derive(Default)]
pub(crate) struct WorkerNumbers(HashMap<WorkerId, i64>);

impl WorkerNumbers {
    /// The number of a worker, which is read if it is not known yet.
    pub(crate) fn load(
        &mut self,
        file: File<'_, '_>,
        worker: &WorkerId,
    ) -> Result<i64, StoreError> {
        if let Some(no) = self.0.get(worker) {
            return Ok(*no);
        }
        let found = rows::worker::number_of(file, worker)?;
        let no = found.ok_or_else(|| corrupt(format!("worker {worker} is missing")))?;
        self.0.insert(worker.clone(), no);
        Ok(no)
    }
}
