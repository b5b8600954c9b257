//! Tells the echo of our own write from news.
//!
//! Writing the status of an object makes its watch deliver the object again. That change is dropped
//! only when every step of it is known: it leads from the version that was reconciled, or one that
//! we made of it, to a version that an answer to us carried.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::resource::ObjectKey;

/// Versions kept per object; what lies further back is news.
const KEPT: usize = 16;

/// For each object that we wrote the versions since its last reconcile began, each made by us from
/// the one before.
#[derive(Debug)]
pub(super) struct Echoes {
    chains: Mutex<HashMap<ObjectKey, Vec<String>, FixedState>>,
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
        if let Some(chain) = chains.get(key)
            && (chain.last().is_none_or(|last| last != version) || chain.len() > KEPT / 2)
        {
            chains.remove(key);
        }
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
                chains.insert(key.clone(), vec![from.to_owned(), to.to_owned()]);
            }
            return;
        };
        if chain.last().is_some_and(|last| last == from) && chain.len() < KEPT {
            chain.push(to.to_owned());
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
        let place = |version: &str| chain.iter().position(|known| known == version);
        matches!((place(old), place(new)), (Some(old), Some(new)) if old < new)
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.chains.lock().remove(key);
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
}
