//! One attempt: the request as HTTP, and the answer's way back.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tower::ServiceExt;

use super::retry::Outcome;
use super::transport::{Attempt, HttpRequest, ResponseBody, TransportError};
use super::warning::{self, WarningHandler};
use super::{Client, Prepared, Verb, trace};
use crate::error::{ApiStatus, BoxError, Error, ErrorKind};
use crate::wire::status;

/// Largest answer that [`Client::send`] reads.
const BODY_LIMIT: usize = 64 << 20;
/// Largest error answer that is read.
const ERROR_BODY_LIMIT: usize = 1 << 20;
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A good answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The body, when the whole was wanted.
    pub(super) read: Bytes,
    /// The body, when a stream was wanted.
    pub(super) rest: Option<ResponseBody>,
}

/// What an attempt ended in, if not in a good answer.
pub(super) enum Failure {
    /// The server's error answer.
    Status { status: ApiStatus, code: u16, retry_after: Option<Duration>, size: usize },
    /// No answer.
    Broken { outcome: Outcome, source: Option<BoxError> },
    /// Trying again would not help, whatever the verb.
    Final(Error),
}

impl Failure {
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Status { code, retry_after, .. } => {
                Some(Outcome::Answered { code: *code, retry_after: *retry_after })
            }
            Self::Broken { outcome, .. } => Some(*outcome),
            Self::Final(_) => None,
        }
    }

    /// The HTTP status code, if there was an answer.
    pub(super) fn http_code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Bytes of the error answer that were read.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Status { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// As `rest_client_requests_total` prints it.
    pub(super) fn code(&self) -> String {
        match self {
            Self::Status { code, .. } => code.to_string(),
            _ => "<error>".to_owned(),
        }
    }
}

/// What all attempts of a call send.
pub(super) struct Outgoing<'a> {
    pub(super) client: &'a Client,
    pub(super) request: &'a Prepared,
    /// Read the whole body, or hand it on as a stream?
    pub(super) whole: bool,
}

impl Outgoing<'_> {
    /// The request as it goes through the stack.
    pub(super) fn http(
        &self,
        credentials: Option<&HeaderValue>,
        mark: Attempt,
    ) -> Result<HttpRequest, Error> {
        let request = self.request;
        let body = request.extra.reader.clone();
        let mut http = http::Request::new(body.unwrap_or_else(|| request.body.clone().into()));
        *http.method_mut() = request.method.clone();
        *http.uri_mut() = uri(self.client, request)?;
        let headers = http.headers_mut();
        if let Some(accept) = &self.client.shared.accept {
            headers.insert(ACCEPT, accept.clone());
        }
        headers.insert(USER_AGENT, self.client.shared.user_agent.clone());
        headers.extend(self.client.shared.headers.clone());
        for name in request.headers.keys() {
            headers.remove(name);
        }
        headers.extend(request.headers.clone());
        if let Some(credentials) = credentials {
            headers.insert(AUTHORIZATION, credentials.clone());
        }
        http.extensions_mut().insert(mark);
        Ok(http)
    }

    /// Sends `http` and reads what is wanted of the answer.
    pub(super) async fn exchange(&self, request: HttpRequest) -> Result<Answer, Failure> {
        let response = self.client.shared.stack.clone().oneshot(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        warning::tell(self.warning_handler(), &parts.headers, &self.request.path);
        let (status, headers) = (parts.status, parts.headers);
        if !status.is_success() {
            return Err(self.error_answer(status, &headers, body).await);
        }
        if !self.whole {
            return Ok(Answer { status, headers, read: Bytes::new(), rest: Some(body) });
        }
        let (read, ended) = read_body(body, BODY_LIMIT).await;
        match ended {
            Ended::Whole => {}
            Ended::TooLong => {
                let (what, mebibytes) = (&self.request.what, BODY_LIMIT >> 20);
                let text = format!("cannot {what}: the answer is larger than {mebibytes} MiB");
                return Err(Failure::Final(Error::new(ErrorKind::Decode, text)));
            }
            Ended::Broken(error) => {
                return Err(Failure::Broken { outcome: Outcome::Lost, source: Some(error) });
            }
        }
        trace::answer(&self.client.shared, self.request, status.as_u16(), &headers, &read);
        if let Some(status) = status::failure_in(&read) {
            // A Status says more than the code that it came with.
            let (code, size) = (status.code, read.len());
            return Err(Failure::Status { status, code, retry_after: None, size });
        }
        Ok(Answer { status, headers, read, rest: None })
    }

    async fn error_answer(
        &self,
        code: StatusCode,
        headers: &HeaderMap,
        body: ResponseBody,
    ) -> Failure {
        // A broken error answer is an answer all the same. It is read to its end, within reason, so
        // that the connection can be used again.
        let (read, _) = read_body(body, ERROR_BODY_LIMIT).await;
        trace::answer(&self.client.shared, self.request, code.as_u16(), headers, &read);
        let status = status::of_answer(code, headers, &read);
        let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let asked = (asked > 0).then(|| Duration::from_secs(asked));
        let retry_after = status::retry_after(headers).or(asked);
        Failure::Status { status, code: code.as_u16(), retry_after, size: read.len() }
    }

    fn warning_handler(&self) -> &dyn WarningHandler {
        self.request.extra.warnings.as_deref().unwrap_or(&*self.client.shared.warnings)
    }
}

/// The absolute URI of a request, with its field manager.
pub(super) fn uri(client: &Client, request: &Prepared) -> Result<Uri, Error> {
    let shared = &client.shared;
    let base = if request.extra.from_root { shared.root() } else { &shared.base };
    let mut uri = format!("{base}{}", request.path);
    let mut separator = '?';
    let mut add = |key: &str, value: &str| {
        uri.push(separator);
        uri.extend(utf8_percent_encode(key, QUERY));
        uri.push('=');
        uri.extend(utf8_percent_encode(value, QUERY));
        separator = '&';
    };
    for (key, value) in &request.query {
        add(key, value);
    }
    let managed = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Apply);
    if managed && request.parameter("fieldManager").is_none() {
        add("fieldManager", &client.manager);
    }
    uri.parse().map_err(|error| {
        let text = format!("cannot {}: `{}` is no path", request.what, request.path);
        Error::new(ErrorKind::Usage, text).because(error)
    })
}

/// What the stack's error says about the attempt; an unknown one leaves doubt.
fn broken(error: BoxError) -> Failure {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    let mut outcome = Outcome::Lost;
    while let Some(source) = cause {
        if let Some(transport) = source.downcast_ref::<TransportError>() {
            outcome = transport.outcome;
            break;
        }
        cause = source.source();
    }
    Failure::Broken { outcome, source: Some(error) }
}

/// How the reading of a body ended.
enum Ended {
    Whole,
    TooLong,
    Broken(BoxError),
}

/// At most `limit` bytes of a body.
async fn read_body(mut body: ResponseBody, limit: usize) -> (Bytes, Ended) {
    let mut read: Vec<u8> = Vec::new();
    let mut first = Bytes::new();
    loop {
        let data = match body.frame().await {
            None => break,
            Some(Err(error)) => return (joined(first, read), Ended::Broken(error)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        if first.len() + read.len() + data.len() > limit {
            return (joined(first, read), Ended::TooLong);
        }
        if first.is_empty() && read.is_empty() {
            // A body of one piece, as most are, is not copied.
            first = data;
            continue;
        }
        if read.is_empty() {
            read.extend_from_slice(&std::mem::take(&mut first));
        }
        read.extend_from_slice(&data);
    }
    (joined(first, read), Ended::Whole)
}

/// One of the two is empty.
fn joined(first: Bytes, read: Vec<u8>) -> Bytes {
    if read.is_empty() { first } else { read.into() }
}

/// Refuses paths that would be another path once a server or proxy has tidied them.
pub(super) fn check_path(request: &Prepared) -> Result<(), Error> {
    let path = &request.path;
    let dots = path.split('/').any(|segment| {
        let segment = percent_decode_str(segment).decode_utf8_lossy();
        segment == "." || segment == ".."
    });
    if path.starts_with('/') && !dots && !path.contains(['?', '#', '\\']) {
        return Ok(());
    }
    let text = format!("cannot {}: `{path}` is no path to send a request to", request.what);
    Err(Error::new(ErrorKind::Usage, text))
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let body =
            || Full::new(Bytes::from_static(b"12345")).map_err(|e| match e {}).boxed_unsync();
        let (read, ended) = read_body(body(), 5).await;
        assert!(read == "12345" && matches!(ended, Ended::Whole));
        let (_, ended) = read_body(body(), 4).await;
        assert!(matches!(ended, Ended::TooLong));
    }
}
