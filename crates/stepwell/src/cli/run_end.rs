//! How a run has ended, for people and as JSON.

use serde::Serialize;
use serde_json::Value;

use super::run_record::RunRecord;
use super::words::{printable, status_tone};
use super::{Failure, Output};
use crate::api::Run;
use crate::error::Error;
use crate::ports::{DynStore, RunView, StoreError};

/// How a run has ended.
pub(super) struct RunEnd {
    view: RunView,
    result: Result<Value, Error>,
}

/// The end of a run as JSON.
#[derive(Serialize)]
struct EndRecord<'end> {
    record: &'static str,
    #[serde(flatten)]
    run: RunRecord<'end>,
    /// What it gave, if it has completed.
    output: Option<&'end Value>,
}

impl RunEnd {
    /// Reads what else there is to say of a run that has ended with this.
    pub(super) async fn read(
        store: &DynStore,
        run: &Run,
        result: Result<Value, Error>,
    ) -> Result<Self, Failure> {
        let gone = || StoreError::Corrupt { what: format!("run {} is gone", run.key()) };
        let view = store.run(run.key()).await?.ok_or_else(gone)?;
        Ok(Self { view, result })
    }

    /// Says how it ended.
    ///
    /// # Errors
    /// If it did not complete, so that the process exits accordingly.
    pub(super) fn print(self, output: Output) -> Result<(), Failure> {
        let Self { view, result } = self;
        let given = result.as_ref().ok();
        if output.is_json() {
            let run = RunRecord::new(&view.row, &view.definition);
            output.record(&EndRecord { record: "end", run, output: given })?;
        } else {
            let (row, status) = (&view.row, view.row.status);
            let name = printable(&format!("{}/{}", row.tenant, row.id));
            let painted = output.paint(status_tone(status), status.as_str());
            output.line(&format!("Run {name} has ended as {painted}"))?;
            if let Some(value) = given.filter(|value| !value.is_null()) {
                output.line(&format!("  output  {}", printable(&value.to_string())))?;
            }
        }
        result.map(drop).map_err(Failure::from)
    }
}
