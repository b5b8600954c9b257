//! Tells the echo of our own write from news.
//!
//! Writing the status of an object makes its watch deliver the object again. That change is dropped
//! only when every step of it is known: it leads from the version that was reconciled, or one that
//! we made of it, to a version that an answer to us carried.
//!
//! The watch may be quicker than the answer. The object is woken by its echo then, and the turn that
//! this leads to is passed over: nothing happened since a reconcile that succeeded but its own writes.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::resource::ObjectKey;

/// Versions kept per object; what lies further back is news.
const KEPT: usize = 16;

/// What we made of an object since its last reconcile began.
#[derive(Debug)]
struct Chain {
    /// Versions, each made by us from the one before.
    versions: Vec<String>,
    /// The reconcile has succeeded; and when the object is to be looked at again.
    concluded: Option<Option<Instant>>,
}

/// The objects that we wrote.
#[derive(Debug)]
pub(super) struct Echoes {
    chains: Mutex<HashMap<ObjectKey, Chain, FixedState>>,
}

impl Default for Echoes {
    fn default() -> Self {
        // Never iterated, so its order shows nowhere.
        Self { chains: Mutex::new(HashMap::with_hasher(FixedState::with_seed(0))) }
    }
}

impl Echoes {
    /// A reconcile of `key` begins, at this version. If we made it, what led to it stays known: the
    /// watch may still have to tell that.
    pub(super) fn begin(&self, key: &ObjectKey, version: &str) {
        let mut chains = self.chains.lock();
        if chains.is_empty() {
            return;
        }
        let Some(chain) = chains.get_mut(key) else { return };
        chain.concluded = None;
        if !chain.ends_with(version) || chain.versions.len() > KEPT / 2 {
            chains.remove(key);
        }
    }

    /// The reconcile of `key` has succeeded, and asked to be called again at `again`.
    pub(super) fn concluded(&self, key: &ObjectKey, again: Option<Instant>) {
        let mut chains = self.chains.lock();
        if !chains.is_empty()
            && let Some(chain) = chains.get_mut(key)
        {
            chain.concluded = Some(again);
        }
    }

    /// Is `version` what the last reconcile of `key`, which has succeeded, made of the one that it was
    /// called with? Then there is nothing new about it, and what is left of the time after which it
    /// wanted to be called again.
    pub(super) fn left_by_us(
        &self,
        key: &ObjectKey,
        version: impl FnOnce() -> Option<String>,
        now: Instant,
    ) -> Option<Option<Duration>> {
        let again = {
            let chains = self.chains.lock();
            if chains.is_empty() {
                return None;
            }
            chains.get(key)?.concluded?
        };
        let version = version()?;
        let is_ours = self.chains.lock().get(key).is_some_and(|chain| chain.ends_with(&version));
        is_ours.then(|| again.map(|again| again.saturating_duration_since(now)))
    }

    /// A write of ours that the API server accepted only on top of `from` made `to`; `begun` is the
    /// version that is reconciled.
    pub(super) fn wrote(&self, key: &ObjectKey, begun: &str, (from, to): (&str, &str)) {
        if from == to {
            return;
        }
        let mut chains = self.chains.lock();
        let Some(chain) = chains.get_mut(key) else {
            if begun == from {
                let versions = vec![from.to_owned(), to.to_owned()];
                chains.insert(key.clone(), Chain { versions, concluded: None });
            }
            return;
        };
        if chain.ends_with(from) && chain.versions.len() < KEPT {
            chain.versions.push(to.to_owned());
        }
    }

    /// Is the change between two versions our own doing, and nobody else's? They are asked for when
    /// the object is one that we wrote.
    pub(super) fn is_echo<'a>(
        &self,
        key: &ObjectKey,
        versions: impl FnOnce() -> (&'a str, &'a str),
    ) -> bool {
        let chains = self.chains.lock();
        if chains.is_empty() {
            return false;
        }
        let Some(chain) = chains.get(key) else { return false };
        let (old, new) = versions();
        let place = |version: &str| chain.versions.iter().position(|known| known == version);
        matches!((place(old), place(new)), (Some(old), Some(new)) if old < new)
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.chains.lock().remove(key);
    }
}

impl Chain {
    fn ends_with(&self, version: &str) -> bool {
        self.versions.last().is_some_and(|last| last == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new(Some("shop"), "home")
    }

    #[test]
    fn a_change_made_by_us_alone_is_an_echo_also_when_merged() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        echoes.wrote(&key(), "10", ("10", "11"));
        echoes.wrote(&key(), "10", ("11", "14"));
        assert!(echoes.is_echo(&key(), || ("10", "11")));
        assert!(echoes.is_echo(&key(), || ("11", "14")));
        assert!(echoes.is_echo(&key(), || ("10", "14")));
    }

    #[test]
    fn a_change_that_somebody_else_had_a_part_in_is_news() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        // 12 was made of a version that was never reconciled.
        echoes.wrote(&key(), "10", ("11", "12"));
        assert!(!echoes.is_echo(&key(), || ("11", "12")));
        assert!(!echoes.is_echo(&key(), || ("10", "12")));
    }

    #[test]
    fn a_resync_is_news() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        echoes.wrote(&key(), "10", ("10", "11"));
        assert!(!echoes.is_echo(&key(), || ("11", "11")));
    }

    #[test]
    fn a_new_reconcile_starts_a_new_chain() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        echoes.wrote(&key(), "10", ("10", "11"));
        echoes.begin(&key(), "12");
        assert!(!echoes.is_echo(&key(), || ("10", "11")));
    }

    #[test]
    fn a_reconcile_that_sees_our_write_before_the_watch_tells_it_keeps_the_chain() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        echoes.wrote(&key(), "10", ("10", "11"));
        echoes.begin(&key(), "11");
        assert!(echoes.is_echo(&key(), || ("10", "11")));
    }

    #[test]
    fn objects_that_are_not_written_are_not_remembered() {
        let echoes = Echoes::default();
        echoes.begin(&key(), "10");
        assert!(echoes.chains.lock().is_empty());
        echoes.wrote(&key(), "10", ("10", "11"));
        echoes.begin(&key(), "12");
        assert!(echoes.chains.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_about_nothing_but_our_own_write_is_known_after_a_success() {
        let (echoes, now) = (Echoes::default(), Instant::now());
        let left = |version: &str| echoes.left_by_us(&key(), || Some(version.to_owned()), now);
        echoes.begin(&key(), "10");
        echoes.wrote(&key(), "10", ("10", "11"));
        assert_eq!(left("11"), None, "it is not known to have succeeded");
        let again = now + Duration::from_secs(5);
        echoes.concluded(&key(), Some(again));
        assert_eq!(left("11"), Some(Some(Duration::from_secs(5))));
        assert_eq!(left("10"), None, "the cache is behind: more may come");
        assert_eq!(left("12"), None, "somebody else wrote");
        echoes.begin(&key(), "11");
        assert_eq!(left("11"), None, "the next reconcile is not over");
    }
}
