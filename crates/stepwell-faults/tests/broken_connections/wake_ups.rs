//! Wake-ups between processes.

use std::time::Duration;

use stepwell::PostgresStore;
use stepwell::core::id::{Queue, WorkerId};
use stepwell::ports::{Hint, Store, WorkerRegistration, Workers};
use stepwell_faults::database::{OwnDatabase, eventually};
use stepwell_faults::wire::{SessionView, Wire};

use crate::support::{server, store};

/// Does something that other processes are told of.
async fn tell_others(store: &PostgresStore) {
    let registration = WorkerRegistration {
        worker: WorkerId::new("one").expect("a good name"),
        queues: vec![Queue::default_queue()],
        services: Vec::new(),
        lease: Duration::from_secs(30),
    };
    store.register_worker(registration).await.expect("it registers");
}

#[tokio::test]
async fn wake_ups_come_back_after_the_listening_connection_was_cut() {
    // FC1
    let database = OwnDatabase::make(&server()).await;
    let wire = Wire::to(database.url()).await;
    let (one, other) = (store(database.url()).await, store(wire.url()).await);
    let mut hints = other.hints();
    // The first hint says that it listens.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    let listens = |session: &SessionView| session.has_sent("listen ");
    assert_eq!(wire.cut(listens), 1, "one connection listens");
    // Listening again, it says once that there may be something to see.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    let is_back = |session: &SessionView| listens(session) && !session.is_over;
    assert_eq!(wire.sessions().iter().filter(|session| is_back(session)).count(), 1);
    // Nothing here polls, so only a notification can end the wait.
    tell_others(&one).await;
    hints.given(Hint::Ready).await;
    database.abandon().await;
}

#[tokio::test]
async fn a_line_that_does_not_hear_itself_is_given_up_and_tried_again() {
    // FC1: it looks healthy, and delivers nothing.
    let database = OwnDatabase::make(&server()).await;
    let wire = Wire::to(database.url()).await;
    wire.deafen(true);
    let (one, other) = (store(database.url()).await, store(wire.url()).await);
    let mut hints = other.hints();
    let listens = |session: &SessionView| session.has_sent("listen ");
    let n_lines = || wire.sessions().iter().filter(|session| listens(session)).count();
    eventually("it gives the line up and listens anew", async || n_lines() >= 2).await;
    let is_told = tokio::select! {
        biased;
        () = hints.given(Hint::Ready) => true,
        () = std::future::ready(()) => false,
    };
    assert!(!is_told, "a line that hears nothing promises nothing");
    wire.deafen(false);
    // Heard again, it says once that there may be something to see.
    hints.given(Hint::Ready).await;
    hints.look(Hint::Ready);
    tell_others(&one).await;
    hints.given(Hint::Ready).await;
    database.abandon().await;
}
