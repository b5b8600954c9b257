//! Writes: create, replace, patch, apply, and the writes of subresources; deletions.

mod delete;
mod patcher;
mod retry;
mod upsert;

pub(in crate::api) use delete::Options;
pub use delete::{Delete, DeleteCollection, Deletion, Propagation};
pub use patcher::Patcher;
pub use retry::{Retries, retry_on_conflict};
pub use upsert::Upserted;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::ApiFuture;
use super::decode::Decoder;
use super::draft::Draft;
use crate::client::Verb;

/// Treatment of fields that the kind does not have, and of duplicate fields. Default of the API
/// server: [`Warn`](Self::Warn).
///
/// Stable since Kubernetes 1.27.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// Drops the fields silently.
    Ignore,
    /// Drops the fields, and reports them in a `Warning` header, which the client logs.
    Warn,
    /// Refuses the request: `BadRequest`, or `Invalid` for a patch.
    Strict,
}

impl FieldValidation {
    /// The value of the query parameter `fieldValidation`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// A write, sent when awaited; returns the object as the server stored it.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use serde_json::json;
/// # use windlass::api::FieldValidation;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// let tried = maps
///     .apply("settings", &json!({ "data": { "color": "red" } }))
///     .dry_run()
///     .field_validation(FieldValidation::Strict)
///     .timeout(Duration::from_secs(5))
///     .await?;
/// println!("would store {:?}", tried.data);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send);
/// [`Usage`](windlass_core::ErrorKind::Usage) for a request that cannot be sent;
/// [`Conflict`](windlass_core::ErrorKind::Conflict) when another writer was first, or (for an
/// apply) owns a field; [`Ambiguous`](windlass_core::ErrorKind::Ambiguous) when the fate of the
/// write is unknown: read the object and compare, or apply again. A write that was repeated after a
/// doubtful failure and then refused is ambiguous too, because the first attempt may have worked;
/// the [`code`](windlass_core::Error::code) of such an error is the refusal's.
/// # Cancel safety
/// Dropping the future cancels the request; the write may have been executed.
#[must_use = "a request does nothing until it is awaited"]
pub struct Write<T> {
    draft: Draft,
    decode: Decoder<T>,
}

impl<T> Write<T> {
    pub(crate) fn new(draft: Draft, decode: Decoder<T>) -> Self {
        Self { draft, decode }
    }

    /// Writes the subresource `status` instead of the object.
    ///
    /// Default: the object, of which API servers ignore the status if the status is a subresource.
    /// [`Usage`](windlass_core::ErrorKind::Usage) for a creation and for another subresource.
    pub fn status(mut self) -> Self {
        self.draft.set_status();
        self
    }

    /// Owner of the written fields. Default: the client's manager.
    ///
    /// At most 128 characters; the API server refuses more.
    pub fn manager(mut self, manager: &str) -> Self {
        self.draft.set("fieldManager", manager);
        self
    }

    /// Apply only: takes over fields of other managers.
    ///
    /// Default: off, a foreign field is a [`Conflict`](windlass_core::ErrorKind::Conflict). For any
    /// other write [`Usage`](windlass_core::ErrorKind::Usage). Controllers should force: their
    /// intent is the truth about their fields.
    pub fn force(mut self) -> Self {
        if self.draft.verb() == Verb::Apply {
            self.draft.set("force", "true");
        } else {
            self.draft.refuse("only an apply can be forced");
        }
        self
    }

    /// Checks and answers as usual, and stores nothing.
    ///
    /// Default: off. Admission runs; a webhook with side effects makes the server refuse the
    /// request.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Treatment of fields that the kind does not have. Default: the server's, which is
    /// [`Warn`](FieldValidation::Warn). An apply refuses unknown fields in any case.
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        self.draft.set("fieldValidation", validation.as_str());
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    ///
    /// Zero selects the default again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Calls `on_response` with the answer, once the call was executed.
    #[doc(hidden)]
    pub fn on_response(mut self, on_response: impl Fn(&Bytes) + Send + Sync + 'static) -> Self {
        self.draft.on_response = Some(Arc::new(on_response));
        self
    }

    /// Sends the write; returns the object, and the undecoded answer.
    #[doc(hidden)]
    pub async fn answered(self) -> Result<(T, Bytes), windlass_core::Error> {
        self.draft.answered(self.decode).await
    }

    /// As [`answered`](Self::answered), for an executed write whose answer may not decode.
    #[doc(hidden)]
    pub async fn executed(
        self,
    ) -> Result<(Result<T, windlass_core::Error>, Bytes), windlass_core::Error> {
        self.draft.executed(self.decode).await
    }
}

impl<T: 'static> IntoFuture for Write<T> {
    type Output = Result<T, windlass_core::Error>;
    type IntoFuture = ApiFuture<'static, T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.draft.send(self.decode))
    }
}

impl<T> fmt::Debug for Write<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Write").field("draft", &self.draft).finish()
    }
}
