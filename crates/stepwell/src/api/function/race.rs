//! The first of several operations.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::api::step_error::Result;

/// The first of two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<A, B> {
    /// The first one given was over first.
    A(A),
    /// The second one given was over first.
    B(B),
}

/// What can race: two operations, or a `Vec` of operations of one kind.
pub trait Racers: Unpin {
    /// What the race gives.
    type Winner;

    /// Polls all of them.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::Winner>>;
}

impl<X, Y, A, B> Racers for (A, B)
where
    A: Future<Output = Result<X>> + Unpin,
    B: Future<Output = Result<Y>> + Unpin,
{
    type Winner = First<X, Y>;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<First<X, Y>>> {
        if let Poll::Ready(won) = Pin::new(&mut self.0).poll(cx) {
            return Poll::Ready(won.map(First::A));
        }
        Pin::new(&mut self.1).poll(cx).map(|won| won.map(First::B))
    }
}

impl<X, T: Future<Output = Result<X>> + Unpin> Racers for Vec<T> {
    type Winner = X;

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<X>> {
        for racer in self {
            if let Poll::Ready(won) = Pin::new(racer).poll(cx) {
                return Poll::Ready(won);
            }
        }
        Poll::Pending
    }
}

/// A race of operations. See [`Ctx::race`](crate::Ctx::race).
#[must_use = "a race is run when it is awaited"]
pub struct Race<R>(pub(super) Option<R>);

impl<R: Racers> Future for Race<R> {
    type Output = Result<R::Winner>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(racers) = &mut self.0 else { return Poll::Pending };
        let won = ready!(racers.poll(cx));
        // The losers are given up before the function goes on.
        self.0 = None;
        Poll::Ready(won)
    }
}
