//! Sources of reconciles: changes in caches, triggers, polls, timers, resyncs; and the path from a
//! source to the queue: predicates, reasons, pauses, debounce.

mod appearance;
pub(super) mod background;
mod debounce;
mod enqueue;
mod paused;
mod polls;
pub mod predicates;
mod reads;
mod reasons;
mod resync;
mod timers;
mod trigger_names;
mod triggers;
pub(super) mod watches;

pub(super) use self::appearance::Appearance;
pub(super) use self::background::{BackgroundRun, BackgroundSource};
pub(super) use self::debounce::DebounceDecision;
pub(super) use self::enqueue::{Enqueuer, RunGuard};
pub use self::paused::PAUSED;
pub use self::polls::{Poll, PollHandle};
pub use self::predicates::Predicate;
pub(super) use self::reads::{ReadSource, Reads};
pub use self::reasons::Reasons;
pub(super) use self::reasons::{Reason, ReasonNames};
pub(super) use self::resync::{Allowed, RESYNC_PERIOD, Resync};
pub use self::timers::Timer;
pub(super) use self::timers::TimerSource;
pub(super) use self::trigger_names::TriggerNames;
pub use self::triggers::Trigger;
pub(super) use self::watches::{Attach, Source};
