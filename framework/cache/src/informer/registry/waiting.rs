//! Waits for the first lists of the informers, and the reasons for which they are missing.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::InformerRegistry;
use crate::informer::core::InformerCore;
use windlass_core::error::{Error, ErrorKind};

impl InformerRegistry {
    /// Waits until every informer in use that is not optional has the first list, or has stopped. A
    /// kind that the API server does not serve counts as listed, and empty, because such a kind
    /// must not keep other kinds from working; [`status`](Self::status) reports the absence.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn synced(&self) {
        self.none_pending(|_| true).await;
    }

    /// Waits as [`synced`](Self::synced), except for informers whose readers wait for them on their
    /// own.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    #[doc(hidden)]
    pub async fn others_synced(&self) {
        // Relaxed: the flags guard no data.
        let is_for_all = |core: &InformerCore| {
            core.is_requested.load(Ordering::Relaxed) || !core.is_awaited.load(Ordering::Relaxed)
        };
        self.none_pending(is_for_all).await;
    }

    /// Marks the present informers as requested by the program: every controller waits for them.
    #[doc(hidden)]
    pub fn mark_requested(&self) {
        // Relaxed: the flag guards no data.
        self.cores().iter().for_each(|core| core.is_requested.store(true, Ordering::Relaxed));
    }

    /// Sets which of the present informers read kinds whose definitions are about to be installed:
    /// those of `resources`, and no others. The absence of such a kind is logged as information.
    #[doc(hidden)]
    pub fn expect(&self, resources: &BTreeSet<String>) {
        for core in self.cores() {
            let is_expected = resources.contains(&core.store.info().group_resource());
            core.scopes.iter().for_each(|scope| scope.status.set_expected(is_expected));
        }
    }

    /// Waits until no informer for which `counts` is true lacks the first list.
    async fn none_pending(&self, counts: impl Fn(&InformerCore) -> bool) {
        loop {
            // Listed anew after each wait: informers may have been added meanwhile.
            let mut cores = self.cores().into_iter();
            let Some(core) = cores.find(|core| core.is_pending() && counts(core)) else { return };
            core.progress.settled().await;
        }
    }

    /// Waits as [`synced`](Self::synced), for at most `limit`, and until every listener of those
    /// informers has received the first lists, too.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] that names each cache and each listener that was not ready, and why.
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), Error> {
        let synced = async {
            self.synced().await;
            for core in self.cores().into_iter().filter(|core| !core.options.is_optional) {
                core.listeners_synced().await;
            }
        };
        if self.inner.environment.clock.timeout(limit, synced).await.is_some() {
            return Ok(());
        }
        let text = format!(
            "the caches were not filled within {limit:?}; missing: {}",
            self.missing().join("; ")
        );
        Err(Error::new(ErrorKind::Timeout, text))
    }

    /// Returns the reasons for which the caches are not synced: a line for each cache without a
    /// first list, and for each listener that has not received the list. Empty when nothing is
    /// missing.
    pub fn missing(&self) -> Vec<String> {
        let cores = self.cores().into_iter().filter(|core| !core.options.is_optional);
        cores
            .flat_map(|core| match core.missing() {
                Some(missing) => vec![missing],
                None => core.behind(),
            })
            .collect()
    }
}
