//! Outcomes that the server refuses for reasons that no task can help.

use std::time::Duration;

use stepwell::AttemptState;
use stepwell_faults::database::{OwnDatabase, connect, eventually};
use tokio_postgres::Client;

use crate::support::{Journal, all_came_right, count, engine, server, start, store};

/// From now on the server refuses all outputs with this state. A sequence counts how often:
/// what is rolled back does not take that back.
async fn refuse_outputs(client: &Client, state: &str) {
    let refuse = format!(
        "create sequence public.n_refused;
         create function public.refuse() returns trigger language plpgsql as $$ begin
             perform nextval('public.n_refused');
             raise exception 'refused' using errcode = '{state}';
         end $$;
         create trigger refuse before insert on stepwell.output
             for each statement execute function public.refuse();"
    );
    client.batch_execute(&refuse).await.expect("the trigger is made");
}

async fn n_refused(client: &Client) -> i64 {
    let row = client.query_one("select last_value from public.n_refused", &[]).await;
    row.expect("it answers").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_that_the_server_refuses_for_no_fault_of_theirs_are_kept_until_it_is_mended() {
    // A table that is not there, a statement of another program, an error of the server's own, and
    // damaged pages.
    const N_RUNS: u32 = 4;
    for state in ["42P01", "42P05", "XX000", "XX001"] {
        let database = OwnDatabase::make(&server()).await;
        let client = connect(database.url()).await;
        let journal = Journal::new(1_000);
        let lease = Duration::from_secs(30);
        let (engine, sums) = engine(store(database.url()).await, &journal, lease).await;
        refuse_outputs(&client, state).await;
        for n in 1..=N_RUNS {
            start(&engine, &sums, n).await;
        }
        eventually("outputs are refused", async || n_refused(&client).await > 8).await;
        client.batch_execute("drop trigger refuse on stepwell.output").await.expect("mended");
        let dump = all_came_right(database.url(), &journal, N_RUNS).await;
        for bad in [AttemptState::Failed, AttemptState::Lost, AttemptState::Released] {
            assert_eq!(count(&dump, bad), 0, "{state}: {bad:?}");
        }
        engine.stop_gracefully().await;
        database.abandon().await;
    }
}
