//! The three stores side by side.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use stepwell::ports::DynStore;
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::check_invariants;
use stepwell::{MemoryStore, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use super::command::{Command, Theme};
use super::player::Player;

/// After so many commands everything is compared, and once more at the end.
const DUMP_EVERY: usize = 8;

/// Three stores on one clock.
pub(crate) struct Stage {
    clock: Arc<ManualClock>,
    players: Vec<Player>,
    schema: String,
    _folder: TempDir,
}

fn url() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "tests of the PostgreSQL store need a server: run `cargo xtask test`, which brings its \
         own, or set STEPWELL_TEST_DATABASE_URL",
    )
}

impl Stage {
    /// Plays commands on fresh stores; says where they differ.
    pub(crate) async fn play(theme: Theme, commands: &[Command]) -> Result<(), String> {
        let mut stage = Self::set_up(theme).await;
        let told = stage.play_all(commands).await;
        stage.tear_down().await;
        told
    }

    async fn set_up(theme: Theme) -> Self {
        let clock = Arc::new(ManualClock::new());
        let memory: DynStore = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
        let folder = TempDir::new().expect("a test machine has a folder for temporary files");
        let options = SqliteOptions::new(folder.path().join("stepwell.db")).synchronous_normal();
        let sqlite = SqliteStore::with_clock(options, Arc::clone(&clock) as _);
        let sqlite: DynStore = Arc::new(sqlite.expect("a fresh file opens"));
        let schema = format!("same_{:016x}", RandomState::new().build_hasher().finish());
        let options = PostgresOptions::new(url())
            .schema(schema.clone())
            .connections_max(2)
            .poll_only()
            .clock(Arc::clone(&clock) as _);
        let postgres = PostgresStore::connect_with(options).await;
        let postgres: DynStore = Arc::new(postgres.expect("the server answers"));
        let stores = [("memory", memory), ("sqlite", sqlite), ("postgres", postgres)];
        let player = |(name, store)| Player::new(name, store, Arc::clone(&clock), theme);
        let players = stores.into_iter().map(player).collect();
        Self { clock, players, schema, _folder: folder }
    }

    async fn play_all(&mut self, commands: &[Command]) -> Result<(), String> {
        for (ix, command) in commands.iter().enumerate() {
            if let Command::Pass { millis } = command {
                self.clock.advance(Duration::from_millis((*millis).into()));
            }
            let mut answers = Vec::with_capacity(self.players.len());
            for player in &mut self.players {
                answers.push((player.name, player.play(command).await));
            }
            compare(&answers).map_err(|why| format!("answers to {ix} {command:?}:\n{why}"))?;
            if ix % DUMP_EVERY == DUMP_EVERY - 1 || ix + 1 == commands.len() {
                let differ = |why| format!("rows after {ix} {command:?}:\n{why}");
                self.compare_rows().await.map_err(differ)?;
            }
        }
        for player in &self.players {
            check_invariants(&*player.store).await;
        }
        Ok(())
    }

    async fn compare_rows(&mut self) -> Result<(), String> {
        let mut dumps = Vec::with_capacity(self.players.len());
        for player in &mut self.players {
            dumps.push((player.name, player.dump().await));
        }
        compare(&dumps)
    }

    /// Many cases on one server would leave many schemas behind.
    async fn tear_down(self) {
        drop(self.players);
        let (client, connection) =
            tokio_postgres::connect(&url(), NoTls).await.expect("the server answers");
        let drop_schema = format!("drop schema {} cascade", self.schema);
        let dropped = async {
            let dropped = client.batch_execute(&drop_schema).await;
            drop(client);
            dropped
        };
        let (dropped, _) = tokio::join!(dropped, connection);
        dropped.expect("the schema was made before");
    }
}

/// Shows the lines that not all have.
fn compare(answers: &[(&str, String)]) -> Result<(), String> {
    let (_, first) = &answers[0];
    if answers.iter().all(|(_, answer)| answer == first) {
        return Ok(());
    }
    let has = |text: &str, line: &str| text.lines().any(|own| own == line);
    let mut words = Vec::new();
    for (name, answer) in answers {
        words.push(format!("--- {name}"));
        let is_own = |line: &&str| !answers.iter().all(|(_, other)| has(other, line));
        words.extend(answer.lines().filter(is_own).map(str::to_owned));
    }
    Err(words.join("\n"))
}
