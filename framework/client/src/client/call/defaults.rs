//! Defaults of calls: media types, timeout, rate limit, backoff, warnings.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::client::policy::{BackoffFactory, RequestLimiter};
use crate::client::request::WarningHandler;

/// Settings of calls that name none of their own.
pub(in crate::client) struct Defaults {
    /// Total time of a call, with all retries.
    pub(in crate::client) timeout: Duration,
    /// Timeout that the builder was given, if any; sent to servers as well.
    pub(in crate::client) asked_timeout: Option<Duration>,
    /// Header `Accept`, if sent.
    pub(in crate::client) accept: Option<HeaderValue>,
    /// Media type of bodies that name none.
    pub(in crate::client) content_type: String,
    /// Rate limiter that all handles share; `None` without a limit.
    pub(in crate::client) limiter: Option<Arc<dyn RequestLimiter>>,
    /// Factory of backoff managers; `None` without backoff.
    pub(in crate::client) backoff: Option<BackoffFactory>,
    pub(in crate::client) warnings: Arc<dyn WarningHandler>,
    /// Bytes of a body that are shown at TRACE level.
    pub(in crate::client) shown: usize,
}
