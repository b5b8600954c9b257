//! One attempt: the request as HTTP, and the answer's way back.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tower::ServiceExt;

use super::body::{ERROR_BODY_LIMIT, Ended, Reader};
use super::call::Shared;
use super::gzip;
use super::retry::Outcome;
use super::transport::{Attempt, HttpRequest, ResponseBody, TransportError};
use super::warning::{self, WarningHandler};
use super::{Client, Prepared, Verb, dial, trace};
use crate::error::{ApiStatus, BoxError, Error, ErrorKind};
use crate::wire::status;

/// The text of an error answer must have come within this time; what has come by then is used.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
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
    Status { status: Box<ApiStatus>, code: u16, retry_after: Option<Duration>, size: usize },
    /// No answer.
    Broken { outcome: Outcome, source: Option<BoxError> },
    /// Trying again would not help, whatever the verb.
    Final(Error),
}

impl Failure {
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self {
            // The 429 of a disruption budget is a decision about the Pod, not a load that passes.
            Self::Status { status, .. } if status.has_cause("DisruptionBudget") => None,
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
        uri: Uri,
        credentials: Option<&HeaderValue>,
        mark: Attempt,
    ) -> HttpRequest {
        let request = self.request;
        let body = request.extra.reader.clone();
        let mut http = http::Request::new(body.unwrap_or_else(|| request.body.clone().into()));
        *http.method_mut() = request.method.clone();
        *http.uri_mut() = uri;
        let headers = http.headers_mut();
        if let Some(accept) = &self.client.shared.defaults.accept {
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
        if self.wants_gzip() {
            http.extensions_mut().insert(gzip::Wanted);
        }
        http
    }

    /// Whole answers and lists come compressed; watches and logs are small pieces that must come
    /// at once.
    fn wants_gzip(&self) -> bool {
        let compressible = self.whole || self.request.verb == Verb::List;
        compressible && self.request.verb != Verb::Watch && self.client.shared.tuning.gzip
    }

    /// Sends `http` and reads what is wanted of the answer.
    pub(super) async fn exchange(&self, request: HttpRequest) -> Result<Answer, Failure> {
        let response = self.client.shared.stack.clone().oneshot(request).await;
        let response = response.map_err(|error| self.broken(error))?;
        let (parts, body) = response.into_parts();
        warning::tell(self.warning_handler(), &parts.headers, &self.request.path);
        let (status, headers) = (parts.status, parts.headers);
        if !status.is_success() {
            return Err(self.error_answer(status, &headers, body).await);
        }
        if !self.whole {
            return Ok(Answer { status, headers, read: Bytes::new(), rest: Some(body) });
        }
        let limit = self.request.answer_limit.unwrap_or(self.client.shared.tuning.answer_limit);
        let mut reader = Reader::new(body, limit);
        match reader.run().await {
            Ended::Whole => self.whole(status, headers, reader.into_bytes()),
            Ended::TooLong => {
                let why = format!("the answer is larger than {}", Size(limit));
                Err(Failure::Final(self.unusable(status, &why)))
            }
            Ended::Undecodable(error) => {
                let unusable = self.unusable(status, &error.to_string());
                Err(Failure::Final(unusable.because(error)))
            }
            Ended::Broken(error) => {
                Err(Failure::Broken { outcome: Outcome::Lost, source: Some(error) })
            }
        }
    }

    /// A good answer, unless its body says otherwise: a Status counts for more than the code that it
    /// came with.
    fn whole(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        read: Bytes,
    ) -> Result<Answer, Failure> {
        trace::answer(&self.client.shared, self.request, status.as_u16(), &headers, &read);
        if let Some(status) = status::failure_in(&read) {
            let (code, size) = (status.code, read.len());
            let retry_after = status::retry_after(&headers).or(asked(&status));
            return Err(Failure::Status { status: Box::new(status), code, retry_after, size });
        }
        Ok(Answer { status, headers, read, rest: None })
    }

    /// A good answer whose body is of no use; asking again would bring the same.
    fn unusable(&self, status: StatusCode, why: &str) -> Error {
        let (what, code) = (&self.request.what, status.as_u16());
        let text = format!("cannot {what}: the server answered {code}, but {why}");
        Error::new(ErrorKind::Decode, text)
    }

    /// Reads an error answer to its end, so that its connection can be used again. A broken, slow or
    /// endless one is an answer all the same.
    async fn error_answer(
        &self,
        code: StatusCode,
        headers: &HeaderMap,
        body: ResponseBody,
    ) -> Failure {
        let mut reader = Reader::new(body, ERROR_BODY_LIMIT);
        let clock = &self.client.shared.seams.clock;
        let _ = clock.within(ERROR_BODY_TIME, reader.run()).await;
        let read = reader.into_bytes();
        trace::answer(&self.client.shared, self.request, code.as_u16(), headers, &read);
        let status = status::of_answer(code, headers, &read);
        let retry_after = status::retry_after(headers).or(asked(&status));
        let (status, code) = (Box::new(status), code.as_u16());
        Failure::Status { status, code, retry_after, size: read.len() }
    }

    /// A server that cannot be trusted now will not be a second later.
    fn broken(&self, error: BoxError) -> Failure {
        let failure = broken(error);
        let Failure::Broken { outcome: Outcome::NotSent, source: Some(source) } = failure else {
            return failure;
        };
        let Some(why) = dial::untrusted(&*source) else {
            return Failure::Broken { outcome: Outcome::NotSent, source: Some(source) };
        };
        let Shared { host, via, .. } = &*self.client.shared;
        let text = format!("cannot {}: no connection to {host}{via}: {why}", self.request.what);
        Failure::Final(Error::new(ErrorKind::Connect, text).because(source))
    }

    fn warning_handler(&self) -> &dyn WarningHandler {
        self.request.extra.warnings.as_deref().unwrap_or(&*self.client.shared.defaults.warnings)
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

/// How long a Status asks to wait.
fn asked(status: &ApiStatus) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// What the stack's error says about the attempt; an unknown one leaves doubt.
fn broken(error: BoxError) -> Failure {
    // A layer that speaks for itself is not contradicted.
    let error = match error.downcast::<Error>() {
        Ok(own) => return Failure::Final(*own),
        Err(error) => error,
    };
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

/// Bytes, as a person says them.
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

/// Refuses paths that would be another path once a server or proxy has tidied them, and writes that
/// say that they only read: neither gate nor dry run would see them, and they would be repeated.
pub(super) fn check(request: &Prepared) -> Result<(), Error> {
    if !request.verb.writes() && !request.method.is_safe() {
        let (what, method, verb) = (&request.what, &request.method, request.verb.as_str());
        let text = format!("cannot {what}: a {method} is no `{verb}`; name a verb that writes");
        return Err(Error::new(ErrorKind::Usage, text));
    }
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
