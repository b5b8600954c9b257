//! The pause before another connection, and the errors after which there is one.

use std::time::Duration;

use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};

/// Bounds of the pause between two connections, which doubles while nothing comes.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The pause after that many failures in a row; `asked` is the wait that the server requested.
pub(super) fn pause(environment: &Environment, failures: u32, asked: Option<Duration>) -> Duration {
    let pause = SHORTEST_PAUSE.saturating_mul(1 << failures.min(5)).min(LONGEST_PAUSE);
    // Jitter: watches that lost the same server do not come back at once.
    let pause = pause / 2 + environment.rng.jitter(pause / 2);
    pause.max(asked.unwrap_or_default().min(LONGEST_PAUSE))
}

/// Whether the error may pass, so that another attempt makes sense.
pub(in crate::api) fn passes(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::TooManyRequests
        | ErrorKind::Timeout
        | ErrorKind::Connect
        | ErrorKind::Transport => true,
        ErrorKind::Server => !error.is_method_not_supported(),
        _ => false,
    }
}
