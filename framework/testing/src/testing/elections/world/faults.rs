//! Faults of nodes and of the Lease.

use std::time::Duration;

use super::{ElectionWorld, SECOND};
use crate::testing::elections::events::EventKind;

impl ElectionWorld {
    /// Injects a random fault: the node freezes, sleeps, crashes, gets another wall-clock time or
    /// releases the lease, or another writer changes or deletes the Lease.
    ///
    /// Faults of a node come twice a minute on average and last up to 45 s, which is longer than a
    /// lease.
    pub(super) fn inject_fault(&mut self, at: u64, node: usize) {
        let next = self.random(60 * SECOND);
        self.push(at + next, node, EventKind::Fault);
        let long = self.random(45 * SECOND);
        match self.random(8) {
            0 => self.freeze(at + long, node),
            1 => {
                // The machine sleeps: the process stands still, and so does the steady clock.
                self.freeze(at + long, node);
                let local = long as f64 * self.nodes[node].rate;
                self.nodes[node].lag += Duration::from_micros(local as u64);
            }
            2 => {
                self.oracle.tally.crashes += 1;
                self.restart(at, node, long);
            }
            // Up to 100 s in either direction: several lease durations.
            3 => self.nodes[node].wall += self.rng.below(200) as i64 - 100,
            4 => self.touch_lease(),
            5 => self.delete(at + long),
            // Two of eight: handing over is the path with most interleavings.
            _ => self.drain(at, node),
        }
    }

    /// Freezes a node until `until`.
    fn freeze(&mut self, until: u64, node: usize) {
        self.oracle.tally.freezes += 1;
        self.nodes[node].frozen_until = until;
    }

    /// Labels the Lease by hand: the record stays, the version changes.
    ///
    /// The renewal in flight is answered with a conflict, though the node still holds the lease.
    fn touch_lease(&mut self) {
        if let Some(lease) = &mut self.stored {
            self.version += 1;
            lease.version = self.version.to_string();
            self.oracle.tally.conflicts += 1;
        }
    }

    /// Deletes the Lease by hand, mostly while the holder hangs.
    fn delete(&mut self, until: u64) {
        let Some(lease) = self.stored.take() else { return };
        self.oracle.tally.deleted += 1;
        let holder = lease.record.holder.as_deref().and_then(|name| name.split_once('.'));
        let node = holder.and_then(|(node, _)| node.parse().ok());
        // The holder cannot see the deletion while hanging: the next node must wait although there
        // is no record of a holder.
        if let Some(node) = node.filter(|_| self.random(4) > 0) {
            self.freeze(until, node);
        }
    }
}
