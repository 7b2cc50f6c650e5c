//! A database, two stores behind wires of their own, and a third one past them.

use std::collections::BTreeSet;
use std::sync::Arc;

use stepwell::core::id::{Node, Token};
use stepwell::core::run::TaskRow;
use stepwell::ports::{Clock, DynStore, TaskPlace};
use stepwell::testing::ManualClock;
use stepwell::testing::conformance::{World, check_invariants};
use stepwell::{PostgresOptions, PostgresStore};
use stepwell_faults::database::{OwnDatabase, Snapshot, connect};
use stepwell_faults::interleave::{Along, Duet, Explorer, Guide, Played, Side, all};
use stepwell_faults::wire::Wire;
use tokio::sync::OnceCell;

use crate::acts::Act;
use crate::picture::{Picture, Places, difference, picture};

const SCHEMA: &str = "stepwell";

/// Who waits for a vacuum that the server began by itself would look as if it waited for nobody.
const WITHOUT_AUTOVACUUM: &str = "do $$ declare name text; begin \
    for name in select tablename from pg_tables where schemaname = 'stepwell' loop \
        execute format('alter table stepwell.%I set (autovacuum_enabled = off)', name); \
    end loop; end $$";

/// The time of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// It stands still, so that what comes out can be compared.
    Stands,
    /// It is the database's own.
    GoesOn,
}

/// Where two calls meet.
pub(crate) struct Stage {
    database: OwnDatabase,
    /// The store past the wires, in the state in which the calls find it.
    pub(crate) world: World,
    stores: [DynStore; 2],
    duet: Duet,
}

/// What two calls left and answered.
#[derive(PartialEq, Eq)]
struct Outcome {
    answers: [String; 2],
    picture: Picture,
}

/// What was tried, for tests that want to know that the two met at all.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) n_orders: usize,
    /// How often one had to wait for the other.
    pub(crate) n_waits: usize,
    /// How often it came out as if the first had gone first, and as if the other had.
    pub(crate) n_as: [usize; 2],
    /// How often a claim came back with less than after the other, or before it.
    pub(crate) n_lesser: usize,
    pub(crate) n_statements: [usize; 2],
    /// The answers of every order.
    pub(crate) answers: BTreeSet<[String; 2]>,
}

impl Tried {
    /// Whether the two had anything to do with each other.
    pub(crate) fn did_meet(&self) -> bool {
        self.n_waits > 0 || self.n_lesser > 0 || self.n_as.iter().all(|n| *n > 0)
    }
}

fn server() -> String {
    std::env::var("STEPWELL_TEST_DATABASE_URL").expect(
        "interleavings need a PostgreSQL server: run `cargo xtask test`, which brings its own, or \
         set STEPWELL_TEST_DATABASE_URL",
    )
}

impl Stage {
    pub(crate) async fn open() -> Self {
        Self::open_with("", Time::Stands).await
    }

    /// With settings of the server for the two sessions, such as `-c enable_sort=off`.
    pub(crate) async fn open_with(options: &str, time: Time) -> Self {
        Self::open_as(options, time, |options| options).await
    }

    /// With other options of the two stores.
    pub(crate) async fn open_as(
        options: &str,
        time: Time,
        also: fn(PostgresOptions) -> PostgresOptions,
    ) -> Self {
        let database = OwnDatabase::make(&server()).await;
        let clock = Arc::new(ManualClock::new());
        let given = (time == Time::Stands).then_some(&clock);
        let world = store(database.url().to_owned(), given, |options| options).await;
        let wires = [Wire::to(database.url()).await, Wire::to(database.url()).await];
        let url = |wire: &Wire| format!("{} options='{options}'", wire.url());
        let stores =
            [store(url(&wires[0]), given, also).await, store(url(&wires[1]), given, also).await];
        let duet = Duet::new(wires, connect(database.url()).await).await;
        duet.watcher().batch_execute(WITHOUT_AUTOVACUUM).await.expect("tables can be altered");
        Self { database, world: World::new(world, clock), stores, duet }
    }

    /// Lets two calls meet in every order that can matter and holds what comes out to the
    /// invariants only, for calls on time that goes on.
    pub(crate) async fn survive(&self, one: &Act, other: &Act) {
        self.survive_all(one, other, Explorer::that_minds_time()).await;
    }

    /// As [`survive`](Self::survive), in the orders through which the explorer leads.
    pub(crate) async fn survive_all(&self, one: &Act, other: &Act, mut explorer: Explorer) {
        let meeting = Meeting::new(self, one, other).await;
        while explorer.begin() {
            let (_, played) = meeting.play(meeting.acts, &mut explorer).await;
            let dump = self.world.dump().await;
            for claim in dump.tasks.values().flatten().filter_map(TaskRow::claim) {
                let is_in_order = claim.queued_at <= claim.started_at;
                assert!(is_in_order, "claimed too early: {claim:?}\n{}", played.story.join("\n"));
            }
        }
    }

    /// Lets two calls meet in every order that can matter, each from the state that the world is in
    /// now, and holds every outcome against those of the two serial orders.
    pub(crate) async fn meet(&self, one: &Act, other: &Act) -> Tried {
        self.meeting(one, other).await.explore(Explorer::default()).await
    }

    /// Lets two calls meet in every order that can matter. Tasks that have to move because of what
    /// workers serve do so a little later, so it need not come out as if one call had gone first:
    /// they are moved then, and all must wait where they belong. Says how often one had to wait for
    /// the other.
    pub(crate) async fn meet_and_settle(
        &self,
        one: &Act,
        other: &Act,
        is_right: fn(&TaskPlace) -> bool,
    ) -> usize {
        let meeting = Meeting::new(self, one, other).await;
        let (mut explorer, mut n_waits) = (Explorer::default(), 0);
        while explorer.begin() {
            let (_, played) = meeting.play(meeting.acts, &mut explorer).await;
            n_waits += played.n_waits;
            while self.world.store().settle_services().await.expect("it answers") {}
            let dump = check_invariants(&**self.world.store()).await;
            let wrong = dump.places.iter().find(|(_, place)| !is_right(place));
            assert!(wrong.is_none(), "{wrong:?}\n{}", played.story.join("\n"));
        }
        n_waits
    }

    /// Changes rows by hand.
    pub(crate) async fn change(&self, sql: &str) {
        self.duet.watcher().batch_execute(sql).await.expect("rows can be changed");
    }

    /// How far the queues were passed.
    pub(crate) async fn passed(&self) -> i64 {
        let read = format!("select coalesce(max(order_key), 0) from {SCHEMA}.watermark");
        let row = self.duet.watcher().query_one(&read, &[]).await;
        row.expect("it answers").get(0)
    }

    /// Lets the deadlines of all runs pass at this moment, for runs on time that goes on.
    pub(crate) async fn let_deadlines_pass(&self) {
        let node = Node::DEADLINE.0;
        let pass = format!(
            "update {SCHEMA}.run set deadline = extract(epoch from clock_timestamp()) * 1000000 \
             where deadline is not null; \
             update {SCHEMA}.timer set due_at = run.deadline from {SCHEMA}.run \
             where timer.run = run.key and timer.node = {node}; \
             update {SCHEMA}.ready set deadline = run.deadline from {SCHEMA}.run \
             where ready.run = run.key and ready.deadline is not null"
        );
        self.duet.watcher().batch_execute(&pass).await.expect("rows can be changed");
    }

    /// Two calls that meet in the state that the world is in now.
    pub(crate) async fn meeting<'s>(&'s self, one: &'s Act, other: &'s Act) -> Meeting<'s> {
        Meeting::new(self, one, other).await
    }

    /// Ends the stage: nobody met a deadlock.
    pub(crate) async fn close(self) {
        let Self { database, world, stores, duet } = self;
        for session in duet.wires().iter().flat_map(Wire::sessions) {
            let is_conflict = |state: &String| state.starts_with("40");
            let conflicts: Vec<_> = session.errors.iter().filter(|s| is_conflict(s)).collect();
            assert!(conflicts.is_empty(), "FB3: {conflicts:?}");
        }
        drop((world, stores, duet));
        assert_eq!(database.leave().await, 0, "deadlocks that the server counted");
    }
}

async fn store(
    url: String,
    clock: Option<&Arc<ManualClock>>,
    also: fn(PostgresOptions) -> PostgresOptions,
) -> DynStore {
    let options = PostgresOptions::new(url).schema(SCHEMA).poll_only().connections_max(2);
    let mut options = also(options);
    if let Some(clock) = clock {
        options = options.clock(Arc::clone(clock) as Arc<dyn Clock>);
    }
    Arc::new(PostgresStore::connect_with(options).await.expect("the server answers"))
}

/// All outputs and values of memos in one read; the port reads them run by run.
async fn payloads(watcher: &tokio_postgres::Client) -> Vec<String> {
    let read = format!(
        "select run::text, node, 'output', encode(bytes, 'escape') from {SCHEMA}.output \
         union all \
         select run::text, node, 'memo ' || key, coalesce(encode(bytes, 'escape'), '-') \
         from {SCHEMA}.memo"
    );
    let rows = watcher.query(&read, &[]).await.expect("it answers");
    let line = |row: &tokio_postgres::Row| {
        let (run, node): (String, i32) = (row.get(0), row.get(1));
        let (what, bytes): (String, String) = (row.get(2), row.get(3));
        format!("{what} of {run} {node}: {bytes}")
    };
    rows.iter().map(line).collect()
}

/// One goes until it ends, then the other.
fn one_by_one(first: Side) -> impl Guide + Send {
    Along(std::iter::repeat(first))
}

/// Two calls that meet in one state.
pub(crate) struct Meeting<'s> {
    stage: &'s Stage,
    acts: [&'s Act; 2],
    snapshot: Snapshot,
    tokens: BTreeSet<Token>,
    /// What comes out if the first goes first, and if the other does.
    serial: [Outcome; 2],
    /// What comes out of serial orders in which one of the two does less; found when needed.
    lesser: OnceCell<Vec<Outcome>>,
    n_statements: [usize; 2],
}

impl<'s> Meeting<'s> {
    async fn new(stage: &'s Stage, one: &'s Act, other: &'s Act) -> Self {
        let dump = check_invariants(&**stage.world.store()).await;
        let tokens = dump.claims.values().flatten().map(|claim| claim.token).collect();
        let watcher = stage.duet.watcher();
        let snapshot = Snapshot::take(watcher, SCHEMA).await;
        let empty = || Outcome { answers: [const { String::new() }; 2], picture: Picture::new() };
        let serial = [empty(), empty()];
        let acts = [one, other];
        let (lesser, n_statements) = (OnceCell::new(), [0; 2]);
        let mut meeting = Self { stage, acts, snapshot, tokens, serial, lesser, n_statements };
        for first in [Side::One, Side::Other] {
            // The first time everything is prepared, the second time it is counted.
            meeting.play(acts, &mut one_by_one(first)).await;
            let (outcome, played) = meeting.play(acts, &mut one_by_one(first)).await;
            meeting.serial[first as usize] = outcome;
            for (most, n) in meeting.n_statements.iter_mut().zip(played.n_statements) {
                *most = n.max(*most);
            }
        }
        meeting
    }

    /// Tries the orders through which the explorer leads.
    pub(crate) async fn explore(&self, mut explorer: Explorer) -> Tried {
        let mut tried = Tried { n_statements: self.n_statements, ..Tried::default() };
        while explorer.begin() {
            self.try_once(&mut explorer, &mut tried).await;
        }
        tried
    }

    /// Tries all orders, also where nobody can tell them apart.
    pub(crate) async fn try_all(&self) -> Tried {
        let mut tried = Tried { n_statements: self.n_statements, ..Tried::default() };
        let [n_one, n_other] = self.n_statements;
        for order in all(n_one, n_other) {
            self.try_once(&mut Along(order.into_iter()), &mut tried).await;
        }
        tried
    }

    /// Plays the two once and gives their answers.
    pub(crate) async fn play_once(&self, explorer: &mut Explorer) -> [String; 2] {
        self.play(self.acts, explorer).await.0.answers
    }

    async fn play(
        &self,
        acts: [&Act; 2],
        guide: &mut (impl Guide + Send),
    ) -> (Outcome, Played<String, String>) {
        let Stage { duet, stores, world, .. } = self.stage;
        self.snapshot.restore(duet.watcher()).await;
        let [one, other] = acts;
        let played = duet.play(guide, one.call(&stores[0]), other.call(&stores[1])).await;
        let dump = check_invariants(&**world.store()).await;
        let mut picture = picture(&dump, &self.tokens, self.places());
        picture.extend(payloads(duet.watcher()).await);
        let answers = [played.one.clone(), played.other.clone()];
        (Outcome { answers, picture }, played)
    }

    async fn try_once(&self, guide: &mut (impl Guide + Send), tried: &mut Tried) {
        let (outcome, played) = self.play(self.acts, guide).await;
        tried.n_orders += 1;
        tried.n_waits += played.n_waits;
        match self.serial.iter().position(|serial| *serial == outcome) {
            Some(first) => tried.n_as[first] += 1,
            None if self.is_lesser(&outcome).await => tried.n_lesser += 1,
            None => panic!("{}", self.complaint(&outcome, &played)),
        }
        tried.answers.insert(outcome.answers);
    }

    fn places(&self) -> Places {
        let has_claim = self.acts.iter().any(|act| !act.lesser.is_empty());
        if has_claim { Places::InOrder } else { Places::ByKey }
    }

    /// Whether an outcome is that of a serial order in which one of the two does less than it
    /// could have done.
    async fn is_lesser(&self, outcome: &Outcome) -> bool {
        self.lesser.get_or_init(|| self.play_lesser()).await.contains(outcome)
    }

    async fn play_lesser(&self) -> Vec<Outcome> {
        let [one, other] = self.acts;
        let mut outcomes = Vec::new();
        let pairs = one.lesser.iter().map(|lesser| [lesser, other]);
        for acts in pairs.chain(other.lesser.iter().map(|lesser| [one, lesser])) {
            for first in [Side::One, Side::Other] {
                outcomes.push(self.play(acts, &mut one_by_one(first)).await.0);
            }
        }
        outcomes
    }

    fn complaint(&self, outcome: &Outcome, played: &Played<String, String>) -> String {
        let mut lines =
            vec!["neither as if the one, nor as if the other had gone first".to_owned()];
        for (serial, first) in self.serial.iter().zip([Side::One, Side::Other]) {
            let (wanted, got) = (&serial.answers, &outcome.answers);
            lines.push(format!("{first:?} first: {wanted:?}, now {got:?}"));
            lines.push(difference(&serial.picture, &outcome.picture));
        }
        lines.extend(played.story.iter().cloned());
        lines.join("\n")
    }
}
