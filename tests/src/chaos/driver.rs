//! The course of the world: writes, faults, reads, and moments of rest at which everything must
//! fit.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass::rng::Rng;
use windlass_apiserver::ApiServer;

use super::fleet::{Fleet, Ground};
use super::forms::Forms;
use super::kinds::{GADGETS, GIZMOS};
use super::listen::Manner;
use super::stats::Progress;
use super::writer::{NAMESPACES, Snapshot, Writer};
use super::{Ledger, Options, Stats, faults};
use crate::oracle::{Book, Violation};
use crate::sim::EPOCH;

/// Longest time until everything must be delivered. A watch that fell silent is given up after at
/// most 10 minutes and a half, a list after 30 s; the pause after a failure is at most 30 s. A list
/// that could not be read whole is made again after 5 minutes.
const SETTLED: Duration = Duration::from_secs(720);

/// The world.
pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) ledger: Ledger,
    pub(super) stats: Stats,
    began: Instant,
    slowest: Duration,
    pub(super) dice: Rng,
    pub(super) writer: Writer,
    /// The processes of the world; the last process is replaced from time to time.
    pub(super) fleets: Vec<Fleet>,
    next_number: u64,
    pub(super) snapshot: Option<Snapshot>,
}

impl World {
    /// Creates a world without writes and without faults.
    pub(super) fn new(options: &Options) -> Result<Self, String> {
        let dice = Rng::seeded(options.seed);
        let seed = dice.next_u64();
        let server = ApiServer::builder().seed(seed).epoch(EPOCH).controllers(false).start();
        let ledger = Ledger::new(Book::new());
        let mut writer = Writer::new(&server, &ledger, dice.fork("writer"), options.keys);
        writer.define(GADGETS)?;
        writer.define(GIZMOS)?;
        let mut world = Self {
            server,
            ledger,
            stats: Stats::default(),
            began: Instant::now(),
            slowest: Duration::ZERO,
            dice,
            writer,
            fleets: Vec::new(),
            next_number: 0,
            snapshot: None,
        };
        for namespaces in [&[][..], &NAMESPACES[..2], &[]] {
            world.add_fleet(namespaces, true);
        }
        Ok(world)
    }

    fn add_fleet(&mut self, namespaces: &[&str], healthy: bool) {
        self.next_number += 1;
        let observer = match namespaces {
            [] => format!("process {}", self.next_number),
            some => format!("process {} (namespaces {some:?})", self.next_number),
        };
        let ground = Ground {
            server: &self.server,
            dice: &self.dice,
            ledger: &self.ledger,
            stats: &self.stats,
        };
        let forms = Forms::of(self.next_number, &self.dice);
        self.fleets.push(Fleet::start(ground, &observer, forms, namespaces, healthy));
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            counts: self.ledger.book().counts(),
            time: self.began.elapsed(),
            slowest: self.slowest,
        }
    }

    fn versions(&self) -> u64 {
        self.ledger.book().counts().commits
    }

    pub(super) fn is_broken(&self) -> bool {
        !self.ledger.book().violations().is_empty()
    }

    /// Makes `versions` more versions while faults happen, then lets the world come to rest.
    pub(super) async fn round(&mut self, versions: u64) {
        self.fleets.iter().for_each(|fleet| fleet.net.set_healthy(false));
        let end = self.versions() + versions;
        let mut restore_gizmos = None;
        while self.versions() < end && !self.is_broken() {
            // At times a burst, so large that listeners cannot keep up.
            let most = if self.dice.below(64) == 0 { 1500 } else { 48 };
            for _ in 0..1 + self.dice.below(most) {
                self.writer.write();
            }
            self.rest().await;
            if restore_gizmos.is_some_and(|at| self.began.elapsed() >= at) {
                restore_gizmos = None;
                self.define_gizmos();
            }
            match self.dice.below(40) {
                0..6 => faults::strike(&self.server, &self.dice, &self.stats).await,
                6 => self.break_network().await,
                7 if self.writer.has_gizmos && self.dice.below(6) == 0 => {
                    self.stats.count("server: removed a definition");
                    if self.dice.below(2) == 0 {
                        // No watch sees the deletions.
                        self.fleets.iter().for_each(|fleet| fleet.net.cut());
                    }
                    self.writer.remove_gizmos();
                    let absent = self.dice.jitter(Duration::from_secs(60));
                    restore_gizmos = Some(self.began.elapsed() + absent);
                }
                8..10 => self.read(),
                10..16 => self.write_own().await,
                16 if self.dice.below(12) == 0 => self.replace_fleet().await,
                17..20 => faults::resume(&self.server),
                20..22 => self.change_listeners().await,
                _ => {}
            }
        }
        // At times the world comes to rest without gizmos.
        if restore_gizmos.is_some() && self.dice.below(2) == 0 {
            self.define_gizmos();
        }
    }

    pub(super) fn define_gizmos(&mut self) {
        if self.writer.has_gizmos {
            return;
        }
        if let Err(error) = self.writer.define(GIZMOS) {
            self.ledger.book().broken(Violation::new("the world", "the server", error));
        }
    }

    /// Lets time pass: mostly little, at times some seconds.
    async fn rest(&self) {
        let most = if self.dice.below(50) == 0 { 8000 } else { 250 };
        sleep(self.dice.jitter(Duration::from_millis(most))).await;
    }

    fn pick_fleet(&self) -> &Fleet {
        let at = usize::try_from(self.dice.below(self.fleets.len() as u64)).unwrap_or_default();
        &self.fleets[at]
    }

    async fn break_network(&self) {
        let net = &self.pick_fleet().net;
        if self.dice.below(3) > 0 {
            self.stats.count("net: reset all connections");
            net.cut();
            return;
        }
        self.stats.count("net: was out");
        net.set_out(true);
        net.cut();
        sleep(self.dice.jitter(Duration::from_secs(20))).await;
        net.set_out(false);
    }

    fn read(&self) {
        for cache in &self.pick_fleet().caches {
            cache.read(true);
        }
    }

    async fn change_listeners(&self) {
        let caches = &self.pick_fleet().caches;
        let at = usize::try_from(self.dice.below(caches.len() as u64)).unwrap_or_default();
        let cache = Arc::clone(&caches[at]);
        if self.dice.below(2) == 0 && Arc::clone(&cache).unlisten().await {
            self.stats.count("listeners that were removed");
            return;
        }
        self.stats.count("listeners that came late");
        let manner = match self.dice.below(3) {
            0 => Manner::Resyncs(Duration::from_secs(5 + self.dice.below(60))),
            1 => Manner::Panics(1 + self.dice.below(20)),
            _ => Manner::Prompt,
        };
        cache.listen(manner);
    }

    /// Lets a process write, and read the write back.
    async fn write_own(&mut self) {
        let (kind, key) = (GADGETS, self.writer.choose(GADGETS));
        let cache = self.pick_fleet().caches[kind].clone();
        if !cache.scope().covers(Writer::namespace(key)) {
            return;
        }
        let (id, uid) = (self.writer.id(kind, key), self.writer.uid(kind, key).map(str::to_owned));
        match (id, uid) {
            (Some(id), Some(uid)) if self.dice.below(4) == 0 && cache.shows(id, &uid) => {
                let Some((id, position)) = self.writer.remove(kind, key) else { return };
                cache.deleted(id, position, &uid);
                self.stats.count("own deletions");
            }
            _ => {
                let Some(written) = self.writer.put_good(kind, key) else { return };
                cache.wrote(written.key, written.position, written.object);
                self.stats.count("own writes");
            }
        }
        cache.read(true);
        self.rest().await;
        cache.read(true);
    }

    /// Ends the youngest process, and starts another process.
    async fn replace_fleet(&mut self) {
        self.stats.count("processes that were replaced");
        if let Some(fleet) = self.fleets.pop() {
            fleet.stop(&self.stats).await;
        }
        // A namespace without writes is soon listed, and must not pass for the others.
        let choices: [&[&str]; 3] = [&[], &["ns-b", "ns-empty"], &NAMESPACES];
        let at = usize::try_from(self.dice.below(3)).unwrap_or_default();
        self.add_fleet(choices[at], false);
    }

    /// Brings the absent kind back, and lets the world come to rest again.
    pub(super) async fn mend(&mut self) {
        if !self.writer.has_gizmos {
            self.stats.count("rests without a definition");
            self.define_gizmos();
            self.settle().await;
        }
    }

    /// Ends all faults; then every cache and every listener must come to know everything.
    pub(super) async fn settle(&mut self) {
        self.server.faults().clear();
        self.fleets.iter().for_each(|fleet| fleet.net.set_healthy(true));
        let since = Instant::now();
        let mut pause = Duration::from_millis(50);
        while let Err(violation) = self.settled() {
            if since.elapsed() > SETTLED {
                self.ledger.book().broken(violation);
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(5));
        }
        self.slowest = self.slowest.max(since.elapsed());
        self.fleets.iter().flat_map(|fleet| &fleet.caches).for_each(|cache| cache.read(true));
        let time = self.began.elapsed();
        let mut book = self.ledger.book();
        book.trace_this(time);
        book.forget();
    }

    pub(super) fn settled(&self) -> Result<(), Violation> {
        for cache in self.fleets.iter().flat_map(|fleet| &fleet.caches) {
            cache.settled()?;
        }
        self.ledger.book().settled()
    }

    /// Keeps a backup of the present world.
    pub(super) fn back_up(&mut self) {
        self.snapshot = Some(self.writer.backup());
    }

    /// Stops everything.
    pub(super) async fn stop(&mut self) {
        for fleet in std::mem::take(&mut self.fleets) {
            fleet.stop(&self.stats).await;
        }
        self.server.shutdown().await;
    }
}
