//! One turn of a key: which attempt, and who calls it off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// One turn of a key.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Number of the attempt: 0 unless the last one failed.
    pub(super) attempt: u32,
    /// Why, as the queue keeps it.
    pub(super) reasons: u64,
    /// Cancelled when the controller stops, and when the turn ended.
    pub(super) cancel: Cancel,
}

/// A cancellation whose token is made by the first who asks for it, because few reconciles do.
#[derive(Clone, Debug)]
pub(super) struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Its cancellation is this one's, too.
    parent: Arc<CancellationToken>,
    token: OnceLock<CancellationToken>,
    is_ended: AtomicBool,
}

impl Cancel {
    pub(super) fn new(parent: &Arc<CancellationToken>) -> Self {
        let (parent, token) = (Arc::clone(parent), OnceLock::new());
        Self { shared: Arc::new(Shared { parent, token, is_ended: AtomicBool::new(false) }) }
    }

    /// The token; already cancelled when the turn has ended.
    pub(super) fn token(&self) -> &CancellationToken {
        let token = self.shared.token.get_or_init(|| self.shared.parent.child_token());
        // Whoever ends the turn sets the mark and looks for a token; here it is the other way
        // round, so one of the two sees the other.
        if self.shared.is_ended.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }

    /// Ends the turn when it is dropped: whoever still holds the token learns that nobody waits.
    pub(super) fn at_end(&self) -> Ending {
        Ending { shared: Arc::clone(&self.shared) }
    }
}

/// Ends a turn when it is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    shared: Arc<Shared>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::SeqCst);
        if let Some(token) = self.shared.token.get() {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_cancelled_by_the_end_of_the_turn_and_by_the_parent() {
        let parent = Arc::new(CancellationToken::new());
        let (ended, stopped) = (Cancel::new(&parent), Cancel::new(&parent));
        let end = ended.at_end();
        assert!(!ended.token().is_cancelled() && !stopped.token().is_cancelled());
        drop(end);
        assert!(ended.token().is_cancelled() && !stopped.token().is_cancelled());
        parent.cancel();
        assert!(stopped.token().is_cancelled());
    }

    #[test]
    fn a_token_asked_for_after_the_end_is_cancelled() {
        let cancel = Cancel::new(&Arc::default());
        drop(cancel.at_end());
        assert!(cancel.token().is_cancelled());
    }
}
