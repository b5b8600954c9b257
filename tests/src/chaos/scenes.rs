//! Scenes that begin with a world at rest, each about a promise or a fault.

use std::time::Duration;

use tokio::time::sleep;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::driver::World;
use super::kinds::{CONFIG_MAPS, GADGETS};
use super::writer::NAMESPACES;
use crate::oracle::{Violation, undisturbed};

/// Time within which a healthy kind must deliver a change while others fail.
const UNDISTURBED: Duration = Duration::from_secs(1);
/// Number of objects that are shown without a name, to each process.
const NAMELESS: u64 = 3;

impl World {
    /// In a world at rest, makes a kind fail, and checks that another is undisturbed (G-C9: a bad
    /// kind delays and stops no other).
    pub(super) async fn fall_ill(&mut self) {
        self.fleets.iter().for_each(|fleet| fleet.net.cut());
        // An object in each namespace: once they are shown, every watch is known to work.
        for key in 0..NAMESPACES.len() as u64 {
            self.writer.put(CONFIG_MAPS, key);
        }
        self.settle().await;
        self.stats.count("kinds that fell ill alone");
        for (resource, action) in
            [("gadgets", FaultAction::Hang), ("gizmos", FaultAction::Answer(500))]
        {
            let fault = Fault::new(action).on("list|watch").resource(resource).always();
            self.server.faults().add(fault);
            self.server.faults().fail_watches(resource, 410);
        }
        sleep(self.dice.jitter(Duration::from_secs(40))).await;
        let (sick, well) = (self.writer.choose(GADGETS), self.writer.choose(CONFIG_MAPS));
        self.writer.put(GADGETS, sick);
        self.writer.put(CONFIG_MAPS, well);
        sleep(UNDISTURBED).await;
        let caches = self.fleets.iter().flat_map(|fleet| &fleet.caches);
        let mut well = caches.filter(|cache| cache.kind() == CONFIG_MAPS);
        let shown = well.try_for_each(|cache| cache.settled());
        let settled = shown.and_then(|()| self.ledger.book().settled_of(CONFIG_MAPS));
        self.ledger.book().note(undisturbed(settled));
        self.settle().await;
    }

    /// In a world at rest, sets the server back to a backup, which every cache must announce (G-C3:
    /// a new epoch is detected and announced).
    pub(super) async fn restore(&mut self) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let lost = self.server.revision().saturating_sub(snapshot.server.revision());
        if lost < 100 {
            return;
        }
        self.stats.count("backups that were restored");
        let caches = self.fleets.iter().flat_map(|fleet| fleet.caches.clone());
        let before: Vec<_> = caches.map(|cache| (cache.reached(), cache)).collect();
        self.writer.restore(&snapshot).await;
        // Versions are given a second time, to other objects.
        for _ in 0..self.dice.below(lost / 4) {
            self.writer.write();
        }
        self.settle().await;
        let now = self.server.revision();
        for ((version, announced), cache) in before {
            if version > now && cache.reached().1 <= announced {
                let text = format!(
                    "it had version {version}, the server has {now} only, and it did not say so"
                );
                let observer = format!("{cache:?}");
                self.ledger.book().broken(Violation::new("G-C3", &observer, text));
            }
        }
    }

    /// In a world at rest, removes a definition while no watch can see the removal; every cache
    /// must learn that the objects are gone before the definition comes back (B13: a kind that does
    /// not exist yet; G-C2, G-C4).
    pub(super) async fn lose_a_kind(&mut self) {
        if !self.writer.has_gizmos {
            return;
        }
        self.stats.count("definitions that went away unseen");
        for fleet in &self.fleets {
            fleet.net.set_out(true);
            fleet.net.cut();
        }
        self.writer.remove_gizmos();
        sleep(self.dice.jitter(Duration::from_secs(20))).await;
        self.settle().await;
        self.define_gizmos();
        self.settle().await;
    }

    /// In a world at rest, lets lists come in which some objects cannot be distinguished for want
    /// of a name. Objects that such a list does not show are not gone (G-C1, G-C4).
    pub(super) async fn list_in_part(&mut self) {
        self.stats.count("lists that were complete in part");
        self.fleets.iter().for_each(|fleet| fleet.net.hide_names(NAMELESS));
        self.server.faults().fail_watches("*", 410);
        // Long enough for a list and the pauses, too short for the next list.
        sleep(Duration::from_secs(60)).await;
        if let Err(violation) = self.settled() {
            self.ledger.book().broken(violation);
        }
        self.fleets.iter().for_each(|fleet| fleet.net.hide_names(0));
        self.settle().await;
    }
}
