//! The same work for each of several items.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::op::refused_error;
use crate::api::ctx::Ctx;
use crate::api::step_error::Result;

/// Work for each of several items, each with names of its own. See [`Ctx::map`].
#[must_use = "a map runs by `.over(..).run(..).await`"]
pub struct FunctionMap<'c, I, S, T = ()> {
    ctx: &'c Ctx<I, S>,
    name: String,
    items: Vec<T>,
    ids: Option<Vec<String>>,
    concurrency: usize,
}

impl<'c, I, S> FunctionMap<'c, I, S> {
    pub(super) fn new(ctx: &'c Ctx<I, S>, name: &str) -> Self {
        let (items, ids) = (Vec::new(), None);
        Self { ctx, name: name.to_owned(), items, ids, concurrency: usize::MAX }
    }

    /// The items.
    pub fn over<T>(self, items: impl IntoIterator<Item = T>) -> FunctionMap<'c, I, S, T> {
        let items = items.into_iter().collect();
        let Self { ctx, name, concurrency, .. } = self;
        FunctionMap { ctx, name, items, ids: None, concurrency }
    }
}

impl<I, S, T> FunctionMap<'_, I, S, T> {
    /// How many items are under way at once; all of them, unless told otherwise.
    pub fn concurrency(mut self, n: usize) -> Self {
        self.concurrency = n.max(1);
        self
    }

    /// Names the items, so that one which a later replay finds between two others moves none of
    /// them. Without it they are known by their place.
    pub fn id<D: Display>(mut self, id: impl Fn(&T) -> D) -> Self {
        self.ids = Some(self.items.iter().map(|item| id(item).to_string()).collect());
        self
    }

    /// Runs the code for each item, and gives what it gives for all, in the order of the items. The
    /// first error ends it.
    ///
    /// # Errors
    /// As the code; and when two items have the same id, before any of them starts.
    pub async fn run<'a, O, F, Fut>(self, code: F) -> Result<Vec<O>>
    where
        F: FnOnce(Ctx<I, S>, T) -> Fut + Clone,
        Fut: Future<Output = Result<O>> + Send + 'a,
    {
        let Self { ctx, name, items, ids, concurrency } = self;
        if let Some(id) = ids.as_deref().and_then(first_twice) {
            let message = format!("map {name:?}: two items have the id {id:?}; ids must differ");
            return Err(refused_error(&message));
        }
        let id = |ix: usize| ids.as_ref().map_or_else(|| ix.to_string(), |ids| ids[ix].clone());
        let mut outputs: Vec<Option<O>> = items.iter().map(|_| None).collect();
        let mut waiting = items.into_iter().enumerate().map(|(ix, item)| {
            let work = code.clone()(ctx.scope(format!("{name}[{}]", id(ix))), item);
            async move { (ix, work.await) }
        });
        let mut running = FuturesUnordered::new();
        running.extend(waiting.by_ref().take(concurrency));
        while let Some((ix, output)) = running.next().await {
            outputs[ix] = Some(output?);
            running.extend(waiting.next());
        }
        Ok(outputs.into_iter().flatten().collect())
    }
}

/// The first id that was there before.
fn first_twice(ids: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    ids.iter().find(|id| !seen.insert(*id))
}
