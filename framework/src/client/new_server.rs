//! An API server that this process started: nobody can have held a lease there before.
//!
//! Who makes a lock waits for a lease duration, because the lock of somebody who still writes may have
//! been deleted. Behind a quickstart, or in a test, there is nobody: the code that started the server
//! says so, and never a guess. It is so only for the first election of a name in this process, and where
//! other processes can reach the server, only at its beginning: they wait for a lease duration, too.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::Mark;

/// What is known of the elections on a server that this process started. All clients of the server
/// share one.
#[derive(Debug, Default)]
pub(crate) struct NewServer {
    /// Only these namespaces are new; the server may have others. Default: all are.
    namespaces: Option<Arc<Mutex<Vec<String>>>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Namespaces and names of elections in this process.
    claimed: BTreeSet<(String, String)>,
    /// Since when other processes can reach it.
    open_since: Option<Mark>,
}

impl NewServer {
    /// A server of which only these namespaces were made by this process.
    pub(crate) fn only(namespaces: Arc<Mutex<Vec<String>>>) -> Self {
        Self { namespaces: Some(namespaces), known: Mutex::default() }
    }

    /// Other processes can reach it from now on.
    pub(crate) fn open(&self, now: Mark) {
        self.known.lock().open_since.get_or_insert(now);
    }

    /// An election is set up. When it is known that no process has held its lock: the moment at which
    /// that was so.
    pub(crate) fn claim(&self, namespace: &str, name: &str, now: Mark) -> Option<Mark> {
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
    use crate::clock::Clock;

    #[tokio::test(start_paused = true)]
    async fn the_first_election_of_a_name_alone_knows_that_a_server_is_new() {
        let (server, clock) = (NewServer::default(), Clock::system());
        let claim = |namespace, name| server.claim(namespace, name, clock.mark()).is_some();
        assert!(claim("a", "ops"));
        assert!(!claim("a", "ops"), "the second one");
        assert!(claim("b", "ops") && claim("a", "other"));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_shared_server_only_the_namespaces_that_were_made_are_new() {
        let made = Arc::new(Mutex::new(vec!["mine".to_owned()]));
        let (server, now) = (NewServer::only(made.clone()), Clock::system().mark());
        assert!(server.claim("mine", "ops", now).is_some());
        assert!(server.claim("default", "ops", now).is_none());
        made.lock().push("later".to_owned());
        assert!(server.claim("later", "ops", now).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_others_can_reach_counts_as_new_from_the_moment_it_could_be_reached() {
        let (server, clock) = (NewServer::default(), Clock::system());
        server.open(clock.mark());
        tokio::time::sleep(Duration::from_secs(9)).await;
        server.open(clock.mark());
        let since = server.claim("a", "ops", clock.mark()).unwrap();
        assert_eq!(since.steady_until(&clock.mark()), Duration::from_secs(9));
    }
}
