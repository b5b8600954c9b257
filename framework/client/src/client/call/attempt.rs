//! One attempt: the HTTP request, and the reading of the answer.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use percent_encoding::percent_decode_str;

use super::trace;
use super::{Call, ClientShared};
use crate::client::policy::AttemptOutcome;
use crate::client::request::Prepared;
use crate::client::request::warning::{self, WarningHandler};
use crate::client::transport::{
    Attempt, BodyEnd, BoundedReader, ERROR_BODY_LIMIT, HttpRequest, ResponseBody, TransportError,
    dial, gzip,
};
use windlass_core::error::{ApiStatus, BoxError, Error, ErrorKind};
use windlass_core::resource::Verb;
use windlass_core::wire::status;

/// Time for the text of an error answer; the part that has arrived by then is used.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// A successful answer.
pub(in crate::client) struct AttemptResponse {
    /// Status code; 2xx.
    pub(in crate::client) status: StatusCode,
    pub(in crate::client) headers: HeaderMap,
    /// The body, when the caller wants it as a whole.
    pub(in crate::client) read: Bytes,
    /// The body, when the caller wants a stream.
    pub(in crate::client) rest: Option<ResponseBody>,
}

/// Failure of an attempt.
pub(in crate::client) enum AttemptError {
    /// The server's error answer.
    Status { status: Box<ApiStatus>, code: u16, retry_after: Option<Duration>, size: usize },
    /// No answer.
    Broken { outcome: AttemptOutcome, source: Option<BoxError> },
    /// An error that another attempt would not change, regardless of the verb.
    Final(Error),
}

impl AttemptError {
    /// Returns the outcome for the decision about a retry; `None` if a retry is out of the
    /// question.
    pub(in crate::client) fn outcome(&self) -> Option<AttemptOutcome> {
        match self {
            // The 429 of a disruption budget is a decision about the Pod, not a load that passes.
            Self::Status { status, .. } if status.has_cause("DisruptionBudget") => None,
            Self::Status { code, retry_after, .. } => {
                Some(AttemptOutcome::Answered { code: *code, retry_after: *retry_after })
            }
            Self::Broken { outcome, .. } => Some(*outcome),
            Self::Final(_) => None,
        }
    }

    /// Returns the HTTP status code, if there was an answer.
    pub(in crate::client) fn http_code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns the number of bytes of the error answer that were read.
    pub(in crate::client) fn size(&self) -> Option<usize> {
        match self {
            Self::Status { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// Returns the code in the form of `rest_client_requests_total`.
    pub(in crate::client) fn code(&self) -> String {
        match self {
            Self::Status { code, .. } => code.to_string(),
            _ => "<error>".to_owned(),
        }
    }
}

/// Builds the request of an attempt, without a wish for gzip.
pub(super) fn http(
    shared: &ClientShared,
    request: &Prepared,
    uri: Uri,
    credentials: Option<&HeaderValue>,
    mark: Attempt,
) -> HttpRequest {
    let body = request.extra.reader.clone();
    let mut http = http::Request::new(body.unwrap_or_else(|| request.body.clone().into()));
    *http.method_mut() = request.method.clone();
    *http.uri_mut() = uri;
    let headers = http.headers_mut();
    if let Some(accept) = &shared.defaults.accept {
        headers.insert(ACCEPT, accept.clone());
    }
    headers.insert(USER_AGENT, shared.user_agent.clone());
    headers.extend(shared.headers.clone());
    // Headers of the request replace those of the client, with all their values.
    for name in request.headers.keys() {
        headers.remove(name);
    }
    headers.extend(request.headers.clone());
    if let Some(credentials) = credentials {
        headers.insert(AUTHORIZATION, credentials.clone());
    }
    http.extensions_mut().insert(mark);
    http
}

impl Call<'_> {
    /// Builds the request that goes through the stack.
    pub(super) fn http(&self, credentials: Option<&HeaderValue>, mark: Attempt) -> HttpRequest {
        let mut http = http(self.shared, self.request, self.uri.clone(), credentials, mark);
        if self.wants_gzip() {
            http.extensions_mut().insert(gzip::GzipRequested);
        }
        http
    }

    /// Returns whether to request gzip: for whole answers and lists. Watches and logs consist of
    /// small pieces that must not be delayed.
    fn wants_gzip(&self) -> bool {
        let compressible = self.whole || self.request.verb == Verb::List;
        compressible && self.request.verb != Verb::Watch && self.shared.tuning.gzip
    }

    /// Sends `request` and reads as much of the answer as the caller wants.
    pub(super) async fn exchange(
        &self,
        request: HttpRequest,
    ) -> Result<AttemptResponse, AttemptError> {
        let response = self.answer(request).await;
        let response = response.map_err(|error| self.no_response(error))?;
        let (parts, body) = response.into_parts();
        // Before the status is looked at: error answers carry warnings, too.
        warning::notify(self.warning_handler(), &parts.headers, &self.request.path);
        let (status, headers) = (parts.status, parts.headers);
        if !status.is_success() {
            return Err(self.error_response(status, &headers, body).await);
        }
        if !self.whole {
            return Ok(AttemptResponse { status, headers, read: Bytes::new(), rest: Some(body) });
        }
        let limit = self.request.response_limit.unwrap_or(self.shared.tuning.response_limit);
        let mut reader = BoundedReader::new(body, limit);
        match reader.run().await {
            BodyEnd::Whole => self.whole(status, headers, reader.into_bytes()),
            BodyEnd::TooLong => {
                let why = format!("the answer is larger than {}", Size(limit));
                Err(AttemptError::Final(self.unusable(status, &why)))
            }
            BodyEnd::Undecodable(error) => {
                let unusable = self.unusable(status, &error.to_string());
                Err(AttemptError::Final(unusable.because(error)))
            }
            BodyEnd::Broken(error) => {
                Err(AttemptError::Broken { outcome: AttemptOutcome::Lost, source: Some(error) })
            }
        }
    }

    /// Returns the answer, unless its body is a failed Status, which counts for more than the
    /// status code of the answer.
    fn whole(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        read: Bytes,
    ) -> Result<AttemptResponse, AttemptError> {
        trace::response(self.shared, self.request, status.as_u16(), &headers, &read);
        if let Some(status) = status::failure_in(&read) {
            let (code, size) = (status.code, read.len());
            let retry_after = status::retry_after(&headers).or(requested_wait(&status));
            return Err(AttemptError::Status { status: Box::new(status), code, retry_after, size });
        }
        Ok(AttemptResponse { status, headers, read, rest: None })
    }

    /// Returns the error of a successful answer with an unusable body; another attempt would bring
    /// the same.
    fn unusable(&self, status: StatusCode, why: &str) -> Error {
        let (what, code) = (&self.request.what, status.as_u16());
        let text = format!("cannot {what}: the server answered {code}, but {why}");
        Error::new(ErrorKind::Decode, text)
    }

    /// Reads an error answer to the end, so that the connection can be used again. A body that is
    /// broken, slow or endless does not change the error.
    async fn error_response(
        &self,
        code: StatusCode,
        headers: &HeaderMap,
        body: ResponseBody,
    ) -> AttemptError {
        let mut reader = BoundedReader::new(body, ERROR_BODY_LIMIT);
        let clock = &self.shared.environment.clock;
        // The outcome is ignored: the reader keeps the part that has arrived.
        let _ = clock.timeout(ERROR_BODY_TIME, reader.run()).await;
        let read = reader.into_bytes();
        trace::response(self.shared, self.request, code.as_u16(), headers, &read);
        let status = status::of_answer(code, headers, &read);
        // The header takes precedence over the wait in the Status.
        let retry_after = status::retry_after(headers).or(requested_wait(&status));
        let (status, code) = (Box::new(status), code.as_u16());
        AttemptError::Status { status, code, retry_after, size: read.len() }
    }

    /// Makes a certificate that cannot be trusted final: another attempt a second later would meet
    /// the same certificate.
    fn no_response(&self, error: BoxError) -> AttemptError {
        let failure = broken(error);
        let AttemptError::Broken { outcome: AttemptOutcome::NotSent, source: Some(source) } =
            failure
        else {
            return failure;
        };
        let Some(why) = dial::untrusted(&*source) else {
            return AttemptError::Broken { outcome: AttemptOutcome::NotSent, source: Some(source) };
        };
        let ClientShared { host, via, .. } = self.shared;
        let text = format!("cannot {}: no connection to {host}{via}: {why}", self.request.what);
        AttemptError::Final(Error::new(ErrorKind::Connect, text).because(source))
    }

    /// Returns the warning handler of the request, or the client's.
    fn warning_handler(&self) -> &dyn WarningHandler {
        self.request.extra.warnings.as_deref().unwrap_or(&*self.shared.defaults.warnings)
    }
}

/// Returns the wait that a Status asks for.
fn requested_wait(status: &ApiStatus) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Classifies an error of the stack; after an unknown error the request may have been executed.
fn broken(error: BoxError) -> AttemptError {
    // An error of the crate's own type comes from a layer that has decided about the outcome.
    let error = match error.downcast::<Error>() {
        Ok(own) => return AttemptError::Final(*own),
        Err(error) => error,
    };
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    let mut outcome = AttemptOutcome::Lost;
    // Layers may have wrapped the transport's error, so the whole chain is searched.
    while let Some(source) = cause {
        if let Some(transport) = source.downcast_ref::<TransportError>() {
            outcome = transport.outcome;
            break;
        }
        cause = source.source();
    }
    AttemptError::Broken { outcome, source: Some(error) }
}

/// A number of bytes in a readable unit.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

/// Refuses paths that a server or proxy would normalize into another path, and unsafe methods with
/// a verb that only reads: gates and dry runs would ignore them, and they would be retried.
pub(in crate::client) fn check(request: &Prepared) -> Result<(), Error> {
    if !request.verb.writes() && !request.method.is_safe() {
        let (what, method, verb) = (&request.what, &request.method, request.verb.as_str());
        let text = format!("cannot {what}: a {method} is not a `{verb}`; name a verb that writes");
        return Err(Error::new(ErrorKind::Usage, text));
    }
    let path = &request.path;
    // Decoded first: `%2e%2e` is a parent folder to many servers, too.
    let dots = path.split('/').any(|segment| {
        let segment = percent_decode_str(segment).decode_utf8_lossy();
        segment == "." || segment == ".."
    });
    if path.starts_with('/') && !dots && !path.contains(['?', '#', '\\']) {
        return Ok(());
    }
    let text = format!("cannot {}: `{path}` is not a path to send a request to", request.what);
    Err(Error::new(ErrorKind::Usage, text))
}
