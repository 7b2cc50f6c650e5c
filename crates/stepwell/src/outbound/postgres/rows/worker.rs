//! Rows of `worker`, `serve` and `claim`.

use std::collections::BTreeSet;
use std::time::Duration;

use stepwell_core::id::{Node, Queue, ServiceId, Token, WorkerId};
use stepwell_core::lease::{LastBeat, Life};
use stepwell_core::trial::Crew;
use tokio_postgres::Row;

use super::cells::{Cells, only, only_unsigned, selected};
use super::server::{Identity, identity};
use super::{Param, Read, int32};
use crate::ports::ClaimRef;

/// Whether a worker lives.
#[derive(Clone, Copy)]
enum WorkerState {
    Alive = 0,
    /// It left by itself, and tasks that it held are still to be taken from it.
    Leaving = 1,
    /// It was found dead.
    Dead = 2,
    /// It left by itself, and holds nothing.
    Gone = 3,
}

/// The numbers of states, by the words that statements name them with.
pub(super) fn state_words() -> [(&'static str, String); 4] {
    let word = |word, state: WorkerState| (word, (state as u8).to_string());
    [
        word("{worker.ALIVE}", WorkerState::Alive),
        word("{worker.LEAVING}", WorkerState::Leaving),
        word("{worker.DEAD}", WorkerState::Dead),
        word("{worker.GONE}", WorkerState::Gone),
    ]
}

/// What is read of a worker to know what it serves.
pub(super) const SERVING: &str = "no, queues, next_turn, in_trial, array(\
    select distinct service from stepwell.serve where serve.worker = worker.no)";

selected! {
    /// The columns of [`SERVING`].
    Col { No, Queues, NextTurn, InTrial, Services, }
}

selected! {
    /// Read with a worker that asks for tasks, before what tells the database from others.
    Joined { ClaimCount, }
}

/// A worker and what it serves.
#[derive(Clone, Debug)]
pub(crate) struct ServingWorker {
    pub(crate) no: i64,
    pub(crate) queues: Vec<String>,
    pub(crate) next_turn: usize,
    /// It takes suspects, each with empty hands, and nothing else.
    pub(crate) in_trial: bool,
    services: Vec<i32>,
}

impl ServingWorker {
    /// Whether it is registered as it was, whatever its turn is and whether it holds a trial.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.no, &self.queues, &self.services) == (other.no, &other.queues, &other.services)
    }

    /// Whether it has the code of this service.
    pub(crate) fn serves(&self, service: ServiceId) -> bool {
        self.services.contains(&int32(service.0))
    }

    /// The services whose code it has.
    pub(crate) fn services(&self) -> impl Iterator<Item = ServiceId> {
        self.services.iter().map(|number| ServiceId(number.unsigned_abs()))
    }

    /// The numbers of its services, as statements take them.
    pub(crate) fn service_nos(&self) -> &[i32] {
        &self.services
    }
}

/// A worker, what it serves, and the token for what it gets.
pub(crate) fn read_serving(row: &Row, salt: u64) -> Read<(ServingWorker, Token)> {
    let cells = Cells::of(row);
    let next_turn: i32 = cells.get(Col::NextTurn)?;
    let serving = ServingWorker {
        no: cells.get(Col::No)?,
        queues: cells.get(Col::Queues)?,
        next_turn: usize::try_from(next_turn).unwrap_or_default(),
        in_trial: cells.get(Col::InTrial)?,
        services: cells.get(Col::Services)?,
    };
    let count = cells.behind::<Col>().unsigned(Joined::ClaimCount)?;
    Ok((serving, Token::new(count, salt)))
}

/// What tells the database from others, read with a worker that asks for tasks.
pub(crate) fn read_identity(row: &Row) -> Read<Identity> {
    identity(Cells::of(row).behind::<Col>().behind::<Joined>())
}

selected! { CrewCol { NWorkers, NInTrial, } }

/// Workers that serve the same.
pub(crate) fn read_crew(row: &Row) -> Read<Crew> {
    let cells = Cells::of(row);
    let n_workers = cells.size(CrewCol::NWorkers)?;
    Ok(Crew { n_workers, n_in_trial: cells.size(CrewCol::NInTrial)? })
}

selected! { Named { No, Id, } }

/// A worker's number, which a row begins with.
pub(crate) fn read_no(row: &Row) -> Read<i64> {
    only(row)
}

/// A worker's number and id.
pub(crate) fn read_name(row: &Row) -> Read<(i64, WorkerId)> {
    let cells = Cells::of(row);
    Ok((cells.get(Named::No)?, cells.name(Named::Id)?))
}

selected! { Served { Queue, Service, } }

/// Queues and services in them, each once, as two lists.
pub(crate) struct ServiceArrays<'q> {
    queue: Vec<&'q str>,
    service: Vec<i32>,
}

impl<'q> ServiceArrays<'q> {
    pub(crate) fn of(services: impl IntoIterator<Item = (&'q Queue, ServiceId)>) -> Self {
        let services: BTreeSet<(&Queue, ServiceId)> = services.into_iter().collect();
        let service = |(queue, id): (&'q Queue, ServiceId)| (queue.as_str(), int32(id.0));
        let (queue, service) = services.into_iter().map(service).unzip();
        Self { queue, service }
    }

    pub(crate) fn params(&self) -> [Param<'_>; 2] {
        [&self.queue, &self.service]
    }
}

selected! { PlaceCol { Queue, Service, IsServed, } }

/// A queue and a service of which tasks wait in it, and whether somebody serves them.
pub(crate) struct ServicePlace {
    pub(crate) queue: Queue,
    pub(crate) service: ServiceId,
    pub(crate) is_served: bool,
}

pub(crate) fn read_place(row: &Row) -> Read<ServicePlace> {
    let cells = Cells::of(row);
    Ok(ServicePlace {
        queue: cells.name(PlaceCol::Queue)?,
        service: ServiceId(cells.count(PlaceCol::Service)?),
        is_served: cells.get(PlaceCol::IsServed)?,
    })
}

/// Steps of services with the queues in which tasks of theirs wait, as three lists.
#[derive(Default)]
pub(crate) struct StepPlaces {
    queue: Vec<String>,
    service: Vec<i32>,
    node: Vec<i64>,
}

impl StepPlaces {
    pub(crate) fn add(&mut self, place: &ServicePlace, nodes: &[Node]) {
        self.queue.extend(nodes.iter().map(|_| place.queue.as_str().to_owned()));
        self.service.extend(nodes.iter().map(|_| int32(place.service.0)));
        self.node.extend(nodes.iter().map(|node| i64::from(node.0)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.node.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 3] {
        [&self.queue, &self.service, &self.node]
    }
}

/// A queue and the number of a service that somebody serves in it.
pub(crate) fn read_served(row: &Row) -> Read<(String, u32)> {
    let cells = Cells::of(row);
    Ok((cells.get(Served::Queue)?, cells.count(Served::Service)?))
}

/// What is read of a worker to know whether it is dead.
pub(super) const LIFE: &str = "worker.id, worker.n_beats, worker.lease_micros, \
    worker.state = {worker.LEAVING}";

selected! {
    /// The columns of [`LIFE`].
    LifeCol { Id, NBeats, LeaseMicros, HasLeft, }
}

/// The life of a worker.
pub(crate) fn read_life(row: &Row) -> Read<Life> {
    let cells = Cells::of(row);
    let worker = cells.name(LifeCol::Id)?;
    Ok(Life {
        last_beat: LastBeat { worker, n_beats: cells.unsigned(LifeCol::NBeats)? },
        lease: Duration::from_micros(cells.unsigned(LifeCol::LeaseMicros)?),
        has_left: cells.get(LifeCol::HasLeft)?,
        is_gone: false,
    })
}

selected! { Held { Worker, Run, Node, Token, Losses, } }

/// A claim that a worker holds, and how often its task was lost.
pub(crate) struct HeldClaim {
    pub(crate) worker: i64,
    pub(crate) claim: ClaimRef,
    pub(crate) losses: u32,
}

pub(crate) fn read_claim(row: &Row) -> Read<HeldClaim> {
    let cells = Cells::of(row);
    let (run, node) = (cells.run_key(Held::Run)?, cells.node(Held::Node)?);
    Ok(HeldClaim {
        worker: cells.get(Held::Worker)?,
        claim: ClaimRef { run, node, token: cells.token(Held::Token)? },
        losses: cells.count(Held::Losses)?,
    })
}

/// A count of claims.
pub(crate) fn read_claim_count(row: &Row) -> Read<u64> {
    only_unsigned(row)
}

selected! { Batch { Token, } }

/// The token of a batch of claims.
pub(crate) fn read_token(row: &Row) -> Read<Token> {
    Cells::of(row).token(Batch::Token)
}

#[cfg(test)]
mod tests {
    use super::super::cells::Columns;
    use super::*;

    #[test]
    fn what_is_selected_of_a_worker_is_what_is_read() {
        assert_eq!(SERVING.split(", ").count(), Col::ALL.len());
    }
}
