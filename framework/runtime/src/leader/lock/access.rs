//! Reachability of the lock: whether this process could get the lock if no other process held it.
//!
//! A candidate whose lock is refused, cannot be read, or is in a namespace that does not exist,
//! waits for ever. The candidate must not be called ready: a roll-out would end the replica that
//! works. An API server that is away is another matter, and takes no replica out of service.

use parking_lot::Mutex;

use windlass_core::error::{Error, ErrorKind};

/// Result of the attempts so far, as far as that depends on the lock itself.
#[derive(Debug, Default)]
pub(in crate::leader) struct LockAccess(Mutex<State>);

/// Last known state of the lock.
#[derive(Debug)]
enum State {
    /// No attempt was answered yet; with the reason why the last attempt failed.
    Unknown(String),
    /// An attempt was answered, and none was refused since then.
    Answered,
    /// The last answer was a refusal.
    Refused(String),
}

impl Default for State {
    fn default() -> Self {
        Self::Unknown("the lease was not asked for yet".to_owned())
    }
}

impl LockAccess {
    /// Notes that an attempt was answered completely.
    pub(in crate::leader) fn answered(&self) {
        *self.0.lock() = State::Answered;
    }

    /// Notes that a request failed.
    pub(in crate::leader) fn failed(&self, error: &Error) {
        let is_refusal = matches!(
            error.kind(),
            ErrorKind::Unauthorized
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::Decode
                | ErrorKind::Invalid
        );
        let mut state = self.0.lock();
        match *state {
            _ if is_refusal => *state = State::Refused(error.to_string()),
            State::Unknown(_) => *state = State::Unknown(error.to_string()),
            // An API server that is away says nothing about the lock: the last answer still counts.
            State::Answered | State::Refused(_) => {}
        }
    }

    /// Returns the reason why this process could not lead; `None` when nothing known prevents it.
    pub(in crate::leader) fn failure(&self) -> Option<String> {
        match &*self.0.lock() {
            State::Answered => None,
            State::Unknown(why) | State::Refused(why) => Some(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_trouble_until_an_answer_and_silence_only_before_the_first_one() {
        let access = LockAccess::default();
        assert!(access.failure().is_some(), "nothing is known yet");
        let failed = |kind| access.failed(&Error::new(kind, format!("{kind:?}")));
        failed(ErrorKind::Timeout);
        assert_eq!(access.failure().as_deref(), Some("Timeout"));
        access.answered();
        failed(ErrorKind::Connect);
        assert_eq!(access.failure(), None, "the API server is away");
        for kind in [
            ErrorKind::Unauthorized,
            ErrorKind::Forbidden,
            ErrorKind::NotFound,
            ErrorKind::Decode,
            ErrorKind::Invalid,
        ] {
            failed(kind);
            failed(ErrorKind::Connect);
            assert_eq!(access.failure(), Some(format!("{kind:?}")));
            access.answered();
        }
    }
}
