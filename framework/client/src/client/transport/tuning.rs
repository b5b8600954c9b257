//! Settings of a client's transport: protocols, pings, ages, sizes and time limits.
//!
//! The settings are a single value, so that a test can shorten hours and the variables of kubectl
//! can override them. Not included: retries and their waits (`retry`), and overrides of a single
//! request.

use std::time::Duration;

/// Silence before an HTTP/2 ping, and time for the answer; client-go's values.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for the head of an answer to a read; then another connection is tried.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// As `HEAD_TIMEOUT` for lists, which the server may have to collect first.
const LIST_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer that is read as a whole, decoded.
const RESPONSE_LIMIT: usize = 64 << 20;

/// Settings of a client's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Whether to offer HTTP/2 in the TLS handshake.
    pub(crate) http2: bool,
    /// Silence on an HTTP/2 connection after which the connection is pinged; `None` disables pings.
    pub(crate) ping_interval: Option<Duration>,
    /// Time for the answer to a ping.
    pub(crate) ping_timeout: Duration,
    /// Age at which a connection gets no more requests; each connection's own limit is up to a
    /// fifth shorter.
    pub(crate) max_age: Option<Duration>,
    /// Time for the head of an answer to a get or a watch.
    pub(crate) head: Duration,
    /// Time for the head of an answer to a list.
    pub(crate) list_head: Duration,
    /// Largest answer that is read as a whole, in bytes.
    pub(crate) response_limit: usize,
    /// Whether to request gzip where compression helps.
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
            response_limit: RESPONSE_LIMIT,
            gzip: true,
        }
    }
}

impl Tuning {
    /// Returns the defaults, overridden by the variables of client-go: `DISABLE_HTTP2` (any text),
    /// `HTTP2_READ_IDLE_TIMEOUT_SECONDS` (0 disables pings) and `HTTP2_PING_TIMEOUT_SECONDS`. A
    /// value that is no number is logged and ignored, as in client-go.
    pub(crate) fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str| {
            let text = variable(name).filter(|text| !text.is_empty())?;
            let parsed = text.parse().map(Duration::from_secs);
            parsed
                .inspect_err(|_| {
                    tracing::warn!("{name}={text:?} is not a number of seconds: ignored")
                })
                .ok()
        };
        let http2 = variable("DISABLE_HTTP2").is_none_or(|text| text.is_empty());
        let mut tuning = Self { http2, ..Self::default() };
        if let Some(interval) = seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS") {
            tuning.ping_interval = Some(interval).filter(|interval| !interval.is_zero());
        }
        // Zero would close every connection at the first ping.
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
