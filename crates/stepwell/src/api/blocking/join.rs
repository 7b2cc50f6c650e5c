//! Several operations of a blocking function at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::branch::Branch;
use super::crew::Crew;
use super::ctx::Ctx;
use super::operations::{FunctionSleep, FunctionStep, FunctionWait};
use crate::api::ctx::Ctx as AsyncCtx;
use crate::api::step_error::{Result, StepError};
use crate::api::wait::Bound;
use crate::engine::TaskContext;

/// Most threads of one join.
const THREADS_MAX: usize = 64;

/// Who stores for the branches of a join.
#[derive(Clone, Debug)]
pub struct Stores(Crew);

/// What can be run at once with others: a step, a sleep, a wait, or a branch.
pub trait Operation: Send {
    /// What it gives.
    type Output: Send;

    /// Runs it on the thread of the caller.
    ///
    /// # Errors
    /// As the operation.
    fn run(self, stores: Stores) -> Result<Self::Output>;
}

/// Operations that run at once: a tuple of up to four, or a `Vec` of one kind.
pub trait Operations: Send {
    /// What they give.
    type Outputs: Send;

    /// Runs all of them.
    ///
    /// # Errors
    /// With the first error of any of them.
    fn run_all(self, stores: Stores) -> Result<Self::Outputs>;
}

/// Runs operations at once. They store through this thread, which alone may wait for the engine.
pub(super) fn join<O: Operations>(
    task: &Arc<TaskContext>,
    branch: &Branch,
    operations: O,
) -> Result<O::Outputs> {
    branch.go_on()?;
    let answer = match branch.crew() {
        Some(crew) => crew.rest(|| operations.run_all(Stores(crew.clone()))),
        None => Crew::run(task, |crew| operations.run_all(Stores(crew))),
    };
    match answer {
        Err(error) if error.is_suspension() => branch.stop(),
        answer => answer,
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Failures count before a suspension: they will not go better later.
fn worse(found: Option<StepError>, error: StepError) -> StepError {
    found.filter(|found| !found.is_suspension()).unwrap_or(error)
}

macro_rules! operations {
    ($($operation:ident $answer:ident),+) => {
        impl<$($operation: Operation),+> Operations for ($($operation,)+) {
            type Outputs = ($($operation::Output,)+);

            #[expect(non_snake_case, reason = "named after their types")]
                        fn run_all(self, stores: Stores) -> Result<Self::Outputs> {
                let ($($operation,)+) = self;
                thread::scope(|scope| {
                    $(
                        let of_thread = stores.clone();
                        let running = stores.0.begin();
                        let $answer = scope.spawn(move || {
                            let _running = running;
                            $operation.run(of_thread)
                        });
                    )+
                    drop(stores);
                    let mut failed = None;
                    $(
                        let $answer = joined($answer)
                            .map_err(|error| failed = Some(worse(failed.take(), error)));
                    )+
                    match (failed, $($answer,)+) {
                        (None, $(Ok($answer),)+) => Ok(($($answer,)+)),
                        (failed, ..) => Err(failed.unwrap_or_else(StepError::suspended)),
                    }
                })
            }
        }
    };
}

operations!(A a, B b);
operations!(A a, B b, C c);
operations!(A a, B b, C c, D d);

impl<T: Operation> Operations for Vec<T> {
    type Outputs = Vec<T::Output>;

    fn run_all(self, stores: Stores) -> Result<Vec<T::Output>> {
        let n_threads = self.len().min(THREADS_MAX);
        let mut answers: Vec<Option<Result<T::Output>>> = self.iter().map(|_| None).collect();
        let waiting: VecDeque<(usize, T)> = self.into_iter().enumerate().collect();
        let waiting = Mutex::new(waiting);
        let take = || waiting.lock().expect("no holder of the lock panics").pop_front();
        thread::scope(|scope| {
            let work = |stores: Stores| {
                let mut ended = Vec::new();
                while let Some((ix, operation)) = take() {
                    ended.push((ix, operation.run(stores.clone())));
                }
                ended
            };
            let threads: Vec<_> = (0..n_threads)
                .map(|_| {
                    let (stores, running) = (stores.clone(), stores.0.begin());
                    scope.spawn(move || {
                        let _running = running;
                        work(stores)
                    })
                })
                .collect();
            drop(stores);
            for (ix, answer) in threads.into_iter().flat_map(joined) {
                answers[ix] = Some(answer);
            }
        });
        let (mut outputs, mut failed) = (Vec::with_capacity(answers.len()), None);
        for answer in answers.into_iter().flatten() {
            match answer {
                Ok(output) => outputs.push(output),
                Err(error) => failed = Some(worse(failed, error)),
            }
        }
        failed.map_or(Ok(outputs), Err)
    }
}

impl<T> Operation for FunctionStep<'_, T>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    type Output = T;

    fn run(mut self, Stores(crew): Stores) -> Result<T> {
        // Its suspension is the join's to hand up.
        self.place.branch = Branch::new(Some(crew));
        self.wait()
    }
}

impl Operation for FunctionSleep {
    type Output = ();

    fn run(mut self, Stores(crew): Stores) -> Result<()> {
        self.place.branch = Branch::new(Some(crew));
        self.wait()
    }
}

impl<T, B> Operation for FunctionWait<T, B>
where
    T: DeserializeOwned + Send + 'static,
    B: Bound,
{
    type Output = B::Output<T>;

    fn run(mut self, Stores(crew): Stores) -> Result<B::Output<T>> {
        self.place.branch = Branch::new(Some(crew));
        self.wait()
    }
}

/// A branch of a join. See [`Ctx::branch`].
#[must_use = "a branch runs in `ctx.join(..)?`"]
pub struct BranchOf<'a, I, S, T> {
    ctx: AsyncCtx<I, S>,
    code: Box<dyn FnOnce(Ctx<I, S>) -> Result<T> + Send + 'a>,
}

impl<'a, I, S, T> BranchOf<'a, I, S, T> {
    pub(super) fn new(
        ctx: AsyncCtx<I, S>,
        code: impl FnOnce(Ctx<I, S>) -> Result<T> + Send + 'a,
    ) -> Self {
        Self { ctx, code: Box::new(code) }
    }
}

impl<I: Send + Sync, S: Send + Sync, T: Send> Operation for BranchOf<'_, I, S, T> {
    type Output = T;

    fn run(self, Stores(crew): Stores) -> Result<T> {
        let branch = Branch::new(Some(crew));
        let ctx = Ctx { ctx: self.ctx, branch: Arc::clone(&branch) };
        branch.check((self.code)(ctx))
    }
}
