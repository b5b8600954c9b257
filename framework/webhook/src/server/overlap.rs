//! Authorities that other replicas have written into an object: replicas read their certificates at
//! different moments, and each shows what it has read.

// DESIGN.md, 309: Authorities that other replicas wrote are kept until all have read the same
// DESIGN.md, 243: No clock of a node ends the trust in an authority at once

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use tokio::time::Instant;
use windlass_core::clock::Clock;

use crate::certificates::{MOST_TRUSTED, TWO_READINGS, certificates};

/// The authorities in one object, each with the time until which it stays there unwanted.
#[derive(Debug, Default)]
pub(super) struct StoredAuthorities(BTreeMap<String, Instant>);

impl StoredAuthorities {
    /// Returns the authorities that are to be in the object: those of this process, and others that
    /// are there for less than `limit`, whether or not they have ended by the clock of this node,
    /// which may be wrong. One that this process does not want any more stays for two readings,
    /// since others may show what it signed.
    pub(super) fn join(
        &mut self,
        own: Option<&ByteString>,
        found: Option<&ByteString>,
        (limit, clock): (Duration, &Clock),
    ) -> Option<ByteString> {
        let (Some(own), Some(found)) = (own, found) else {
            self.0.clear();
            return own.cloned();
        };
        let bundle = self.bundle((&text(own), &text(found)), (limit, clock));
        Some(bundle.map_or_else(|| found.clone(), |pem| ByteString(pem.into_bytes())))
    }

    /// Returns the bundle to write; `None` when the one that is found is right.
    fn bundle(
        &mut self,
        (own, found): (&str, &str),
        (limit, clock): (Duration, &Clock),
    ) -> Option<String> {
        let now = clock.now();
        let own: Vec<_> = certificates(own).collect();
        // An object has few: more than a process could have written are removed.
        let found: Vec<_> = certificates(found).take(4 * MOST_TRUSTED).collect();
        self.0.retain(|one, _| found.contains(one));
        for one in &found {
            let until = self.0.entry(one.clone()).or_insert(now + limit);
            if own.contains(one) {
                *until = now + limit.min(TWO_READINGS);
            }
        }
        let is_recent = |one: &String| self.0.get(one).is_some_and(|until| now < *until);
        let others = found.iter().filter(|one| !own.contains(one));
        let others: Vec<_> = others.filter(|one| is_recent(one)).take(MOST_TRUSTED).collect();
        let is_right = own.iter().all(|one| found.contains(one))
            && found.iter().all(|one| own.contains(one) || others.contains(&one));
        (!is_right).then(|| own.iter().chain(others).map(String::as_str).collect())
    }
}

fn text(bundle: &ByteString) -> String {
    String::from_utf8_lossy(&bundle.0).into_owned()
}
