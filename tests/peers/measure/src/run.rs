//! Runs a script against a framework.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::forget_peak;
use crate::{
    Args, Control, Line, Meter, Phase, Started, Window, fingerprint, nanos, resident, version,
};

/// A look at the counters costs nothing beside what is measured.
const LOOK: Duration = Duration::from_millis(1);
/// Reconciles that are still to come do so within this.
const CALM: Duration = Duration::from_millis(100);
/// After a phase, before memory is read.
const REST: Duration = Duration::from_secs(1);
/// Nothing takes longer.
const PATIENCE: Duration = Duration::from_secs(240);
/// Lookups end after so long, if there were so many.
const LONG: Duration = Duration::from_secs(4);
const FEW: u64 = 400;

/// Namespace, name and resourceVersion of everything cached, told one by one.
pub type Visit<'a> = &'a mut dyn FnMut(&str, &str, &str);

/// What a framework has to be able to do. All of it is called from the main thread.
pub trait Subject {
    /// Begins to list and watch, and to reconcile if that was asked for.
    fn start(&mut self);
    /// Is the first list in the cache?
    fn is_synced(&self) -> bool;
    /// The resourceVersion of a cached object; empty when there is none.
    fn version(&self, namespace: &str, name: &str) -> String;
    /// Visits everything in the cache.
    fn visit(&self, visit: Visit<'_>);
    /// How many Pods of an app there are; by index where there is one.
    fn lookup(&self, app: &str) -> usize;
    /// Reconciles from now on sleep for so long.
    fn sleep(&self, _: Duration) {}
    /// So many tasks that only sleep, without a framework; false when the driver has none.
    fn tasks(&self, _count: u64, _: Duration) -> bool {
        false
    }
    /// What adds to the work queue cost, if there is a public one: runs per add.
    fn queue(&self, _: u64) -> Option<f64> {
        None
    }
}

/// What all phases share.
pub struct Work<'a> {
    args: &'a Args,
    subject: &'a mut dyn Subject,
    meter: Arc<Meter>,
    control: Control,
    /// Resident memory before anything was listed.
    start: u64,
    /// Resident memory after the latest sync.
    steady: u64,
}

/// Runs `args.phases`, prints a line for each and a last one with the hash of the cache.
pub fn run(args: &Args, meter: &Arc<Meter>, subject: &mut dyn Subject) -> io::Result<()> {
    let control = Control::connect(&args.control)?;
    let start = resident().0;
    let mut work = Work { args, subject, meter: Arc::clone(meter), control, start, steady: start };
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
            Phase::Queue { adds } => self.queue(adds),
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
        // Without a controller nobody would open the window.
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
        // Whoever lists by a stream begins to watch before it has read the list to its end: an event
        // behind the list tells when that was.
        let behind = self.control.start("events count=1 window=0")?;
        let cpu = self.follow(&behind, &measured, before, false)?;
        let wall = measured.wall();
        if !self.has(&hidden) {
            return Err(io::Error::other("the list did not bring what had changed: void"));
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

    fn index(&mut self, lookups: u64, events: u64) -> io::Result<()> {
        let apps = self.args.objects.div_ceil(20);
        let app = |at: u64| format!("app-{}", at.wrapping_mul(7919) % apps);
        // The first lookup may build the index.
        let each = self.subject.lookup(&app(0));
        self.mark()?;
        let started = match events {
            0 => None,
            _ => Some(self.control.start(&format!("events count={events} window=0"))?),
        };
        let measured = Window::begin();
        let mut taken = Vec::new();
        let mut found = 0;
        for at in 0.. {
            let is_done = match &started {
                None => at >= lookups || at >= FEW && measured.wall() > LONG,
                Some(started) => at % 64 == 0 && self.has(started),
            };
            if is_done || measured.wall() > PATIENCE {
                break;
            }
            let name = app(at);
            let begun = Instant::now();
            found += self.subject.lookup(&name);
            taken.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        let wall = measured.wall();
        self.check(&format!("events={events}"))?;
        if each != 20 || found != each * taken.len() {
            return Err(io::Error::other(format!(
                "{} lookups found {found} objects, the first {each} of 20: void",
                taken.len()
            )));
        }
        taken.sort_unstable();
        let name = if events > 0 { "index_loaded" } else { "index" };
        Line::of(name)
            .with("lookups", taken.len())
            .with("found_each", each)
            .with("found", found)
            .with("p50_us", quantile(&taken, 0.5) as f64 / 1e3)
            .with("p99_us", quantile(&taken, 0.99) as f64 / 1e3)
            .with("events_per_s", events as f64 / wall.as_secs_f64())
            .print();
        Ok(())
    }

    fn idle(&mut self, seconds: u64) {
        let measured = Window::begin();
        thread::sleep(Duration::from_secs(seconds));
        Line::of("idle").with("cpu_ms_per_s", measured.cpu() as f64 / 1e6 / seconds as f64).print();
    }

    fn queue(&mut self, adds: u64) {
        let measured = Window::begin();
        let Some(runs_per_add) = self.subject.queue(adds) else { return };
        Line::of("queue")
            .with("adds", adds)
            .with("cpu_ns_per_add", measured.cpu() as f64 / adds as f64)
            .with("runs_per_add", runs_per_add)
            .print();
    }

    /// Every object once, while reconciles sleep; as many at once as there are objects.
    fn flight(&mut self, milliseconds: u64) -> io::Result<()> {
        self.subject.sleep(Duration::from_millis(milliseconds));
        let count = self.args.objects;
        self.mark()?;
        let before = self.meter.reconciles();
        let measured = Window::begin();
        let began = nanos();
        let started = self.control.start(&format!("events count={count} window=0"))?;
        self.follow(&started, &measured, before, true)?;
        thread::sleep(Duration::from_millis(milliseconds) + CALM);
        let cpu = measured.cpu();
        let wall = self.wall(&measured, began);
        self.subject.sleep(Duration::ZERO);
        self.check(&format!("events={count}"))?;
        once("sleeping reconciles", self.meter.reconciles() - before, count)?;
        self.line("flight", cpu, wall, count).with("sleep_ms", milliseconds).print();
        Ok(())
    }

    fn tasks(&mut self, milliseconds: u64) {
        let count = self.args.objects;
        let measured = Window::begin();
        if self.subject.tasks(count, Duration::from_millis(milliseconds)) {
            let (cpu, wall) = (measured.cpu(), measured.wall());
            self.line("tasks", cpu, wall, count).with("sleep_ms", milliseconds).print();
        }
    }

    /// What is served from now on is counted.
    fn mark(&mut self) -> io::Result<()> {
        self.control.ask("mark").map(drop)
    }

    /// Fails unless exactly that was served since the mark: a phase without its work is void.
    fn check(&mut self, served: &str) -> io::Result<()> {
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
    fn follow(
        &mut self,
        started: &Started,
        measured: &Window,
        before: u64,
        each: bool,
    ) -> io::Result<u64> {
        let deadline = Instant::now() + PATIENCE;
        let mut told = 0;
        let mut seen = self.meter.reconciles();
        let mut since = Instant::now();
        let mut cpu = measured.cpu();
        while Instant::now() < deadline {
            let now = self.meter.reconciles();
            if now != seen {
                (seen, since) = (now, Instant::now());
                cpu = measured.cpu();
            }
            if each && now - before > told {
                told = now - before;
                self.control.acknowledge(told)?;
            }
            let is_done = if self.args.controller {
                self.meter.newest() >= started.last && since.elapsed() >= CALM
            } else {
                self.has(started)
            };
            if is_done {
                return Ok(if self.args.controller { cpu } else { measured.cpu() });
            }
            thread::sleep(LOOK);
        }
        Err(io::Error::other(format!("version {} did not come within {PATIENCE:?}", started.last)))
    }

    fn has(&self, started: &Started) -> bool {
        version(&self.subject.version(&started.namespace, &started.name)) >= started.last
    }

    /// Until the last reconcile, or now.
    fn wall(&self, measured: &Window, began: u64) -> Duration {
        if self.args.controller {
            Duration::from_nanos(self.meter.last_at().saturating_sub(began))
        } else {
            measured.wall()
        }
    }

    fn line(&self, phase: &str, cpu: u64, wall: Duration, count: u64) -> Line {
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

/// Fails unless there was one for each, give or take one in a hundred.
fn once(what: &str, seen: u64, due: u64) -> io::Result<()> {
    if seen.abs_diff(due) * 100 <= due {
        return Ok(());
    }
    Err(io::Error::other(format!("{seen} {what}, not {due}: void")))
}

fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn until(what: &str, done: impl Fn() -> bool) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            return Err(io::Error::other(format!("{what} did not come within {PATIENCE:?}")));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
