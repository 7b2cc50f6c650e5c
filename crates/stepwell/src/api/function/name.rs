//! Names of what functions do.

use std::fmt::Display;

/// What a step, sleep or wait of a function is known by: `"charge"`, or `("charge", item.id)`
/// where one name is used for several things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepName(pub(crate) String);

/// What can name a step of a function: a text, or a text and an id.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot name a step of a function",
    label = "not a name",
    note = "use a text, `\"charge\"`, or a text and an id, `(\"charge\", item.id)`"
)]
pub trait IntoStepName {
    /// The name.
    fn into_step_name(self) -> StepName;
}

impl IntoStepName for StepName {
    fn into_step_name(self) -> StepName {
        self
    }
}

impl IntoStepName for &str {
    fn into_step_name(self) -> StepName {
        StepName(self.to_owned())
    }
}

impl IntoStepName for String {
    fn into_step_name(self) -> StepName {
        StepName(self)
    }
}

impl IntoStepName for &String {
    fn into_step_name(self) -> StepName {
        StepName(self.clone())
    }
}

impl<N: AsRef<str>, D: Display> IntoStepName for (N, D) {
    fn into_step_name(self) -> StepName {
        StepName(format!("{}[{}]", self.0.as_ref(), self.1))
    }
}
