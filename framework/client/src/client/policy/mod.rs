//! Rules that decide about a call, without I/O: retries, backoff, rate limits, the write gate, the
//! headers that may be sent.

pub(in crate::client) mod backoff;
mod gate;
mod header_rules;
mod in_flight;
mod limit;
mod retry;

pub use backoff::{Backoff, BackoffFactory, BackoffManager, NoBackoff, UrlBackoff};
pub use gate::WriteGate;
pub(in crate::client) use header_rules::{HeaderRules, IMPERSONATION_RULE, is_sent_whole};
pub use in_flight::InFlightWrites;
pub use in_flight::WritePermit;
pub(in crate::client) use limit::ThrottledLog;
pub use limit::{AlwaysAllow, NeverAllow, Permit, RequestLimiter, TokenBucket};
pub(crate) use retry::{
    AttemptOutcome, Budgets, MAX_RETRIES, MAX_RETRY_AFTER, NoRetryReason, RetryDecision,
    RetryInput, decide, is_uncertain,
};
