//! Ends of a reflector's attempt, which determine the next step.

use std::time::Duration;

use windlass_client::client::Verb;
use windlass_core::error::{Error, ErrorKind};

/// The end of an attempt; never fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// The stream ended in order: go on at once.
    Ended,
    /// The server's versions went backwards: list again at once.
    NewEpoch,
    /// A list that left out unreadable items is old enough: list again at once.
    RelistDue,
    /// The server does not support streaming lists: list in pages, at once.
    Unsupported(String),
    /// Go on from the same version after a pause.
    Failed(String),
    /// As `Failed`, but reported by the server: 500.
    Internal(String),
    /// The version cannot be used any more: list again, after a pause unless a list named the
    /// version, or the version of a watch has expired.
    Stale { cause: &'static str, why: String },
    /// The server asks to slow down.
    Throttled { after: Option<Duration>, why: String },
    /// 401 or 403; the missing verb, if a right for a verb is missing.
    Refused { verb: Option<Verb>, why: String },
    /// 404: the kind is not served.
    Absent(String),
    /// 404, but the cached objects are not given up yet: ask again soon.
    Unconfirmed(String),
    /// A panic of the source or of windlass, with the text.
    Panicked(String),
}

impl AttemptEnd {
    /// Returns whether the server may have been away, and return with another store.
    pub(in crate::reflector) fn lost_the_server(&self) -> bool {
        matches!(
            self,
            Self::Failed(_)
                | Self::Internal(_)
                | Self::Throttled { .. }
                | Self::Refused { .. }
                | Self::Unconfirmed(_)
        )
    }
}

/// The request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedRequest {
    Page,
    StreamingList,
    Watch,
}

impl EndedRequest {
    /// Returns the verb that a role must grant.
    fn verb(self) -> Verb {
        match self {
            Self::Page => Verb::List,
            Self::StreamingList | Self::Watch => Verb::Watch,
        }
    }
}

/// Cause of a list: the version has become too old.
pub(in crate::reflector) const EXPIRED: &str = "expired";

/// Reason of a watch error when an object that the server cannot read was deleted without being
/// read: no event names the object.
const STORAGE_READ_ERROR: &str = "StorageReadError";

/// Classifies an error answer or an ERROR frame.
pub(crate) fn judge(error: &Error, during: EndedRequest) -> AttemptEnd {
    let why = explain(error);
    if is_too_large(error) {
        return AttemptEnd::Stale { cause: "too_large", why };
    }
    match error.kind() {
        ErrorKind::Expired => AttemptEnd::Stale { cause: EXPIRED, why },
        ErrorKind::NotFound => AttemptEnd::Absent(why),
        ErrorKind::Forbidden => AttemptEnd::Refused { verb: Some(during.verb()), why },
        ErrorKind::Unauthorized => AttemptEnd::Refused { verb: None, why },
        ErrorKind::TooManyRequests => AttemptEnd::Throttled { after: error.retry_after(), why },
        ErrorKind::Connect
        | ErrorKind::Transport
        | ErrorKind::Timeout
        | ErrorKind::Ambiguous
        | ErrorKind::Config
        | ErrorKind::Cancelled => AttemptEnd::Failed(why),
        ErrorKind::Server
            if error.reason() == STORAGE_READ_ERROR && during == EndedRequest::Watch =>
        {
            AttemptEnd::Stale { cause: "storage_read_error", why }
        }
        ErrorKind::Server if error.is_internal() => AttemptEnd::Internal(why),
        ErrorKind::Server if is_transient(error) => AttemptEnd::Failed(why),
        _ => match during {
            EndedRequest::StreamingList => AttemptEnd::Unsupported(why),
            EndedRequest::Watch => AttemptEnd::Stale { cause: "refused", why },
            EndedRequest::Page => AttemptEnd::Failed(why),
        },
    }
}

/// Returns whether an error is transient: 5xx except 501, and 408.
fn is_transient(error: &Error) -> bool {
    matches!(error.code(), Some(408 | 500 | 502..=599))
}

/// Returns whether the requested version has not been reached by this server. Older servers report
/// this fact only in the text.
fn is_too_large(error: &Error) -> bool {
    error.status().is_some_and(|status| {
        status.message.contains("oo large resource version")
            || status.details.as_ref().is_some_and(|details| {
                details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            })
    })
}

/// Returns the error's text with the cause.
fn explain(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::error::{ApiStatus, StatusCause, StatusDetails};

    fn answer(code: u16, reason: &str, message: &str) -> Error {
        Error::from_status(
            "watch pods",
            ApiStatus {
                code,
                reason: reason.to_owned(),
                message: message.to_owned(),
                ..ApiStatus::default()
            },
        )
    }

    /// No answer is fatal; each has a separate next step (B3: an ERROR frame of another code; A15:
    /// 401 or 403).
    #[test]
    fn every_error_answer_has_a_next_step() {
        let stale = |cause| move |next: &AttemptEnd| matches!(next, AttemptEnd::Stale { cause: c, .. } if *c == cause);
        assert!(stale("expired")(&judge(&answer(410, "Expired", ""), EndedRequest::Watch)));
        assert!(stale("expired")(&judge(&answer(410, "Gone", ""), EndedRequest::Page)));
        assert!(matches!(
            judge(&answer(404, "NotFound", ""), EndedRequest::Watch),
            AttemptEnd::Absent(_)
        ));
        assert!(matches!(
            judge(&answer(403, "Forbidden", ""), EndedRequest::Page),
            AttemptEnd::Refused { verb: Some(Verb::List), .. }
        ));
        assert!(matches!(
            judge(&answer(401, "", ""), EndedRequest::Watch),
            AttemptEnd::Refused { verb: None, .. }
        ));
        assert!(matches!(
            judge(&answer(429, "", ""), EndedRequest::Watch),
            AttemptEnd::Throttled { .. }
        ));
        assert!(matches!(
            judge(&answer(500, "", ""), EndedRequest::Watch),
            AttemptEnd::Internal(_)
        ));
        let unsafe_delete = answer(500, "StorageReadError", "");
        assert!(stale("storage_read_error")(&judge(&unsafe_delete, EndedRequest::Watch)));
        assert!(matches!(judge(&unsafe_delete, EndedRequest::Page), AttemptEnd::Internal(_)));
        for code in [502, 503, 504] {
            assert!(matches!(
                judge(&answer(code, "", ""), EndedRequest::Watch),
                AttemptEnd::Failed(_)
            ));
        }
        assert!(stale("refused")(&judge(&answer(400, "BadRequest", ""), EndedRequest::Watch)));
        for code in [400, 422, 405] {
            let next = judge(&answer(code, "", ""), EndedRequest::StreamingList);
            assert!(matches!(next, AttemptEnd::Unsupported(_)), "{code}: {next:?}");
        }
    }

    #[test]
    fn a_version_that_is_too_large_is_told_in_three_spellings() {
        let by_cause = Error::from_status(
            "watch pods",
            ApiStatus {
                code: 504,
                details: Some(StatusDetails {
                    causes: vec![StatusCause {
                        reason: "ResourceVersionTooLarge".to_owned(),
                        ..StatusCause::default()
                    }],
                    ..StatusDetails::default()
                }),
                ..ApiStatus::default()
            },
        );
        for error in [
            by_cause,
            answer(504, "Timeout", "Timeout: Too large resource version: 9, current: 4"),
            answer(500, "", "too large resource version"),
        ] {
            let next = judge(&error, EndedRequest::Watch);
            assert!(matches!(next, AttemptEnd::Stale { cause: "too_large", .. }), "{next:?}");
        }
    }
}
