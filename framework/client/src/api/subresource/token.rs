//! Tokens of service accounts.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::ApiFuture;
use crate::api::decode;
use crate::api::draft::Draft;
use crate::client::SecretString;
use windlass_core::error::Error;
use windlass_core::resource::{Resource, ResourceInfo};

/// A request for a token (`authentication.k8s.io/v1`), sent when awaited. Defaults: the token is
/// for the API server, and for an hour.
///
/// Sent with the verb `create` on `serviceaccounts/token`. Safe to repeat: an unused token does no
/// harm.
///
/// `Debug` does not show the token.
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send).
/// # Cancel safety
/// Dropping the future cancels the request; a token may have been issued.
#[must_use = "a request does nothing until it is awaited"]
pub struct TokenRequest {
    draft: Draft,
    spec: Map<String, Value>,
}

/// A token of a service account, bound to its audiences and to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Token {
    /// The value to send as `Authorization: Bearer …`.
    pub token: SecretString,
    /// End of the token's validity; the server may choose another time than the requested one.
    pub expires: Timestamp,
}

impl TokenRequest {
    pub(crate) fn new(mut draft: Draft) -> Self {
        // A second token does no harm.
        draft.repeatable();
        Self { draft, spec: Map::new() }
    }

    /// Adds an audience that should accept the token. Default: the API server.
    pub fn audience(mut self, audience: &str) -> Self {
        if let Value::Array(audiences) = self.spec.entry("audiences").or_insert(json!([])) {
            audiences.push(json!(audience));
        }
        self
    }

    /// Requested lifetime, in whole seconds; API servers refuse less than ten minutes. Default: an
    /// hour.
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.spec.insert("expirationSeconds".into(), json!(time.as_secs()));
        self
    }

    /// Ends the token with `object`, an existing Pod, Secret or Node.
    ///
    /// A Secret or a Pod of the account's namespace, or a Node.
    /// [`Usage`](windlass_core::ErrorKind::Usage) for a dynamic object.
    pub fn bound_to<K: Resource>(mut self, object: &K) -> Self {
        let metadata = object.metadata();
        let Some(info) = K::static_info() else {
            self.draft.refuse("a token is bound to an object of a typed kind");
            return self;
        };
        let reference = json!({
            "apiVersion": info.api_version(),
            "kind": info.kind,
            "name": metadata.name,
            "uid": metadata.uid,
        });
        self.spec.insert("boundObjectRef".into(), reference);
        self
    }

    /// Checks and answers as usual; API servers store nothing of a token in any case.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }
}

/// Decodes the token in the answer to `what`.
fn issued(what: &str, body: &[u8], info: &ResourceInfo) -> Result<Token, Error> {
    /// The part of the answer that is read.
    #[derive(Deserialize)]
    struct IssuedToken {
        status: TokenRequestStatus,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TokenRequestStatus {
        token: SecretString,
        expiration_timestamp: Timestamp,
    }
    let IssuedToken { status } = decode::value(what, body, info)?;
    Ok(Token { token: status.token, expires: status.expiration_timestamp })
}

impl IntoFuture for TokenRequest {
    type Output = Result<Token, Error>;
    type IntoFuture = ApiFuture<'static, Token>;

    fn into_future(mut self) -> Self::IntoFuture {
        self.draft.set_json(&json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": Value::Object(self.spec),
        }));
        Box::pin(self.draft.send(issued))
    }
}

impl fmt::Debug for TokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRequest")
            .field("draft", &self.draft)
            .field("spec", &self.spec)
            .finish()
    }
}
