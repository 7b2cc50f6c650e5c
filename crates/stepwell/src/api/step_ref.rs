//! Typed handles of steps.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use stepwell_core::id::Node;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Always {}
    impl Sealed for super::Maybe {}
}

/// A step that runs whenever its run does not fail.
#[derive(Debug)]
pub enum Always {}

/// A step that may be skipped: it has a condition, or its parents may be skipped.
#[derive(Debug)]
pub enum Maybe {}

/// Whether a step always runs or may be skipped. Implemented by [`Always`] and [`Maybe`].
pub trait Kind: sealed::Sealed + Send + Sync + 'static {
    /// The kind of a step that may be skipped if this one or `R` may.
    type Or<R: Kind>: Kind;
    /// The kind of a step that may be skipped only if this one and `R` may.
    type And<R: Kind>: Kind;
    /// What reading the step's output gives: `T`, or `Option<T>` if it may be missing.
    type Output<T: DeserializeOwned + Send + 'static>: Send + 'static;

    /// The output, from a value that is missing if the step was skipped.
    #[doc(hidden)]
    fn output<T: DeserializeOwned + Send + 'static>(value: Option<T>) -> Option<Self::Output<T>>;
}

impl Kind for Always {
    type Or<R: Kind> = R;
    type And<R: Kind> = Self;
    type Output<T: DeserializeOwned + Send + 'static> = T;

    fn output<T: DeserializeOwned + Send + 'static>(value: Option<T>) -> Option<T> {
        value
    }
}

impl Kind for Maybe {
    type Or<R: Kind> = Self;
    type And<R: Kind> = R;
    type Output<T: DeserializeOwned + Send + 'static> = Option<T>;

    fn output<T: DeserializeOwned + Send + 'static>(value: Option<T>) -> Option<Option<T>> {
        Some(value)
    }
}

/// A typed handle of a step with output `T`, for wiring and for reading its output.
///
/// Eight bytes, `Copy`, and bound to its workflow: handed to another one it is refused.
pub struct StepRef<T, K = Always> {
    pub(crate) index: u32,
    pub(crate) workflow: u32,
    types: PhantomData<fn() -> (T, K)>,
}

impl<T, K> StepRef<T, K> {
    pub(crate) const fn new(index: u32, workflow: u32) -> Self {
        Self { index, workflow, types: PhantomData }
    }

    pub(crate) const fn node(self) -> Node {
        Node(self.index)
    }
}

impl<T> StepRef<T, Maybe> {
    /// As a parent that the child cannot do without: the child gets `T`, and is skipped if this
    /// step is.
    #[must_use]
    pub const fn needed(self) -> Needed<T> {
        Needed(self)
    }
}

/// A parent that may be skipped and that the child cannot do without.
pub struct Needed<T>(pub(crate) StepRef<T, Maybe>);

impl<T, K> Clone for StepRef<T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, K> Copy for StepRef<T, K> {}

impl<T> Clone for Needed<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Needed<T> {}

impl<T, K> fmt::Debug for StepRef<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepRef({})", self.index)
    }
}

impl<T> fmt::Debug for Needed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Needed({})", self.0.index)
    }
}
