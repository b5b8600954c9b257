//! Decisions of a reflector, without I/O: the end of an attempt, its pause and its position.

mod attempt_end;
mod backoff;
mod position;

pub(super) use attempt_end::{AttemptEnd, During, EXPIRED, judge};
pub(super) use backoff::Backoff;
pub(super) use position::Position;
