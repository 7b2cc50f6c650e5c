//! Parents of a step, and what its closure gets for them.

use serde::de::DeserializeOwned;
use stepwell_core::workflow::ParentRef;

use super::step_ref::{Always, Kind, Maybe, Needed, StepRef};
use crate::engine::decode;
use crate::error::Error;
use crate::ports::{Codec, Payload};

/// Outputs of parents as stored, `None` for skipped ones.
pub type RawParents = [Option<Payload>];

fn read<T: DeserializeOwned>(codec: &dyn Codec, raw: Option<&Payload>) -> Result<T, Error> {
    let missing = || Error::Corrupt { message: "a parent that must have run was skipped".into() };
    decode(codec, "a parent's output", raw.ok_or_else(missing)?)
}

fn handle<T, K>(step: StepRef<T, K>, needed: bool) -> ParentRef {
    ParentRef::Handle { index: step.index, workflow: step.workflow, needed }
}

/// One parent inside a tuple or a `Vec`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parent of a step",
    label = "not a parent",
    note = "pass a `StepRef`, `step.needed()`, a tuple of up to 8 of them, or a `Vec`"
)]
pub trait Parent: Copy + Send + Sync + 'static {
    /// What the closure gets for it.
    type Arg: Send + 'static;
    /// [`Maybe`] if this parent alone can skip the child.
    type Need: Kind;
    /// [`Maybe`] if this parent may be skipped.
    type Plain: Kind;

    #[doc(hidden)]
    fn parent_ref(self) -> ParentRef;
    #[doc(hidden)]
    fn arg(codec: &dyn Codec, raw: Option<&Payload>) -> Result<Self::Arg, Error>;
}

impl<T: DeserializeOwned + Send + 'static> Parent for StepRef<T, Always> {
    type Arg = T;
    type Need = Always;
    type Plain = Always;

    fn parent_ref(self) -> ParentRef {
        handle(self, false)
    }

    fn arg(codec: &dyn Codec, raw: Option<&Payload>) -> Result<T, Error> {
        read(codec, raw)
    }
}

impl<T: DeserializeOwned + Send + 'static> Parent for StepRef<T, Maybe> {
    type Arg = Option<T>;
    type Need = Always;
    type Plain = Maybe;

    fn parent_ref(self) -> ParentRef {
        handle(self, false)
    }

    fn arg(codec: &dyn Codec, raw: Option<&Payload>) -> Result<Option<T>, Error> {
        raw.map(|raw| read(codec, Some(raw))).transpose()
    }
}

impl<T: DeserializeOwned + Send + 'static> Parent for Needed<T> {
    type Arg = T;
    type Need = Maybe;
    type Plain = Maybe;

    fn parent_ref(self) -> ParentRef {
        handle(self.0, true)
    }

    fn arg(codec: &dyn Codec, raw: Option<&Payload>) -> Result<T, Error> {
        read(codec, raw)
    }
}

/// What `.after(..)` takes: one step, a tuple of up to eight, or a `Vec`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of parents",
    label = "not a set of parents",
    note = "use `.after(a)`, `.after((a, b))` with up to 8 steps, or `.after(vec![a, b])`"
)]
pub trait Parents: Send + Sync + 'static {
    /// What the closure gets.
    type Args: Send + 'static;
    /// Whether the child may be skipped because of them.
    type Kind: Kind;

    #[doc(hidden)]
    fn parent_refs(&self) -> Vec<ParentRef>;
    #[doc(hidden)]
    fn args(codec: &dyn Codec, raw: &RawParents) -> Result<Self::Args, Error>;
}

/// A single parent: the child is skipped with it, so the closure always gets `T`.
impl<T: DeserializeOwned + Send + 'static, K: Kind> Parents for StepRef<T, K> {
    type Args = T;
    type Kind = K;

    fn parent_refs(&self) -> Vec<ParentRef> {
        vec![handle(*self, true)]
    }

    fn args(codec: &dyn Codec, raw: &RawParents) -> Result<T, Error> {
        read(codec, raw.first().and_then(Option::as_ref))
    }
}

/// A single needed parent says what a single parent means anyway.
impl<T: DeserializeOwned + Send + 'static> Parents for Needed<T> {
    type Args = T;
    type Kind = Maybe;

    fn parent_refs(&self) -> Vec<ParentRef> {
        vec![self.parent_ref()]
    }

    fn args(codec: &dyn Codec, raw: &RawParents) -> Result<T, Error> {
        read(codec, raw.first().and_then(Option::as_ref))
    }
}

/// An empty `Vec` makes a root.
impl<P: Parent> Parents for Vec<P> {
    type Args = Vec<P::Arg>;
    type Kind = <P::Need as Kind>::Or<P::Plain>;

    fn parent_refs(&self) -> Vec<ParentRef> {
        self.iter().map(|parent| parent.parent_ref()).collect()
    }

    fn args(codec: &dyn Codec, raw: &RawParents) -> Result<Self::Args, Error> {
        raw.iter().map(|raw| P::arg(codec, raw.as_ref())).collect()
    }
}

macro_rules! fold_kinds {
    ($op:ident $field:ident $one:ident) => { <$one as Parent>::$field };
    ($op:ident $field:ident $first:ident $($rest:ident)+) => {
        <<$first as Parent>::$field as Kind>::$op<fold_kinds!($op $field $($rest)+)>
    };
}

macro_rules! tuple_of_parents {
    ($($parent:ident $index:tt),+) => {
        impl<$($parent: Parent),+> Parents for ($($parent,)+) {
            type Args = ($($parent::Arg,)+);
            // Skipped if one it needs is, or if all are.
            type Kind = <fold_kinds!(Or Need $($parent)+) as Kind>::Or<
                fold_kinds!(And Plain $($parent)+)
            >;

            fn parent_refs(&self) -> Vec<ParentRef> {
                vec![$(self.$index.parent_ref()),+]
            }

            fn args(codec: &dyn Codec, raw: &RawParents) -> Result<Self::Args, Error> {
                let raw = |ix: usize| raw.get(ix).and_then(Option::as_ref);
                Ok(($($parent::arg(codec, raw($index))?,)+))
            }
        }
    };
}

tuple_of_parents!(A 0);
tuple_of_parents!(A 0, B 1);
tuple_of_parents!(A 0, B 1, C 2);
tuple_of_parents!(A 0, B 1, C 2, D 3);
tuple_of_parents!(A 0, B 1, C 2, D 3, E 4);
tuple_of_parents!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple_of_parents!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_of_parents!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
