//! Conversion of the body of an error answer into a Status, also for bodies of proxies.
//!
//! API servers answer errors with `kind: Status`; proxies and load balancers in front of them
//! answer with HTML, plain text or nothing. Callers decide by reason and code, so both become a
//! Status.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::error::{ApiStatus, StatusDetails};

/// Longest text of a foreign error body that an error keeps, in bytes.
pub(crate) const TEXT_LIMIT: usize = 2 * 1024;

/// The kind of a body, read before the rest.
#[derive(Deserialize)]
struct BodyKind<'a> {
    /// `None` when the body has none.
    #[serde(borrow, default)]
    kind: Option<std::borrow::Cow<'a, str>>,
}

/// Returns the Status of an answer: the server's own, or a Status made from the HTTP status and the
/// body's text.
#[doc(hidden)]
pub fn of_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> ApiStatus {
    let mut status = own(body).unwrap_or_else(|| foreign(code, body));
    if status.code == 0 {
        status.code = code.as_u16();
    }
    // The header wins over the seconds in the body.
    if let Some(wait) = retry_after(headers) {
        let details = status.details.get_or_insert_with(StatusDetails::default);
        details.retry_after_seconds = wait.as_secs();
    }
    status
}

/// Returns the failure in the body of a successful answer, if there is any: aggregated API servers
/// and proxies have been seen to answer 200 with a failure.
#[doc(hidden)]
pub fn failure_in(body: &[u8]) -> Option<ApiStatus> {
    // A Status is small and has the kind first; objects are not searched.
    let beginning = &body[..body.len().min(64)];
    memchr::memmem::find(beginning, b"\"Status\"")?;
    own(body).filter(|status| status.status == "Failure").map(|mut status| {
        if status.code == 0 {
            status.code = 500;
        }
        status
    })
}

/// Returns the API server's own Status, if `body` is one.
fn own(body: &[u8]) -> Option<ApiStatus> {
    let kind = serde_json::from_slice::<BodyKind<'_>>(body).ok()?.kind?;
    if kind != "Status" {
        return None;
    }
    serde_json::from_slice(body).ok()
}

/// Makes a Status from an answer of another server than an API server.
fn foreign(code: StatusCode, body: &[u8]) -> ApiStatus {
    let text = excerpt(body);
    let message = if text.is_empty() {
        format!(
            "the answer was HTTP {} without a text",
            code.canonical_reason().unwrap_or_else(|| code.as_str())
        )
    } else {
        text
    };
    ApiStatus {
        status: "Failure".into(),
        message,
        reason: reason_of(code).into(),
        code: code.as_u16(),
        ..ApiStatus::default()
    }
}

/// Returns the reason that Kubernetes uses for a bare HTTP code.
fn reason_of(code: StatusCode) -> &'static str {
    match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

/// Returns at most [`TEXT_LIMIT`] bytes of `body` as a line of printable text.
#[doc(hidden)]
pub fn excerpt(body: &[u8]) -> String {
    let cut = &body[..body.len().min(TEXT_LIMIT)];
    let text = String::from_utf8_lossy(cut);
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    // Replacement characters are longer than the bytes that they stand for.
    if line.len() > TEXT_LIMIT {
        let end = (0..=TEXT_LIMIT).rev().find(|&i| line.is_char_boundary(i)).unwrap_or(0);
        line.truncate(end);
    }
    if body.len() > TEXT_LIMIT {
        line.push('…');
    }
    line
}

/// Returns the header `Retry-After` in seconds; dates are ignored, as in client-go.
#[doc(hidden)]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn answer(code: u16, body: &[u8]) -> ApiStatus {
        of_answer(StatusCode::from_u16(code).unwrap(), &HeaderMap::new(), body)
    }

    #[test]
    fn the_servers_own_status_wins_over_the_http_code() {
        let status = answer(
            409,
            br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m",
                "reason":"AlreadyExists","details":{"name":"home","kind":"websites"},"code":409}"#,
        );
        assert_eq!((status.reason.as_str(), status.code), ("AlreadyExists", 409));
        assert_eq!(status.details.unwrap().name, "home");
    }

    #[test]
    fn a_proxys_html_becomes_a_status_by_its_http_code() {
        let status = answer(503, b"<html>\n <body>no\tbackend</body>\n</html>");
        assert_eq!((status.reason.as_str(), status.code), ("ServiceUnavailable", 503));
        assert_eq!(status.message, "<html> <body>no backend</body> </html>");
    }

    #[test]
    fn an_empty_body_and_json_of_another_kind_do_not_panic() {
        assert_eq!(answer(404, b"").reason, "NotFound");
        assert_eq!(answer(404, br#"{"kind":"Pod"}"#).reason, "NotFound");
        assert_eq!(answer(404, br#"{"kind":"Status","code":"x"}"#).code, 404);
        assert_eq!(answer(599, b"\xff\xfe").code, 599);
    }

    #[test]
    fn foreign_text_is_cut_to_two_kibibytes() {
        let status = answer(502, &[0xff; 100_000]);
        assert!(status.message.len() <= TEXT_LIMIT + '…'.len_utf8(), "{}", status.message.len());
    }

    #[test]
    fn retry_after_is_read_from_the_header_and_dates_are_ignored() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(" 7 "));
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        let status = of_answer(StatusCode::TOO_MANY_REQUESTS, &headers, b"slow down");
        assert_eq!(status.details.unwrap().retry_after_seconds, 7);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"));
        assert_eq!(retry_after(&headers), None);
    }
}
