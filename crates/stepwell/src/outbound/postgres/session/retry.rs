//! Trying again what met another transaction, or went by a wrong guess.

use std::future::Future;

use super::super::rows::position::TenantInQueue;
use super::error::{Conflict, PgError, PgResult};
use crate::ports::{Hint, HintSet, StoreError};

/// How often a transaction is tried again that met another one.
const CONFLICT_RETRIES_MAX: usize = 10;

/// A transaction that went through.
pub(crate) struct Done<T> {
    pub(crate) answer: T,
    /// What others should be told.
    pub(crate) hints: HintSet,
    pub(crate) learned: Learned,
}

impl<T> Done<T> {
    /// One that made nothing for others to see.
    pub(crate) fn quiet(answer: T) -> Self {
        Self { answer, hints: HintSet::default(), learned: Learned::default() }
    }

    /// One after which others should look for this.
    pub(crate) fn telling(answer: T, hint: Hint, learned: Learned) -> Self {
        let mut hints = HintSet::default();
        hints.add(hint);
        Self { answer, hints, learned }
    }
}

/// What a transaction saw by which the next one may guess better.
#[derive(Default)]
pub(crate) struct Learned {
    /// Whether tenants have a limit, by number.
    pub(crate) limits: Vec<(u32, bool)>,
    /// Whether starts named runs that were there already.
    pub(crate) ids_repeat: Option<bool>,
    /// Tenants that have positions left in queues after all.
    pub(crate) not_full: Vec<TenantInQueue>,
}

/// Tries a call again as long as it conflicts with others, after `repair` of what the conflict
/// names. Calls carry their own ids and tokens, so trying again is safe.
pub(crate) async fn with_retries<T, F, R>(
    mut call: impl FnMut() -> F,
    mut repair: impl FnMut(Conflict) -> R,
) -> Result<T, StoreError>
where
    F: Future<Output = PgResult<T>>,
    R: Future<Output = Result<(), StoreError>>,
{
    let mut n_tries = 0;
    loop {
        match call().await {
            Err(PgError::Conflict(conflict)) if n_tries < CONFLICT_RETRIES_MAX => {
                n_tries += 1;
                tracing::debug!(%conflict, n_tries, "met another transaction, trying again");
                repair(conflict).await?;
            }
            answer => return Ok(answer?),
        }
    }
}
