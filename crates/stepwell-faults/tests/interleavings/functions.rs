//! Functions: what they store, wait for and end with meets whatever takes their claims, brings them
//! signals, or ends their runs.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::core::id::Epoch;
use stepwell::ports::{ClaimedTask, MemoRequest, Outcome};
use stepwell::testing::conformance::world::{LEASE, Run, WORKER, payload, worker};
use stepwell_faults::interleave::Explorer;

use crate::acts::{self, Act};
use crate::stage::{Stage, Tried};

const HOUR: Duration = Duration::from_hours(1);

/// A run of a function beside a task in line. The function runs, and listens for `paid`, at least
/// if that is asked for.
struct Running {
    stage: Stage,
    run: Run,
    task: ClaimedTask,
    epoch: Epoch,
}

impl Running {
    async fn new() -> Self {
        let stage = Stage::open().await;
        let world = &stage.world;
        let flow = world.define("f; b").await;
        let run = world.start(&flow).await;
        let task = world.claim_one().await;
        world.remember(&task, "first@1=1").await;
        let epoch = world.lead().await;
        Self { stage, run, task, epoch }
    }

    /// The function waits for `paid`, and the store knows.
    async fn listening() -> Self {
        let running = Self::new().await;
        running.stage.world.listen(&running.task, 2, "ok?paid/1h").await;
        running
    }

    /// The function waits for `paid` and sleeps, and nothing of it runs.
    async fn suspended() -> Self {
        let running = Self::new().await;
        running.stage.world.suspend(&running.task, 2, "ok?paid/2h nap~1h").await;
        running
    }

    fn memo(&self, text: &str) -> Act {
        memo(&self.stage, &self.task, text)
    }

    fn listen(&self, waits: &str) -> Act {
        acts::listen(self.stage.world.listen_request(&self.task, 3, waits))
    }

    fn suspend(&self) -> Act {
        let outcome = self.stage.world.suspended(&self.task, 3, "ok?paid/1h nap~2h");
        acts::commit(self.task.claim, outcome)
    }

    /// The function begins another round.
    fn go_on(&self) -> Act {
        let (input, notes) = (payload(b"next"), BTreeMap::new());
        acts::commit(self.task.claim, Outcome::Continued { round: 1, input, notes })
    }

    fn signal(&self) -> Act {
        acts::signal(self.stage.world.to(&self.run, "paid").carrying(b"7 EUR").into())
    }

    fn cancel(&self) -> Act {
        acts::cancel(self.run.key)
    }

    /// Takes the function's worker for dead.
    async fn reap(&self) -> Act {
        self.stage.world.pass(LEASE + Duration::from_millis(1));
        acts::reap(self.epoch, self.stage.world.reap_request().await)
    }

    /// Lets two calls meet, and holds that they do.
    async fn meet(self, one: &Act, other: &Act) {
        let tried = self.tried(one, other).await;
        assert!(tried.did_meet(), "they meet: {tried:?}");
        self.stage.close().await;
    }

    async fn tried(&self, one: &Act, other: &Act) -> Tried {
        // All orders that could matter are thousands where both write rows of the run.
        let meeting = self.stage.meeting(one, other).await;
        meeting.explore(Explorer::with_interruptions_max(1)).await
    }
}

/// Stores memos of a task that has lost no workers.
fn memo(stage: &Stage, task: &ClaimedTask, text: &str) -> Act {
    let request = stage.world.memo_request(task, text);
    acts::remember(MemoRequest { forgives: false, ..request })
}

#[tokio::test]
async fn a_memo_meets_the_reaping_of_its_worker() {
    // D5, L4
    let running = Running::new().await;
    let (memo, reap) = (running.memo("charge@2=42 ship+60s"), running.reap().await);
    running.meet(&memo, &reap).await;
}

#[tokio::test]
async fn a_memo_that_forgives_losses_meets_the_reaping_of_its_worker() {
    // D5: it is stored and the loss before it forgiven, or neither.
    let stage = Stage::open().await;
    let world = &stage.world;
    let flow = world.define("f; b").await;
    let run = world.start(&flow).await;
    let unlucky = world.hire("unlucky").await;
    world.claim(&unlucky, 2).await;
    world.lose(&unlucky).await;
    let task = world.claim_one().await;
    let epoch = world.lead().await;
    let memo = acts::remember(world.memo_request(&task, "charge@2=42"));
    let running = Running { stage, run, task, epoch };
    let reap = running.reap().await;
    running.meet(&memo, &reap).await;
}

#[tokio::test]
async fn a_memo_meets_a_cancel() {
    // D5, D9
    let running = Running::new().await;
    let (memo, cancel) = (running.memo("charge@2=42"), running.cancel());
    running.meet(&memo, &cancel).await;
}

#[tokio::test]
async fn a_memo_meets_the_end_of_its_function() {
    // D5: the loser of a race is refused, or forgotten with the rest.
    for is_continued in [false, true] {
        let running = Running::listening().await;
        let end = if is_continued { running.go_on() } else { acts::complete(running.task.claim) };
        let memo = running.memo("loser@3=42");
        running.meet(&memo, &end).await;
    }
}

#[tokio::test]
async fn a_memo_meets_the_suspension_of_its_function() {
    // D5, D12
    let running = Running::new().await;
    let (memo, suspend) = (running.memo("late@2=42"), running.suspend());
    running.meet(&memo, &suspend).await;
}

#[tokio::test]
async fn a_memo_meets_itself() {
    // FB1: a write whose reply was lost is sent again.
    let running = Running::new().await;
    let memo = running.memo("charge@2=42");
    let tried = running.tried(&memo, &memo).await;
    assert!(tried.answers.iter().flatten().all(|answer| answer.contains("Stored")), "{tried:?}");
    running.stage.close().await;
}

#[tokio::test]
async fn a_memo_of_a_lost_claim_meets_one_of_its_successor() {
    // D5, S6: of the two only one is ever stored, whoever comes first.
    let running = Running::new().await;
    let world = &running.stage.world;
    world.lose(&worker(WORKER)).await;
    let heir = world.hire("heir").await;
    let successors = world.claim(&heir, 2).await;
    let of_heir = memo(&running.stage, successors.of("f"), "charge@2=43");
    let zombie = running.memo("charge@2=42");
    let tried = running.tried(&zombie, &of_heir).await;
    for [zombie, heir] in &tried.answers {
        assert!(zombie.contains("NotMine") && heir.contains("Stored"), "{tried:?}");
    }
    running.stage.close().await;
}

#[tokio::test]
async fn a_memo_of_a_lost_claim_meets_the_claim_of_its_successor() {
    // D5, S6
    let running = Running::new().await;
    let world = &running.stage.world;
    world.lose(&worker(WORKER)).await;
    let claim = acts::claim(&world.hire("heir").await, 1, 1);
    let zombie = running.memo("charge@2=42");
    let tried = running.tried(&zombie, &claim).await;
    assert!(tried.answers.iter().all(|[zombie, _]| zombie.contains("NotMine")), "{tried:?}");
    running.stage.close().await;
}

#[tokio::test]
async fn a_memo_meets_a_function_that_listens() {
    // S14: two writes of one function are under way at once.
    let running = Running::listening().await;
    running.stage.world.signal(&running.run, "paid").await;
    let (memo, listen) = (running.memo("charge@2=42"), running.listen("ok?paid/1h"));
    let tried = running.tried(&memo, &listen).await;
    for [memo, heard] in &tried.answers {
        assert!(memo.contains("Stored") && heard.contains("Heard"), "{tried:?}");
    }
    running.stage.close().await;
}

#[tokio::test]
async fn a_memo_meets_a_signal_to_its_function() {
    // L7: neither waits for the other.
    let running = Running::listening().await;
    let (memo, signal) = (running.memo("charge@2=42"), running.signal());
    let tried = running.tried(&memo, &signal).await;
    assert!(tried.answers.iter().all(|[memo, _]| memo.contains("Stored")), "{tried:?}");
    running.stage.close().await;
}

#[tokio::test]
async fn a_signal_meets_a_running_function_that_listens_for_it() {
    // L9, S14
    let running = Running::listening().await;
    let (signal, listen) = (running.signal(), running.listen("ok?paid/1h"));
    running.meet(&signal, &listen).await;
}

#[tokio::test]
async fn a_signal_meets_a_running_function_that_lets_its_wait_go() {
    // S14: a younger wait gets it then.
    let running = Running::listening().await;
    let (signal, listen) = (running.signal(), running.listen(""));
    running.meet(&signal, &listen).await;
}

#[tokio::test]
async fn a_signal_meets_a_function_that_suspends() {
    // L9
    let running = Running::new().await;
    let (signal, suspend) = (running.signal(), running.suspend());
    running.meet(&signal, &suspend).await;
}

#[tokio::test]
async fn a_signal_meets_the_end_of_a_function_that_waited_for_it() {
    // L9, S14: it stays unconsumed, whoever comes first.
    let running = Running::listening().await;
    let (signal, complete) = (running.signal(), acts::complete(running.task.claim));
    running.meet(&signal, &complete).await;
}

#[tokio::test]
async fn a_signal_meets_a_function_that_begins_another_round() {
    // L9
    let running = Running::listening().await;
    let (signal, go_on) = (running.signal(), running.go_on());
    running.meet(&signal, &go_on).await;
}

#[tokio::test]
async fn a_listening_function_meets_a_cancel() {
    // L12
    let running = Running::listening().await;
    running.stage.world.signal(&running.run, "paid").await;
    let (listen, cancel) = (running.listen("ok?paid/1h"), running.cancel());
    running.meet(&listen, &cancel).await;
}

#[tokio::test]
async fn a_listening_function_meets_the_reaping_of_its_worker() {
    // L4, S14
    let running = Running::listening().await;
    running.stage.world.signal(&running.run, "paid").await;
    let (listen, reap) = (running.listen("ok?paid/1h"), running.reap().await);
    running.meet(&listen, &reap).await;
}

#[tokio::test]
async fn a_function_that_suspends_meets_a_cancel() {
    // L5, L12
    let running = Running::listening().await;
    let (suspend, cancel) = (running.suspend(), running.cancel());
    running.meet(&suspend, &cancel).await;
}

#[tokio::test]
async fn a_function_that_suspends_meets_the_reaping_of_its_worker() {
    // L4, L5
    let running = Running::listening().await;
    let (suspend, reap) = (running.suspend(), running.reap().await);
    running.meet(&suspend, &reap).await;
}

#[tokio::test]
async fn the_wake_up_of_a_function_meets_a_signal_to_it() {
    // L8, D12: it hears of one of the two first, and of the other when it asks.
    let running = Running::suspended().await;
    running.stage.world.pass(HOUR);
    let (signal, fire) = (running.signal(), acts::fire(running.epoch));
    running.meet(&signal, &fire).await;
}

#[tokio::test]
async fn the_wake_up_of_a_function_meets_a_cancel() {
    // L12
    let running = Running::suspended().await;
    running.stage.world.pass(HOUR);
    let (fire, cancel) = (acts::fire(running.epoch), running.cancel());
    running.meet(&fire, &cancel).await;
}

#[tokio::test]
async fn two_signals_meet_at_a_suspended_function() {
    // L7: one wakes it, the other stays until it asks.
    let running = Running::suspended().await;
    let acts = [running.signal(), running.signal()];
    running.meet(&acts[0], &acts[1]).await;
}
