//! The end of a session, and the messages that report it.

use std::fmt;
use std::io;
use std::sync::Arc;

use windlass_core::error::{ApiStatus, Error, ErrorKind};

/// Exit status of a command.
///
/// The value is the report of the API server. A kube-apiserver that speaks SPDY to the kubelet may
/// report a success, seldom, when the kubelet is lost: the server takes an error stream that ends
/// without a text for a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExitStatus {
    code: i32,
}

impl ExitStatus {
    pub(super) const SUCCESS: Self = Self { code: 0 };

    /// The exit code; 0 is success. A command that a signal ended has 128 plus the signal's number,
    /// by the convention of most container runtimes.
    pub fn code(self) -> i32 {
        self.code
    }

    /// Whether the code is 0.
    pub fn success(self) -> bool {
        self.code == 0
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.code)
    }
}

/// The end of a session.
#[derive(Clone, Debug)]
pub(super) enum SessionEnd {
    /// The command ended.
    Exit(ExitStatus),
    /// The server's reason for the missing exit code.
    Failed(Box<ApiStatus>),
    /// The other end closed a forwarded port.
    Closed,
    /// Anything else.
    Broken { why: String, source: Option<Arc<dyn std::error::Error + Send + Sync>> },
}

impl SessionEnd {
    /// The end of a session that broke, without a cause.
    pub(super) fn broken(why: impl Into<String>) -> Self {
        Self::Broken { why: why.into(), source: None }
    }

    /// The end of a session that broke, with the cause.
    pub(super) fn because(
        why: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Broken { why: why.into(), source: Some(Arc::new(source)) }
    }

    /// The result for a reader at the end of its stream: the end, or the reason for the missing
    /// end.
    pub(super) fn at_end_of_stream(&self) -> io::Result<()> {
        match self {
            Self::Exit(_) | Self::Closed => Ok(()),
            Self::Failed(status) => Err(io::Error::other(status.message.clone())),
            Self::Broken { .. } => Err(self.broken_pipe(io::ErrorKind::UnexpectedEof)),
        }
    }

    /// The error for a writer.
    pub(super) fn broken_pipe(&self, kind: io::ErrorKind) -> io::Error {
        match self {
            Self::Exit(status) => {
                io::Error::new(kind, format!("the command has ended with {status}"))
            }
            Self::Closed => io::Error::new(kind, "the other end has closed the connection"),
            Self::Failed(status) => io::Error::new(kind, status.message.clone()),
            Self::Broken { why, source: None } => io::Error::new(kind, why.clone()),
            Self::Broken { why, source: Some(source) } => {
                let source = Arc::clone(source);
                io::Error::new(kind, Error::new(ErrorKind::Transport, why).because(source))
            }
        }
    }
}

/// Reads the exit status from the `Status` that ends a session; `None` while the status is
/// incomplete.
///
/// A command that ended with another code than 0 is a `Failure` with the reason `NonZeroExitCode`
/// and the code as a cause.
pub(super) fn of_status(json: &[u8]) -> Option<SessionEnd> {
    let status: ApiStatus = match serde_json::from_slice(json) {
        Ok(status) => status,
        // The Status may come in several messages.
        Err(error) if error.is_eof() => return None,
        Err(error) => {
            return Some(SessionEnd::because("the server's final message is not a Status", error));
        }
    };
    match (status.status.as_str(), status.reason.as_str()) {
        ("Success", _) => Some(SessionEnd::Exit(ExitStatus::SUCCESS)),
        ("Failure", "NonZeroExitCode") => {
            let causes = status.details.as_ref().map(|details| &details.causes);
            let cause = causes.into_iter().flatten().find(|cause| cause.reason == "ExitCode");
            match cause.and_then(|cause| cause.message.parse().ok()) {
                Some(code) => Some(SessionEnd::Exit(ExitStatus { code })),
                None => {
                    Some(SessionEnd::broken("the command failed, and the server does not say how"))
                }
            }
        }
        ("Failure", _) => Some(SessionEnd::Failed(Box::new(status))),
        _ => Some(SessionEnd::broken("the server's final message is neither Success nor Failure")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(json: &str) -> Option<i32> {
        match of_status(json.as_bytes()) {
            Some(SessionEnd::Exit(status)) => Some(status.code()),
            _ => None,
        }
    }

    #[test]
    fn the_exit_code_is_the_cause_of_a_failure() {
        assert_eq!(code(r#"{"metadata":{},"status":"Success"}"#), Some(0));
        let failure = r#"{"metadata":{},"status":"Failure","message":"m","reason":"NonZeroExitCode",
            "details":{"causes":[{"reason":"Other","message":"1"},{"reason":"ExitCode","message":"42"}]}}"#;
        assert_eq!(code(failure), Some(42));
    }

    #[test]
    fn a_failure_without_an_exit_code_is_the_servers_error() {
        let failed = of_status(br#"{"status":"Failure","message":"no such file","code":500}"#);
        assert!(
            matches!(failed, Some(SessionEnd::Failed(status)) if status.message == "no such file")
        );
    }

    #[test]
    fn half_a_status_is_no_status_and_nonsense_is_an_error() {
        assert!(of_status(br#"{"status":"Succ"#).is_none());
        let nonsense = [
            "pod not found",
            "{}",
            r#"{"status":"Failure","reason":"NonZeroExitCode"}"#,
            r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}"#,
        ];
        for text in nonsense {
            assert!(
                matches!(of_status(text.as_bytes()), Some(SessionEnd::Broken { .. })),
                "{text}"
            );
        }
    }
}
