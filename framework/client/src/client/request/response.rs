//! A complete answer.

use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::prepared::{Headers, Length};
use super::warning::{Warning, warnings};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::{Undecodable, times};

/// A complete answer. `Debug` shows of the body only the length.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let answer = client.get().abs_path(["version"]).send().await?;
/// let version: serde_json::Value = answer.json()?;
/// println!("{} as {:?}", version["gitVersion"], answer.content_type());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Response {
    /// Status code, always 2xx: any other code is an error of the call.
    pub status: StatusCode,
    /// Headers of the response, as received.
    pub headers: HeaderMap,
    /// Body as received, decompressed; at most
    /// [`max_response_size`](crate::client::ClientBuilder::max_response_size) long.
    pub body: Bytes,
    /// Description of the request, for error texts.
    pub(crate) what: String,
}

impl Response {
    /// Decodes the body from JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] when the body is not the JSON that `T` expects.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        times::from_slice(&self.body).map_err(|error| {
            // The explanation names the member that does not decode, without its value.
            let error = Undecodable::explain::<T>(&self.body, &error);
            let what = &self.what;
            let kind = self.content_type().unwrap_or("no content type");
            let text = format!("cannot {what}: the answer ({kind}) does not decode: {error}");
            Error::new(ErrorKind::Decode, text).because(error)
        })
    }

    /// Returns the body undecoded.
    ///
    /// Decompressed, if the server compressed the body.
    pub fn raw(&self) -> &Bytes {
        &self.body
    }

    /// Returns the body undecoded, without a copy.
    pub fn into_raw(self) -> Bytes {
        self.body
    }

    /// Returns the content type that the server named.
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Returns whether the request created an object that did not exist before (201).
    pub fn was_created(&self) -> bool {
        self.status == StatusCode::CREATED
    }

    /// Returns the warnings of the server; the warning handler has received them already.
    pub fn warnings(&self) -> Vec<Warning> {
        warnings(&self.headers)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &Headers(&self.headers))
            .field("body", &Length(self.body.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_output_shows_a_body_or_credentials() {
        let mut headers = HeaderMap::new();
        headers.insert("set-cookie", http::HeaderValue::from_static("canary"));
        let body = Bytes::from_static(b"canary");
        let response = Response { status: StatusCode::OK, headers, body, what: String::new() };
        let text = format!("{response:?} {response:#?}");
        assert!(!text.contains("canary") && text.contains("6 bytes"), "{text}");
    }
}
