//! Signals that are sent to runs: each is stored, and given to the oldest wait that is for it.

use std::collections::BTreeMap;

use stepwell_core::decide::{
    Happening, InboxNeeds, NewSignal, RunHappening, SignalAnswer, Verdict, affected, decide,
};
use stepwell_core::id::RunKey;
use stepwell_core::run::{Extras, Inbox};

use super::happen::plan_of;
use super::load::{load_inbox, load_tasks};
use super::write::write;
use crate::outbound::sqlite::file::corrupt;
use crate::outbound::sqlite::rows;
use crate::outbound::sqlite::writer::Transaction;
use crate::ports::{Payload, SignalRequest, SignalTarget, StoreError};

/// Sends signals in their order. The waits and signals of a run are read once, however many signals
/// go to it.
pub(crate) fn send_all(
    transaction: &mut Transaction<'_, '_>,
    requests: Vec<SignalRequest>,
) -> Result<Vec<Option<SignalAnswer>>, StoreError> {
    let mut runs = Vec::with_capacity(requests.len());
    let mut needs: BTreeMap<RunKey, InboxNeeds> = BTreeMap::new();
    for request in &requests {
        let run = find_run(transaction, &request.to)?;
        if let Some(run) = run {
            needs.entry(run).or_default().keys.insert(request.signal.key.clone());
        }
        runs.push(run);
    }
    let mut inboxes = BTreeMap::new();
    for (run, needs) in needs {
        inboxes.insert(run, load_inbox(transaction, run, &needs)?);
    }
    let mut answers = Vec::with_capacity(requests.len());
    for (run, request) in runs.into_iter().zip(requests) {
        let SignalRequest { signal, payload, .. } = request;
        let inbox = run.and_then(|run| Some((run, inboxes.get_mut(&run)?)));
        let answer = inbox.map(|(run, inbox)| send(transaction, run, inbox, signal, &payload));
        answers.push(answer.transpose()?);
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

fn send(
    transaction: &mut Transaction<'_, '_>,
    run: RunKey,
    inbox: &mut Inbox,
    signal: NewSignal,
    payload: &Payload,
) -> Result<SignalAnswer, StoreError> {
    let plan = plan_of(transaction, run)?;
    let concerned = concerned_by(inbox, &signal);
    let happening = Happening::Run(RunHappening::Signalled(signal));
    let mut affected = affected(&plan.definition, [&happening]);
    affected.add_waits(&plan.definition, &concerned.waits, [&happening]);
    let image = load_tasks(transaction, run, &plan, affected)?;
    let mut image = image.with_inbox(concerned);
    let verdict = decide(&mut image, happening);
    let changes = write(transaction, image, &plan)?;
    if let Some(extras) = changes.extras {
        let run_no = transaction.cache.runs.load(transaction.file, run)?.no;
        for signal in &extras.signals_stored {
            rows::signal::insert(transaction.file, run_no, signal, payload)?;
        }
        keep_up(inbox, *extras);
    }
    match verdict {
        Verdict::Signal(answer) => Ok(answer),
        _ => Err(corrupt("a signal was not answered")),
    }
}

/// What a signal is compared with: the waits that are for it, and the signal of its key.
fn concerned_by(inbox: &Inbox, signal: &NewSignal) -> Inbox {
    let waits = inbox.waits.iter().filter(|wait| wait.is_for(&signal.name, &signal.attributes));
    let signals = inbox.signals.iter().filter(|known| known.key == signal.key);
    Inbox { waits: waits.cloned().collect(), signals: signals.cloned().collect() }
}

/// Does to an inbox what was done to the file, for the next signal.
fn keep_up(inbox: &mut Inbox, extras: Extras) {
    inbox.waits.retain(|wait| !extras.waits_closed.contains(&wait.node));
    inbox.waits.extend(extras.waits_opened);
    inbox.signals.extend(extras.signals_stored);
}
