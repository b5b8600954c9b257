//! Runs a script against a framework.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::forget_peak;
use crate::{
    Args, Control, Delayed, Delays, Line, Meter, Phase, Started, Window, fingerprint, nanos,
    resident, version,
};

/// A look at the counters costs nothing beside the measured work.
const LOOK: Duration = Duration::from_millis(1);
/// Reconciles that are still to come do so within this.
pub(crate) const CALM: Duration = Duration::from_millis(100);
/// After a phase, before memory is read.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// Nothing takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Namespace, name and resourceVersion of all cached objects, in sequence.
pub type Visit<'a> = &'a mut dyn FnMut(&str, &str, &str);

/// Interface that each framework implements; called from the main thread only.
pub trait Subject {
    /// Begins to list and watch, and to reconcile if that was asked for.
    fn start(&mut self);
    /// Is the first list in the cache?
    fn is_synced(&self) -> bool;
    /// The resourceVersion of a cached object; empty when there is none.
    fn version(&self, namespace: &str, name: &str) -> String;
    /// Visits everything in the cache.
    fn visit(&self, visit: Visit<'_>);
    /// Number of Pods of an app; by index if the cache has an index.
    fn lookup(&self, app: &str) -> usize;
    /// Reconciles from now on sleep for so long.
    fn sleep(&self, _: Duration) {}
    /// Starts a number of tasks that only sleep, without a framework; false if the driver has none.
    fn tasks(&self, _count: u64, _: Duration) -> bool {
        false
    }
    /// A reconcile for each change without a controller: a listener on the cache that has every
    /// change read and reconciled by a separate task; false when the driver has no such listener.
    fn bare(&mut self) -> bool {
        false
    }
    /// Puts that many keys through the public work queue, if the framework has such a queue, by a
    /// producer and a worker; runs per add.
    fn queue(&self, _: u64) -> Option<f64> {
        None
    }
    /// The same by the way that a controller's own source takes.
    fn own_queue(&self, _: u64) -> Option<f64> {
        None
    }
    /// Delayed keys in the public work queue, if the framework has such a queue.
    fn delays(&self, _: &Delays) -> Option<Delayed> {
        None
    }
}

/// State shared by all phases.
pub struct Work<'a> {
    pub(crate) args: &'a Args,
    pub(crate) subject: &'a mut dyn Subject,
    pub(crate) meter: Arc<Meter>,
    pub(crate) control: Control,
    /// Is every change reconciled, by a controller or by the controller's stand-in?
    pub(crate) reconciles: bool,
    /// Resident memory before anything was listed.
    start: u64,
    /// Resident memory after the latest sync.
    steady: u64,
}

/// Runs `args.phases`, prints a line for each and a last line with the hash of the cache.
pub fn run(args: &Args, meter: &Arc<Meter>, subject: &mut dyn Subject) -> io::Result<()> {
    let control = Control::connect(&args.control)?;
    let start = resident().0;
    let (meter, reconciles) = (Arc::clone(meter), args.controller);
    let mut work = Work { args, subject, meter, control, reconciles, start, steady: start };
    for phase in &args.phases {
        let named = |error: io::Error| io::Error::other(format!("{phase:?}: {error}"));
        work.phase(phase).map_err(named)?;
    }
    work.end()
}

impl Work<'_> {
    fn phase(&mut self, phase: &Phase) -> io::Result<()> {
        match *phase {
            Phase::Sync => self.sync()?,
            Phase::Events { count, window } => self.events(count, window)?,
            Phase::Churn { updates } => self.churn(updates)?,
            Phase::Rate { rate, seconds } => self.rate(rate, seconds)?,
            Phase::Relist { changed } => self.relist(changed)?,
            Phase::Index { lookups, events } => self.index(lookups, events)?,
            Phase::Idle { seconds } => self.idle(seconds),
            Phase::Failing { rate, seconds } => self.failing(rate, seconds)?,
            Phase::Queue { adds } => self.queue(adds),
            Phase::Own { adds } => self.own_queue(adds),
            Phase::Delays(ref delays) => self.delays(delays)?,
            Phase::Bare { milliseconds } => self.bare(milliseconds)?,
            Phase::Flight { milliseconds } => self.flight(milliseconds)?,
            Phase::Tasks { milliseconds } => self.tasks(milliseconds),
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.mark()?;
        let window = Window::begin();
        self.subject.start();
        until("the first list", || self.subject.is_synced())?;
        let (ready, ready_cpu) = (window.wall(), window.cpu());
        let expected = self.args.objects;
        if self.args.controller {
            until("the first reconciles", || self.meter.reconciles() >= expected)?;
        }
        let (wall, cpu) = (window.wall(), window.cpu());
        let first = self.meter.reconciles();
        let span = self.meter.span();
        thread::sleep(REST);
        let (rss, peak) = resident();
        self.steady = rss;
        self.check(&format!("listed={expected}"))?;
        let mut line = self.line("sync", cpu, wall, expected);
        if self.args.controller && span > 0 {
            let reconciles = self.meter.reconciles();
            once("first reconciles", reconciles, expected)?;
            line = line
                .with("first_per_s", first as f64 * 1e9 / span as f64)
                .with("reconciles_each", reconciles as f64 / expected as f64);
        }
        line.with("ready_s", ready.as_secs_f64())
            .with("ready_cpu_us", ready_cpu as f64 / 1e3 / expected as f64)
            .with("rss_kb_each", self.each(rss))
            .with("peak_kb_each", self.each(peak))
            .with("start_mb", self.start as f64 / 1e6)
            .print();
        Ok(())
    }

    fn events(&mut self, count: u64, window: u64) -> io::Result<()> {
        // Without a controller the window would stay closed.
        let window = if self.args.controller { window } else { 0 };
        self.mark()?;
        let before = self.meter.reconciles();
        let measured = Window::begin();
        let began = nanos();
        let started = self.control.start(&format!("events count={count} window={window}"))?;
        let cpu = self.follow(&started, &measured, before, window > 0)?;
        let wall = self.wall(&measured, began);
        let name = if window > 0 { "paced" } else { "events" };
        let reconciles = self.meter.reconciles() - before;
        self.check(&format!("events={count}"))?;
        if window > 0 {
            once("paced reconciles", reconciles, count)?;
        }
        self.line(name, cpu, wall, count)
            .with("reconciles", reconciles)
            .with("reconciles_per_s", reconciles as f64 / wall.as_secs_f64())
            .with("reconciles_per_event", reconciles as f64 / count as f64)
            .print();
        Ok(())
    }

    fn churn(&mut self, updates: u64) -> io::Result<()> {
        let count = updates * self.args.objects;
        self.mark()?;
        let before = self.meter.reconciles();
        let measured = Window::begin();
        let began = nanos();
        let started = self.control.start(&format!("events count={count} window=0"))?;
        let cpu = self.follow(&started, &measured, before, false)?;
        let wall = self.wall(&measured, began);
        thread::sleep(REST);
        let (rss, peak) = resident();
        self.check(&format!("events={count}"))?;
        let line = self
            .line("churn", cpu, wall, count)
            .with("updates", updates)
            .with("rss_kb_each", self.each(rss))
            .with("peak_kb_each", self.each(peak))
            .with("growth", rss.saturating_sub(self.start) as f64 / self.used() as f64);
        self.steady = rss;
        line.print();
        Ok(())
    }

    fn rate(&mut self, rate: u64, seconds: u64) -> io::Result<()> {
        let count = rate * seconds;
        self.mark()?;
        let before = self.meter.reconciles();
        self.meter.time();
        let measured = Window::begin();
        let began = nanos();
        let started = self.control.start(&format!("events count={count} rate={rate}"))?;
        let cpu = self.follow(&started, &measured, before, false)?;
        let wall = self.wall(&measured, began);
        let latencies = self.meter.timed();
        let reconciles = self.meter.reconciles() - before;
        self.check(&format!("events={count}"))?;
        once("reconciles with a time stamp", latencies.len() as u64, count)?;
        self.line("rate", cpu, wall, count)
            .with("rate", rate)
            .with("reconciles_per_event", reconciles as f64 / count as f64)
            .with("p50_us", quantile(&latencies, 0.5) as f64 / 1e3)
            .with("p99_us", quantile(&latencies, 0.99) as f64 / 1e3)
            .with("samples", latencies.len())
            .print();
        Ok(())
    }

    fn relist(&mut self, changed: u64) -> io::Result<()> {
        let steady = resident().0;
        forget_peak();
        self.mark()?;
        let before = self.meter.reconciles();
        let measured = Window::begin();
        let hidden = self.control.start(&format!("expire changed={changed}"))?;
        self.control.ask("watched")?;
        // A client that lists by a stream begins to watch before the end of the list is read: an
        // event behind the list marks the time of that end.
        let behind = self.control.start("events count=1 window=0")?;
        let cpu = self.follow(&behind, &measured, before, false)?;
        let wall = measured.wall();
        if !self.has(&hidden) {
            return Err(io::Error::other("the list did not bring the changes: void"));
        }
        self.check(&format!("listed={} expired=1 events=1", self.args.objects))?;
        let peak = resident().1;
        thread::sleep(REST);
        let after = resident().0;
        let used = steady.saturating_sub(self.start).max(1) as f64;
        self.line("relist", cpu, wall, self.args.objects)
            .with("peak_over_steady", peak.saturating_sub(self.start) as f64 / used)
            .with("after_over_steady", after.saturating_sub(self.start) as f64 / used)
            .with("rss_kb_each", self.each(after))
            .with("peak_kb_each", self.each(peak))
            .print();
        Ok(())
    }

    /// Starts the count of served objects and events.
    pub(crate) fn mark(&mut self) -> io::Result<()> {
        self.control.ask("mark").map(drop)
    }

    /// Fails unless exactly that was served since the mark: a phase without the work is void.
    pub(crate) fn check(&mut self, served: &str) -> io::Result<()> {
        self.control.ask(&format!("check {served}")).map(drop)
    }

    fn end(mut self) -> io::Result<()> {
        let (mut hash, mut objects) = (0_u64, 0_u64);
        self.subject.visit(&mut |namespace, name, version| {
            hash = hash.wrapping_add(fingerprint(namespace, name, version));
            objects += 1;
        });
        let state = self.control.ask("state")?;
        let hash = format!("{hash:016x}");
        let is_same = state.get("hash") == Some(&hash);
        Line::of("end").with("objects", objects).with("hash", hash).with("same", is_same).print();
        Ok(())
    }

    /// Waits until everything that was started has arrived; returns the CPU used until then. Opens
    /// the window meanwhile.
    pub(crate) fn follow(
        &mut self,
        started: &Started,
        measured: &Window,
        before: u64,
        each: bool,
    ) -> io::Result<u64> {
        let deadline = Instant::now() + PATIENCE;
        let mut acknowledged = 0;
        let mut seen = self.meter.reconciles();
        let mut since = Instant::now();
        let mut cpu = measured.cpu();
        while Instant::now() < deadline {
            let now = self.meter.reconciles();
            if now != seen {
                (seen, since) = (now, Instant::now());
                cpu = measured.cpu();
            }
            if each && now - before > acknowledged {
                acknowledged = now - before;
                self.control.acknowledge(acknowledged)?;
            }
            let is_done = if self.reconciles {
                self.meter.newest() >= started.last && since.elapsed() >= CALM
            } else {
                self.has(started)
            };
            if is_done {
                return Ok(if self.reconciles { cpu } else { measured.cpu() });
            }
            thread::sleep(LOOK);
        }
        Err(io::Error::other(format!("version {} did not come within {PATIENCE:?}", started.last)))
    }

    pub(crate) fn has(&self, started: &Started) -> bool {
        version(&self.subject.version(&started.namespace, &started.name)) >= started.last
    }

    /// Until the last reconcile, or now.
    pub(crate) fn wall(&self, measured: &Window, began: u64) -> Duration {
        if self.reconciles {
            Duration::from_nanos(self.meter.last_at().saturating_sub(began))
        } else {
            measured.wall()
        }
    }

    pub(crate) fn line(&self, phase: &str, cpu: u64, wall: Duration, count: u64) -> Line {
        let each = count.max(1) as f64;
        Line::of(phase)
            .with("count", count)
            .with("cpu_us", cpu as f64 / 1e3 / each)
            .with("wall_s", wall.as_secs_f64())
            .with("per_s", each / wall.as_secs_f64())
    }

    fn used(&self) -> u64 {
        self.steady.saturating_sub(self.start).max(1)
    }

    fn each(&self, resident: u64) -> f64 {
        resident.saturating_sub(self.start) as f64 / 1e3 / self.args.objects as f64
    }
}

/// Fails unless each was seen exactly once.
pub(crate) fn once(label: &str, seen: u64, due: u64) -> io::Result<()> {
    if seen == due {
        return Ok(());
    }
    Err(io::Error::other(format!("{seen} {label}, not {due}: void")))
}

pub(crate) fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub(crate) fn until(label: &str, done: impl Fn() -> bool) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("{label} did not come within {PATIENCE:?}")));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
