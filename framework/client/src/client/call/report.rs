//! Error texts of a call: the request, the outcome, and the outcomes of earlier attempts.

use std::error::Error as StdError;
use std::fmt;

use super::Call;
use super::attempt::AttemptError;
use super::trace::content_type;
use crate::client::policy::{AttemptOutcome, MAX_RETRY_AFTER, NoRetryReason, is_uncertain};
use windlass_core::error::{ApiStatus, BoxError, Error, ErrorKind, UncertainWrite};
use windlass_core::resource::Verb;

impl Call<'_> {
    /// Returns the error for the caller.
    pub(in crate::client) fn error(
        &self,
        failure: AttemptError,
        why: Option<NoRetryReason>,
    ) -> Error {
        let what = &self.request.what;
        let writes = self.request.verb.writes();
        let out_of_time =
            matches!(&failure, AttemptError::Broken { outcome: AttemptOutcome::TimedOut, .. });
        let error = match failure {
            AttemptError::Final(error) => return self.in_doubt(error),
            AttemptError::Status { status, code, retry_after, .. } => {
                let outcome = AttemptOutcome::Answered { code, retry_after };
                let error = Error::from_status(what, *status).with_retry_after(retry_after);
                let error = match error.kind() {
                    ErrorKind::Unauthorized => error.note(&self.shared.credentials.advice()),
                    _ => error,
                };
                // A 500 normally leaves a write in doubt, but this Status precedes any execution.
                if self.request.verb == Verb::Apply && is_untyped(&error) && !self.doubt {
                    error.note("nothing was executed: correct the intent")
                } else if writes && is_uncertain(outcome) {
                    error.with_kind(ErrorKind::Ambiguous).note("it may have been executed")
                } else if self.doubt {
                    // A refusal may be a consequence of an earlier attempt that was executed.
                    error.with_kind(ErrorKind::Ambiguous)
                } else {
                    error
                }
            }
            AttemptError::Broken { outcome, source } => self.broken(outcome, source),
        };
        let error = match why {
            Some(NoRetryReason::WaitTooLong(wait)) => {
                let seconds = wait.as_secs();
                let than = match wait > MAX_RETRY_AFTER {
                    true => format!("the {} s that are obeyed", MAX_RETRY_AFTER.as_secs()),
                    false => format!("the {} s that are left", self.remaining().as_secs()),
                };
                error.note(&format!(
                    "the server asks to wait {seconds} s, which is more than {than}"
                ))
            }
            Some(NoRetryReason::BodyGone) => {
                error.note("not tried again, because its body is read from a reader, once")
            }
            _ => error,
        };
        // At the deadline the server's last answer explains more than the timeout.
        let error = match self.history.last() {
            Some(before) if out_of_time => error.note(&format!("before: {before}")),
            _ => error,
        };
        let error =
            if self.doubt { error.note("an earlier attempt may have worked") } else { error };
        match self.attempt {
            1 => error,
            attempts => error.note(&format!("tried {attempts} times")),
        }
    }

    /// Turns an error that ends a call into `Ambiguous` if an earlier attempt may have been
    /// executed.
    pub(in crate::client) fn in_doubt(&self, error: Error) -> Error {
        if !self.doubt {
            return error;
        }
        let text = format!("cannot {}: an earlier attempt may have worked", self.request.what);
        Error::new(ErrorKind::Ambiguous, text).because(error)
    }

    /// Adds the outcomes of earlier attempts, and to an ambiguous error the request that was sent
    /// and the target.
    pub(in crate::client) fn complete(&self, error: Error) -> Error {
        let error = with_history(error, &self.history);
        if error.kind() != ErrorKind::Ambiguous {
            return error;
        }
        error.with_uncertain_write(UncertainWrite {
            method: self.request.method.clone(),
            host: self.shared.host.clone(),
            path: self.request.path.clone(),
            query: self.uri.query().unwrap_or_default().to_owned(),
            content_type: content_type(&self.request.headers).to_owned(),
            body: self.request.body.clone(),
        })
    }

    /// Returns the error of an attempt without an answer.
    fn broken(&self, outcome: AttemptOutcome, source: Option<BoxError>) -> Error {
        let (what, host) = (&self.request.what, &self.shared.host);
        let writes = self.request.verb.writes();
        let (kind, text) = match outcome {
            AttemptOutcome::NotSent if !self.doubt => {
                (ErrorKind::Connect, format!("no connection to {host}{}", self.shared.via))
            }
            AttemptOutcome::TimedOut if !writes => {
                (ErrorKind::Timeout, format!("{host} did not answer in time"))
            }
            AttemptOutcome::TimedOut => (
                ErrorKind::Ambiguous,
                format!("{host} did not answer in time; it may have been executed"),
            ),
            _ if writes => (
                ErrorKind::Ambiguous,
                format!("the connection to {host} broke; it may have been executed"),
            ),
            _ => (ErrorKind::Transport, format!("the connection to {host} broke")),
        };
        let mut text = format!("cannot {what}: {text}");
        if let Some(source) = &source {
            // One-line logs show no causes, so the text contains the innermost cause.
            if let Some(root) = root(&**source) {
                text = format!("{text}: {root}");
            }
        }
        let error = Error::new(kind, text);
        match source {
            Some(source) => error.because(source),
            None => error,
        }
    }
}

/// Returns whether the API server refused an intent that does not fit the kind's schema. The server
/// answers 500, long before anything is stored.
fn is_untyped(error: &Error) -> bool {
    let says =
        |status: &ApiStatus| status.message.starts_with("failed to create typed patch object");
    error.code() == Some(500) && error.status().is_some_and(says)
}

/// Describes the failure of an attempt, for the history of a call.
pub(in crate::client) fn describe(failure: &AttemptError) -> String {
    match failure {
        AttemptError::Status { status, code, .. } => {
            format!("{code} {}: {}", status.reason, status.message)
        }
        AttemptError::Broken { outcome, source } => {
            let text = match outcome {
                AttemptOutcome::NotSent => "no connection",
                AttemptOutcome::TimedOut => "no answer in time",
                AttemptOutcome::Lost | AttemptOutcome::Answered { .. } => "the connection broke",
            };
            match source.as_ref().and_then(|source| root(&**source)) {
                Some(root) => format!("{text}: {root}"),
                None => text.to_owned(),
            }
        }
        AttemptError::Final(error) => error.to_string(),
    }
}

/// Returns the text of the innermost cause.
fn root(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut source = error.source()?;
    while let Some(next) = source.source() {
        source = next;
    }
    Some(source.to_string())
}

/// Link of a chain of causes that consist of their texts.
#[derive(Debug)]
struct Link {
    text: String,
    next: Option<Box<Link>>,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Link {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.next.as_deref().map(|next| next as _)
    }
}

/// Appends earlier attempts to the causes of the last, the latest first; equal attempts share a
/// link.
fn with_history(error: Error, history: &[String]) -> Error {
    if history.is_empty() {
        return error;
    }
    let mut chain = None;
    let mut number = 1;
    // Equal failures in a row become a single line.
    for same in history.chunk_by(|a, b| a == b) {
        let last = number + same.len() - 1;
        let text = match same.len() {
            1 => format!("attempt {number}: {}", same[0]),
            _ => format!("attempts {number} to {last}: {}", same[0]),
        };
        chain = Some(Box::new(Link { text, next: chain }));
        number = last + 1;
    }
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(source) = cause {
        causes.push(source.to_string());
        cause = source.source();
    }
    for text in causes.into_iter().rev() {
        chain = Some(Box::new(Link { text, next: chain }));
    }
    match chain {
        Some(chain) => error.because(*chain),
        None => error,
    }
}
