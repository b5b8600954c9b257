//! Outcomes of creations that could not be recorded on their objects yet.
//!
//! While the API server is away, or after lost answers, this process knows more than the object says. A restart loses
//! that knowledge: the object then goes the way of every unknown outcome.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::record::Stamp;

/// Most kept outcomes.
const MOST: usize = 10_000;

/// Outcome of a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It succeeded; the id of the resource.
    Created(String),
    /// Nothing was created: the call was not made, or was refused.
    NotCreated,
}

/// Outcomes by the pending creation. The time is a part of the key: another process may have repeated the token since.
#[derive(Debug, Default)]
pub(super) struct Outcomes(Mutex<BTreeMap<Stamp, Outcome>>);

impl Outcomes {
    /// Keeps an outcome, unless there are too many already.
    pub(super) fn keep(&self, pending: &Stamp, outcome: Outcome) {
        let mut outcomes = self.0.lock();
        if outcomes.len() < MOST || outcomes.contains_key(pending) {
            outcomes.insert(pending.clone(), outcome);
        }
    }

    pub(super) fn get(&self, pending: &Stamp) -> Option<Outcome> {
        self.0.lock().get(pending).cloned()
    }

    /// Forgets an outcome that is recorded.
    pub(super) fn forget(&self, pending: &Stamp) {
        self.0.lock().remove(pending);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn outcomes_are_bounded_and_forgotten() {
        let outcomes = Outcomes::default();
        let stamp =
            |n: usize| Stamp { time: Timestamp::UNIX_EPOCH, token: format!("token-{n:05}") };
        (0..MOST + 5).for_each(|n| outcomes.keep(&stamp(n), Outcome::NotCreated));
        assert_eq!(outcomes.get(&stamp(MOST + 1)), None);
        // An outcome that is known already may still change.
        outcomes.keep(&stamp(3), Outcome::Created("id".to_owned()));
        assert_eq!(outcomes.get(&stamp(3)), Some(Outcome::Created("id".to_owned())));
        outcomes.forget(&stamp(3));
        assert_eq!(outcomes.get(&stamp(3)), None);
    }
}
