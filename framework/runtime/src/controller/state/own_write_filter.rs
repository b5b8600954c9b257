//! Filter of own writes: distinguishes the event of an own write from a change by others.
//!
//! Writing the status of an object makes the watch deliver the object again. That change is dropped
//! only when every step is known: the change leads from the reconciled version, or from one that an
//! own write made from it, to a version that the answer to an own write carried.
//!
//! The watch may be quicker than the answer. Then the event enqueues the object, and the attempt
//! that follows is skipped: nothing but own writes happened since the last reconcile. The same
//! holds for a failed reconcile that wrote the failure to the status: the object keeps the time of
//! the retry.

// DESIGN.md, 48: A reconcile attempt caused only by an own write is skipped

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::sparse_lock::ShardedMap;
use windlass_core::resource::ObjectKey;

/// Most versions kept per object; older versions count as changes by others.
const MAX_VERSIONS: usize = 16;

/// Versions that own writes made of an object since the last reconcile began.
#[derive(Debug)]
struct WriteChain {
    /// Versions, each made by an own write from the version before.
    versions: Vec<String>,
    /// The follow-up of the reconcile, once that is over.
    follow_up: Option<FollowUp>,
}

/// Follow-up of a reconcile if nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FollowUp {
    /// Time of the next reconcile, if any.
    pub(crate) again: Option<Instant>,
    /// Whether the reconcile failed.
    pub(crate) has_failed: bool,
}

/// The objects with own writes. Never iterated, so their order shows nowhere.
#[derive(Debug, Default)]
pub(crate) struct OwnWriteFilter {
    chains: ShardedMap<HashMap<ObjectKey, WriteChain, FixedState>>,
}

impl OwnWriteFilter {
    /// Begins a reconcile of `key` at this version. If an own write made it, the chain that led to
    /// it stays known: the watch may still have to deliver it.
    pub(crate) fn begin(&self, key: &ObjectKey, version: &str) {
        let Some(mut chains) = self.chains.of(key).lock_if_any() else { return };
        let Some(chain) = chains.get_mut(key) else { return };
        chain.follow_up = None;
        // A long chain is dropped early, so that the writes of this reconcile fit into a new chain.
        if !chain.ends_with(version) || chain.versions.len() > MAX_VERSIONS / 2 {
            chains.remove(key);
        }
    }

    /// Notes the follow-up of a finished reconcile. Called before another worker can take the key.
    pub(crate) fn finish(&self, key: &ObjectKey, how: FollowUp) {
        if let Some(mut chains) = self.chains.of(key).lock_if_any()
            && let Some(chain) = chains.get_mut(key)
        {
            chain.follow_up = Some(how);
        }
    }

    /// Returns the follow-up of the last reconcile if that reconcile is over and `version` is the
    /// result of own writes: then nothing else happened.
    pub(crate) fn own_follow_up(
        &self,
        key: &ObjectKey,
        version: impl FnOnce() -> Option<String>,
    ) -> Option<FollowUp> {
        // The chain is checked first, because most objects have no chain; the cache is read without
        // this lock, which the cache's listener takes, too.
        let follow_up = self.chains.of(key).lock_if_any()?.get(key)?.follow_up?;
        let version = version()?;
        let is_ours =
            self.chains.of(key).lock().get(key).is_some_and(|chain| chain.ends_with(&version));
        is_ours.then_some(follow_up)
    }

    /// Records an own write that the API server accepted only upon `from` and that made `to`;
    /// `reconciled` is the reconciled version. A write upon a version that is not in the chain
    /// starts no chain.
    pub(crate) fn wrote(&self, key: &ObjectKey, reconciled: &str, (from, to): (&str, &str)) {
        if from == to {
            return;
        }
        let mut chains = self.chains.of(key).lock();
        let Some(chain) = chains.get_mut(key) else {
            // Any other version contains a change that this reconcile has not seen.
            if reconciled == from {
                let versions = vec![from.to_owned(), to.to_owned()];
                chains.insert(key.clone(), WriteChain { versions, follow_up: None });
            }
            return;
        };
        if chain.ends_with(from) && chain.versions.len() < MAX_VERSIONS {
            chain.versions.push(to.to_owned());
        }
    }

    /// Whether the change between two versions consists of own writes only. `versions` is called
    /// only for an object with own writes.
    pub(crate) fn is_own_change<'a>(
        &self,
        key: &ObjectKey,
        versions: impl FnOnce() -> (&'a str, &'a str),
    ) -> bool {
        let Some(chains) = self.chains.of(key).lock_if_any() else { return false };
        let Some(chain) = chains.get(key) else { return false };
        let (old, new) = versions();
        let place = |version: &str| chain.versions.iter().position(|known| known == version);
        matches!((place(old), place(new)), (Some(old), Some(new)) if old < new)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        if let Some(mut chains) = self.chains.of(key).lock_if_any() {
            chains.remove(key);
        }
    }
}

impl WriteChain {
    /// Whether `version` is the newest of the chain.
    fn ends_with(&self, version: &str) -> bool {
        self.versions.last().is_some_and(|last| last == version)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new(Some("shop"), "home")
    }

    #[test]
    fn a_change_made_by_us_alone_is_an_echo_also_when_merged() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        filter.wrote(&key(), "10", ("10", "11"));
        filter.wrote(&key(), "10", ("11", "14"));
        assert!(filter.is_own_change(&key(), || ("10", "11")));
        assert!(filter.is_own_change(&key(), || ("11", "14")));
        assert!(filter.is_own_change(&key(), || ("10", "14")));
    }

    #[test]
    fn a_change_with_a_foreign_part_is_no_echo() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        // 12 was made of a version that was never reconciled.
        filter.wrote(&key(), "10", ("11", "12"));
        assert!(!filter.is_own_change(&key(), || ("11", "12")));
        assert!(!filter.is_own_change(&key(), || ("10", "12")));
    }

    #[test]
    fn a_resync_is_no_echo() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        filter.wrote(&key(), "10", ("10", "11"));
        assert!(!filter.is_own_change(&key(), || ("11", "11")));
    }

    #[test]
    fn a_new_reconcile_starts_a_new_chain() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        filter.wrote(&key(), "10", ("10", "11"));
        filter.begin(&key(), "12");
        assert!(!filter.is_own_change(&key(), || ("10", "11")));
    }

    #[test]
    fn a_reconcile_that_sees_an_own_write_before_the_watch_shows_it_keeps_the_chain() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        filter.wrote(&key(), "10", ("10", "11"));
        filter.begin(&key(), "11");
        assert!(filter.is_own_change(&key(), || ("10", "11")));
    }

    #[test]
    fn objects_that_are_not_written_are_not_remembered() {
        let filter = OwnWriteFilter::default();
        filter.begin(&key(), "10");
        assert!(filter.chains.is_empty());
        filter.wrote(&key(), "10", ("10", "11"));
        filter.begin(&key(), "12");
        assert!(filter.chains.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_about_nothing_but_our_own_write_is_known_when_the_reconcile_is_over() {
        let filter = OwnWriteFilter::default();
        let left = |version: &str| filter.own_follow_up(&key(), || Some(version.to_owned()));
        filter.begin(&key(), "10");
        filter.wrote(&key(), "10", ("10", "11"));
        assert_eq!(left("11"), None, "it is not known to be over");
        let again = Some(Instant::now() + Duration::from_secs(5));
        let how = FollowUp { again, has_failed: true };
        filter.finish(&key(), how);
        assert_eq!(left("11"), Some(how));
        assert_eq!(left("10"), None, "the cache is behind: more may come");
        assert_eq!(left("12"), None, "another writer was first");
        filter.begin(&key(), "11");
        assert_eq!(left("11"), None, "the next reconcile is not over");
    }
}
