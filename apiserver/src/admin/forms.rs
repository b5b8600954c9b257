//! Faults in JSON.

use std::time::Duration;

use serde::Deserialize;

use crate::faults::{Fault, FaultAction};

/// A fault of requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultForm {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    #[serde(default)]
    after: usize,
    /// `None` for ever.
    #[serde(default = "once")]
    times: Option<usize>,
    actions: Vec<ActionForm>,
}

/// Returns the number of strikes of a fault that names none.
fn once() -> Option<usize> {
    Some(1)
}

/// An action of a fault.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum ActionForm {
    Answer(u16),
    ExecuteThenAnswer(u16),
    ExecuteThenDrop,
    Drop,
    Hang,
    ExecuteThenHang,
    DelayMilliseconds(u64),
    ExecuteThenDelayMilliseconds(u64),
    RetryAfter(String),
    CloseWatch,
    FailWatch(u16),
    RawFrame(String),
    RepeatWatch(u64),
    BehindMilliseconds(u64, u64),
    Garble(String),
    RawBody(u16, String),
}

impl From<ActionForm> for FaultAction {
    fn from(form: ActionForm) -> Self {
        match form {
            ActionForm::Answer(code) => Self::Answer(code),
            ActionForm::ExecuteThenAnswer(code) => Self::ExecuteThenAnswer(code),
            ActionForm::ExecuteThenDrop => Self::ExecuteThenDrop,
            ActionForm::Drop => Self::Drop,
            ActionForm::Hang => Self::Hang,
            ActionForm::ExecuteThenHang => Self::ExecuteThenHang,
            ActionForm::DelayMilliseconds(time) => Self::Delay(Duration::from_millis(time)),
            ActionForm::ExecuteThenDelayMilliseconds(time) => {
                Self::ExecuteThenDelay(Duration::from_millis(time))
            }
            ActionForm::RetryAfter(value) => Self::RetryAfter(value),
            ActionForm::CloseWatch => Self::CloseWatch,
            ActionForm::FailWatch(code) => Self::FailWatch(code),
            ActionForm::RawFrame(text) => Self::RawFrame(text.into()),
            ActionForm::RepeatWatch(back) => Self::RepeatWatch(back),
            ActionForm::BehindMilliseconds(revision, time) => {
                Self::Behind(revision, Duration::from_millis(time))
            }
            ActionForm::Garble(name) => Self::Garble(name),
            ActionForm::RawBody(code, text) => Self::RawBody(code, text.into()),
        }
    }
}

/// A method of [`Fault`] that restricts it.
type Restrict = fn(Fault, &str) -> Fault;

impl FaultForm {
    /// Returns the fault, or why there can be none.
    pub(super) fn fault(self) -> Result<Fault, String> {
        let mut actions = self.actions.into_iter().map(FaultAction::from);
        let first = actions.next().ok_or("a fault needs at least one of its `actions`")?;
        let mut fault = actions.fold(Fault::new(first), Fault::then).after(self.after);
        fault = match self.times {
            Some(times) => fault.times(times),
            None => fault.always(),
        };
        let narrow: [(Option<String>, Restrict); 7] = [
            (self.verb, Fault::on),
            (self.resource, Fault::resource),
            (self.subresource, Fault::subresource),
            (self.namespace, Fault::namespace),
            (self.name, Fault::name),
            (self.agent, Fault::agent),
            (self.user, Fault::user),
        ];
        for (value, restrict) in narrow {
            if let Some(value) = value {
                fault = restrict(fault, &value);
            }
        }
        Ok(fault)
    }
}
