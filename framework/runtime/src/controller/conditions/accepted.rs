//! Reasons and messages in a form that the API server accepts: a refused one would have the whole
//! status refused.

use windlass_core::conditions::Condition;
use windlass_core::text::shorten;

/// Reason in place of one that the API server refuses.
const INVALID_REASON: &str = "InvalidReason";
/// Longest reason that the API server accepts.
const REASON_LIMIT: usize = 1024;
/// Longest message that the API server accepts. It counts characters; bytes are never fewer.
pub(super) const MESSAGE_LIMIT: usize = 32_768;

/// Returns the condition with a reason and a message that the API server accepts, and the reason if
/// it was refused: that one stands in the message.
pub(in crate::controller) fn accepted(mut condition: Condition) -> (Condition, Option<String>) {
    let mut refused = None;
    if !is_valid(&condition.reason) {
        let reason = std::mem::replace(&mut condition.reason, INVALID_REASON.to_owned());
        let text = std::mem::take(&mut condition.message);
        condition.message = match (reason.is_empty(), text.is_empty()) {
            (true, _) => text,
            (false, true) => reason.clone(),
            (false, false) => format!("{reason}: {text}"),
        };
        refused = Some(reason);
    }
    condition.message = shorten(condition.message, MESSAGE_LIMIT);
    (condition, refused)
}

/// Whether the API server accepts the reason. Those of waits and of declared conditions come from
/// users.
pub(super) fn is_valid(reason: &str) -> bool {
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.len() <= REASON_LIMIT
        && reason.chars().all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c))
}
