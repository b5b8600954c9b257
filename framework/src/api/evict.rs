//! Eviction: a deletion that asks disruption budgets first.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ApiFuture;
use super::delete::Options;
use super::draft::Draft;
use crate::error::Error;

/// An eviction about to be sent; await it. The Pod is then gone, or ends within its grace period.
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send). When a budget does not allow it now,
/// [`Error::is_disruption_budget`] holds; it is told at once, and for the caller to try again later.
#[must_use = "a request does nothing until it is awaited"]
pub struct Evict {
    draft: Draft,
    options: Options,
}

impl Evict {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, options: Options::default() }
    }

    /// Only if the Pod has this uid. It makes the eviction safe to repeat.
    pub fn uid(mut self, uid: &str) -> Self {
        self.options.precondition("uid", uid);
        self
    }

    /// How long the Pod may take to end, in whole seconds. Default: the Pod's.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.options.grace(period);
        self
    }

    /// Asks the budgets and evicts nothing.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for it with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    fn finished(mut self) -> Draft {
        if self.options.is_guarded() {
            self.draft.repeatable();
        }
        let mut metadata = Map::from_iter([("name".to_owned(), json!(self.draft.name()))]);
        if let Some(namespace) = self.draft.namespace() {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        let mut eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": Value::Object(metadata),
        });
        if let Some(options) = self.options.json() {
            eviction["deleteOptions"] = options;
        }
        self.draft.set_json(&eviction);
        self.draft
    }
}

impl IntoFuture for Evict {
    type Output = Result<(), Error>;
    type IntoFuture = ApiFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finished().send(|_, _, _| Ok(())))
    }
}

impl fmt::Debug for Evict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evict").field("draft", &self.draft).field("options", &self.options).finish()
    }
}
