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
    /// Keeps an outcome, and forgets the oldest creation when there are too many.
    pub(super) fn keep(&self, pending: &Stamp, outcome: Outcome) {
        let mut outcomes = self.0.lock();
        outcomes.insert(pending.clone(), outcome);
        if outcomes.len() > MOST {
            outcomes.pop_first();
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
        let stamp = |n: usize| {
            let time = Timestamp::from_second(n as i64).unwrap();
            Stamp { time, token: "token".to_owned() }
        };
        (0..MOST + 3).for_each(|n| outcomes.keep(&stamp(n), Outcome::NotCreated));
        assert_eq!(outcomes.get(&stamp(2)), None, "the oldest ones are forgotten");
        assert_eq!(outcomes.get(&stamp(MOST + 2)), Some(Outcome::NotCreated));
        outcomes.keep(&stamp(3), Outcome::Created("id".to_owned()));
        assert_eq!(outcomes.get(&stamp(3)), Some(Outcome::Created("id".to_owned())));
        outcomes.forget(&stamp(3));
        assert_eq!(outcomes.get(&stamp(3)), None);
    }
}
