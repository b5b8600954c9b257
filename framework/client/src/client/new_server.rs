//! An API server that this process started, on which no lease can have been held before.
//!
//! A candidate that creates a lock waits for a lease duration, because the lock of a leader that
//! still writes may have been deleted (D9: the Lease deleted while its holder hangs). Behind a
//! quickstart, or in a test, no such leader can exist. The code that started the server declares
//! this; the fact is never inferred. The declaration covers only the first election of a name in
//! this process. If other processes can reach the server, the declaration covers only the time
//! before they could: they wait for a lease duration, too.

// DESIGN.md, 101: `NewServer` lets the first election on a new API server skip the creation wait

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use windlass_core::clock::ClockReading;

/// State of the elections on a server that this process started. All clients of the server share
/// it.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct NewServer {
    /// Namespaces that are new, if the server has others. Default: all are new.
    namespaces: Option<Arc<Mutex<Vec<String>>>>,
    /// Elections so far, and the reachability of the server.
    known: Mutex<ServerState>,
}

/// Changes only in one direction: names are added, and the moment of opening is set once.
#[derive(Debug, Default)]
struct ServerState {
    /// Namespaces and names of elections in this process.
    claimed: BTreeSet<(String, String)>,
    /// Moment at which other processes could first reach the server.
    open_since: Option<ClockReading>,
}

impl NewServer {
    /// Creates the state of a server of which this process created only these namespaces.
    #[doc(hidden)]
    pub fn only(namespaces: Arc<Mutex<Vec<String>>>) -> Self {
        Self { namespaces: Some(namespaces), known: Mutex::default() }
    }

    /// Records that other processes can reach the server from now on.
    #[doc(hidden)]
    pub fn open(&self, now: ClockReading) {
        self.known.lock().open_since.get_or_insert(now);
    }

    /// Registers an election. Returns the last moment at which certainly no process held the lock,
    /// if that is known.
    #[doc(hidden)]
    pub fn claim(&self, namespace: &str, name: &str, now: ClockReading) -> Option<ClockReading> {
        // Two locks in turn, never together: there is no order of locks to keep.
        let is_new = self.namespaces.as_ref().is_none_or(|made| {
            let made = made.lock();
            made.iter().any(|made| made == namespace)
        });
        let mut known = self.known.lock();
        let is_first = known.claimed.insert((namespace.to_owned(), name.to_owned()));
        (is_first && is_new).then(|| known.open_since.unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use windlass_core::clock::Clock;

    #[tokio::test(start_paused = true)]
    async fn the_first_election_of_a_name_alone_knows_that_a_server_is_new() {
        let (server, clock) = (NewServer::default(), Clock::system());
        let claim = |namespace, name| server.claim(namespace, name, clock.reading()).is_some();
        assert!(claim("a", "ops"));
        assert!(!claim("a", "ops"), "the second one");
        assert!(claim("b", "ops") && claim("a", "other"));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_shared_server_only_the_namespaces_that_were_made_are_new() {
        let made = Arc::new(Mutex::new(vec!["mine".to_owned()]));
        let (server, now) = (NewServer::only(made.clone()), Clock::system().reading());
        assert!(server.claim("mine", "ops", now).is_some());
        assert!(server.claim("default", "ops", now).is_none());
        made.lock().push("later".to_owned());
        assert!(server.claim("later", "ops", now).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_others_can_reach_counts_as_new_from_the_moment_it_could_be_reached() {
        let (server, clock) = (NewServer::default(), Clock::system());
        server.open(clock.reading());
        tokio::time::sleep(Duration::from_secs(9)).await;
        server.open(clock.reading());
        let since = server.claim("a", "ops", clock.reading()).unwrap();
        assert_eq!(since.steady_until(&clock.reading()), Duration::from_secs(9));
    }
}
