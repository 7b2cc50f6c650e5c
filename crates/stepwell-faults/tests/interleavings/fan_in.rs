//! A join and its parents.

use stepwell::core::run::TaskState;
use stepwell::ports::TaskPlace;
use stepwell::testing::conformance::world::{completed, failed};
use stepwell_faults::interleave::Side;

use crate::acts;
use crate::scene::{Call, Scene};
use crate::stage::Stage;

#[tokio::test]
async fn a_join_is_queued_exactly_once_when_its_two_parents_commit_in_two_transactions() {
    // FB2, S4
    let stage = Stage::open().await;
    let scene = Scene::set(&stage.world, None, true).await;
    let commits = [scene.act(Call::FanIn, Side::One), scene.act(Call::FanIn, Side::Other)];
    let before = stage.world.task(&scene.run, "j").await;
    assert_eq!((before.state(), before.n_unmet), (TaskState::Pending, 2));
    // The outcome of every order is that of a serial one, so it is enough to know what those are.
    let tried = stage.meet(&commits[0], &commits[1]).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    assert!(tried.n_as.iter().all(|n| *n > 0), "each goes first: {tried:?}");
    let accepted = "[Accepted]".to_owned();
    assert_eq!(tried.answers.into_iter().collect::<Vec<_>>(), [[accepted.clone(), accepted]]);
    // The state of the last order still stands.
    let after = stage.world.task(&scene.run, "j").await;
    assert_eq!((after.state(), after.n_unmet), (TaskState::Queued, 0));
    let place = stage.world.place(&scene.run, "j").await;
    assert!(matches!(place, Some(TaskPlace::Ready(..))), "{place:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_commit_that_is_sent_again_while_the_first_is_under_way_counts_once() {
    // FB1: the reply was given up too early.
    let stage = Stage::open().await;
    let scene = Scene::set(&stage.world, Some(8), false).await;
    let commit = acts::complete(scene.claims["p"]);
    let tried = stage.meet(&commit, &commit).await;
    let accepted = "[Accepted]".to_owned();
    assert_eq!(tried.answers.into_iter().collect::<Vec<_>>(), [[accepted.clone(), accepted]]);
    stage.close().await;
}

#[tokio::test]
async fn a_parent_that_fails_meets_the_other_that_completes() {
    let stage = Stage::open().await;
    let scene = Scene::set(&stage.world, Some(8), true).await;
    let one = acts::commit(scene.claims["p"], completed());
    let other = acts::commit(scene.claims["q"], failed("boom"));
    let tried = stage.meet(&one, &other).await;
    assert!(tried.n_waits > 0, "they meet: {tried:?}");
    stage.close().await;
}
