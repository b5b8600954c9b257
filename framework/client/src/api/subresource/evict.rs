//! Evictions: deletions that respect disruption budgets.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::api::ApiFuture;
use crate::api::draft::Draft;
use crate::api::write::Options;
use windlass_core::error::Error;

/// An eviction, sent when awaited. The Pod is then gone, or ends within the grace period.
///
/// A lost answer is [`Ambiguous`](windlass_core::ErrorKind::Ambiguous) unless the eviction names a
/// [uid](Self::uid).
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send). [`Error::is_disruption_budget`] holds
/// when a budget does not allow the eviction now; the error comes at once, and the caller decides
/// when to try again.
/// # Cancel safety
/// Dropping the future cancels the request; the eviction may have been executed.
#[must_use = "a request does nothing until it is awaited"]
pub struct Evict {
    draft: Draft,
    options: Options,
}

impl Evict {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, options: Options::default() }
    }

    /// Evicts only a Pod with this uid. The eviction is then safe to repeat.
    ///
    /// Default: any Pod of the name.
    pub fn uid(mut self, uid: &str) -> Self {
        self.options.precondition("uid", uid);
        self
    }

    /// Longest time for the Pod to end, in whole seconds. Default: the Pod's.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.options.grace(period);
        self
    }

    /// Checks the budgets and evicts nothing: an eviction that they forbid fails as usual. Default:
    /// no.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Calls `on_response` with the answer, once the call is executed.
    #[doc(hidden)]
    pub fn on_response(mut self, on_response: impl Fn(&Bytes) + Send + Sync + 'static) -> Self {
        self.draft.on_response = Some(Arc::new(on_response));
        self
    }

    /// The draft with the Eviction as the body.
    fn finished(mut self) -> Draft {
        // A repetition cannot evict another Pod of the same name.
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
