//! The numbers of a client's transport: protocols, pings, ages, sizes and waits.
//!
//! They are one value, so that a test can make hours short and an environment can speak as it does to
//! kubectl. Not here: retries and their waits (`retry`), and what one request overrides.

use std::time::Duration;

/// HTTP/2 pings, as client-go sends them: after 30 s without a frame, then 15 s for the answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// The head of an answer to a read must come within this time, or another connection is tried.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for lists, which the server may have to collect first.
const LIST_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer that is read as a whole, decoded.
const ANSWER_LIMIT: usize = 64 << 20;

/// How a client uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Offer HTTP/2 in the TLS handshake?
    pub(crate) http2: bool,
    /// Silence on an HTTP/2 connection after which it is pinged; `None` is never.
    pub(crate) ping_interval: Option<Duration>,
    /// Time for the answer to a ping.
    pub(crate) ping_timeout: Duration,
    /// Age at which a connection gets no more requests; each one's own is up to a fifth shorter.
    pub(crate) max_age: Option<Duration>,
    /// Time for the head of an answer to a get or a watch.
    pub(crate) head: Duration,
    /// Time for the head of an answer to a list.
    pub(crate) list_head: Duration,
    /// Bytes of an answer that is read as a whole.
    pub(crate) answer_limit: usize,
    /// Ask for gzip where it helps?
    pub(crate) gzip: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            http2: true,
            ping_interval: Some(PING_INTERVAL),
            ping_timeout: PING_TIMEOUT,
            max_age: None,
            head: HEAD_TIMEOUT,
            list_head: LIST_HEAD_TIMEOUT,
            answer_limit: ANSWER_LIMIT,
            gzip: true,
        }
    }
}

impl Tuning {
    /// The defaults, and what the variables that client-go reads say: `DISABLE_HTTP2` (any text),
    /// `HTTP2_READ_IDLE_TIMEOUT_SECONDS` (0 is no pings) and `HTTP2_PING_TIMEOUT_SECONDS`. A number
    /// that is none is warned about and ignored, as it is there.
    pub(crate) fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str| {
            let text = variable(name).filter(|text| !text.is_empty())?;
            let parsed = text.parse().map(Duration::from_secs);
            parsed
                .inspect_err(|_| tracing::warn!("{name}={text:?} is no number of seconds: ignored"))
                .ok()
        };
        let http2 = variable("DISABLE_HTTP2").is_none_or(|text| text.is_empty());
        let mut tuning = Self { http2, ..Self::default() };
        if let Some(interval) = seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS") {
            tuning.ping_interval = Some(interval).filter(|interval| !interval.is_zero());
        }
        if let Some(timeout) = seconds("HTTP2_PING_TIMEOUT_SECONDS").filter(|t| !t.is_zero()) {
            tuning.ping_timeout = timeout;
        }
        tuning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Tuning {
        Tuning::from_env(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_environment_changes_nothing() {
        assert_eq!(with(&[]), Tuning::default());
        assert_eq!(with(&[("DISABLE_HTTP2", "")]), Tuning::default());
    }

    #[test]
    fn the_variables_of_client_go_are_obeyed() {
        assert!(!with(&[("DISABLE_HTTP2", "true")]).http2);
        let tuning =
            with(&[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "7"), ("HTTP2_PING_TIMEOUT_SECONDS", "3")]);
        assert_eq!(tuning.ping_interval, Some(Duration::from_secs(7)));
        assert_eq!(tuning.ping_timeout, Duration::from_secs(3));
        assert_eq!(with(&[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "0")]).ping_interval, None);
    }

    #[test]
    fn a_variable_that_is_no_number_is_ignored() {
        let tuning = with(&[
            ("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "-7"),
            ("HTTP2_PING_TIMEOUT_SECONDS", "soon"),
        ]);
        assert_eq!(tuning, Tuning::default());
    }
}
