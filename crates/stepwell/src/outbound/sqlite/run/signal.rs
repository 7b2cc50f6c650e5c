//! Signals that are sent to runs: each is stored, and given to the oldest wait that is for it.

use std::collections::BTreeMap;

use stepwell_core::decide::{Happening, RunHappening, SignalAnswer, Verdict};
use stepwell_core::id::RunKey;

use super::happen::happen_with;
use crate::outbound::sqlite::file::corrupt;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Payload, SignalRequest, SignalTarget, StoreError};

/// Sends signals, those of one run in their order. A run is loaded and written once, however many
/// signals go to it.
pub(crate) fn send_all(
    transaction: &mut Transaction<'_, '_>,
    requests: Vec<SignalRequest>,
) -> Result<Vec<Option<SignalAnswer>>, StoreError> {
    let mut answers = vec![None; requests.len()];
    let mut of_runs: BTreeMap<RunKey, Vec<usize>> = BTreeMap::new();
    for (ix, request) in requests.iter().enumerate() {
        if let Some(run) = find_run(transaction, &request.to)? {
            of_runs.entry(run).or_default().push(ix);
        }
    }
    for (run, of_run) in of_runs {
        let sent: Vec<&SignalRequest> = of_run.iter().map(|ix| &requests[*ix]).collect();
        for (ix, answer) in of_run.iter().zip(send(transaction, run, &sent)?) {
            answers[*ix] = Some(answer);
        }
    }
    Ok(answers)
}

fn find_run(
    transaction: &mut Transaction<'_, '_>,
    target: &SignalTarget,
) -> Result<Option<RunKey>, StoreError> {
    let (file, runs) = (transaction.file, &mut transaction.cache.runs);
    match target {
        SignalTarget::Key(run) => Ok(runs.find(file, *run)?.map(|run| run.row.key)),
        SignalTarget::Id(tenant, id) => runs.find_key(file, tenant, id),
    }
}

/// Sends signals to one run. What is stored of them is told from the others by key.
fn send(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    sent: &[&SignalRequest],
) -> Result<Vec<SignalAnswer>, StoreError> {
    let signalled =
        |request: &&SignalRequest| Happening::Run(RunHappening::Signalled(request.signal.clone()));
    // Of several signals of one key the first is stored.
    let payloads: BTreeMap<&str, &Payload> =
        sent.iter().rev().map(|request| (&*request.signal.key, &request.payload)).collect();
    let happenings = sent.iter().map(signalled).collect();
    let verdicts = happen_with(transaction, run, happenings, &payloads)?;
    let answer = |verdict| match verdict {
        Verdict::Signal(answer) => Ok(answer),
        _ => Err(corrupt("a signal was not answered")),
    };
    verdicts.into_iter().map(answer).collect()
}
