//! Phases about parts: lookups, the work queue, reconciles in flight, reconciles that fail.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{CALM, PATIENCE, Work, once, quantile, until};
use crate::{Delays, Line, Meter, Window, nanos};

/// Lookups end after so long, if there were so many.
const LONG: Duration = Duration::from_secs(4);
const FEW: u64 = 400;

impl Work<'_> {
    pub(crate) fn index(&mut self, lookups: u64, events: u64) -> io::Result<()> {
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

    pub(crate) fn idle(&mut self, seconds: u64) {
        let measured = Window::begin();
        thread::sleep(Duration::from_secs(seconds));
        Line::of("idle").with("cpu_ms_per_s", measured.cpu() as f64 / 1e6 / seconds as f64).print();
    }

    pub(crate) fn queue(&mut self, adds: u64) {
        let measured = Window::begin();
        let Some(runs_per_add) = self.subject.queue(adds) else { return };
        adds_line("queue", adds, &measured, runs_per_add);
    }

    pub(crate) fn own_queue(&mut self, adds: u64) {
        let measured = Window::begin();
        let Some(runs_per_add) = self.subject.own_queue(adds) else { return };
        adds_line("own", adds, &measured, runs_per_add);
    }

    /// Very many delayed keys, of which some fall due during the measurement.
    pub(crate) fn delays(&mut self, delays: &Delays) -> io::Result<()> {
        let Some(mut seen) = self.subject.delays(delays) else { return Ok(()) };
        seen.late.sort_unstable();
        let handed = seen.late.len() as u64;
        if handed != delays.due || seen.left != delays.keys - delays.due || seen.is_too_late {
            return Err(io::Error::other(format!(
                "{handed} keys were handed out and {} are left of {delays:?}, too late: {}: void",
                seen.left, seen.is_too_late
            )));
        }
        let ms = |nanos: u64| nanos as f64 / 1e6;
        Line::of("delays")
            .with("keys", delays.keys)
            .with("due", delays.due)
            .with("late_p50_ms", ms(quantile(&seen.late, 0.5)))
            .with("late_p99_ms", ms(quantile(&seen.late, 0.99)))
            .with("late_max_ms", ms(quantile(&seen.late, 1.0)))
            .with("bytes_per_key", seen.bytes as f64 / delays.keys as f64)
            .with("cpu_ns_per_add", seen.cpu as f64 / delays.keys as f64)
            .print();
        Ok(())
    }

    /// Every object once, while reconciles sleep; as many at once as there are objects.
    pub(crate) fn flight(&mut self, milliseconds: u64) -> io::Result<()> {
        self.in_flight("flight", milliseconds)
    }

    /// The same without a controller.
    pub(crate) fn bare(&mut self, milliseconds: u64) -> io::Result<()> {
        if !self.subject.bare() {
            return Ok(());
        }
        // A late listener first receives every object.
        let count = self.args.objects;
        until("the first tasks", || self.meter.reconciles() >= count)?;
        self.reconciles = true;
        self.in_flight("bare", milliseconds)
    }

    fn in_flight(&mut self, phase: &str, milliseconds: u64) -> io::Result<()> {
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
        self.line(phase, cpu, wall, count).with("sleep_ms", milliseconds).print();
        Ok(())
    }

    pub(crate) fn tasks(&mut self, milliseconds: u64) {
        let count = self.args.objects;
        let measured = Window::begin();
        if self.subject.tasks(count, Duration::from_millis(milliseconds)) {
            let (cpu, wall) = (measured.cpu(), measured.wall());
            self.line("tasks", cpu, wall, count).with("sleep_ms", milliseconds).print();
        }
    }

    /// Changes at a steady rate; every tenth reconcile fails and is tried again after a backoff.
    pub(crate) fn failing(&mut self, rate: u64, seconds: u64) -> io::Result<()> {
        // Each change is reconciled well once, and nine changes bring a failure.
        let changes = rate * seconds * 9 / 10;
        self.mark()?;
        let before = self.meter.reconciles();
        self.meter.fail();
        let measured = Window::begin();
        let began = nanos();
        let order = format!("events count={changes} rate={}", rate * 9 / 10);
        let started = self.control.start(&order)?;
        let cpu = self.follow(&started, &measured, before, false)?;
        let wall = self.wall(&measured, began);
        let (failed, given_up) = self.meter.failed();
        let reconciles = self.meter.reconciles() - before;
        self.check(&format!("events={changes}"))?;
        let due = Meter::due_to_fail(started.last, changes);
        once("reconciles", reconciles, changes + due)?;
        once("reconciles that failed", failed, due)?;
        if given_up > 0 {
            return Err(io::Error::other(format!(
                "{given_up} failures were not tried again: void"
            )));
        }
        let seconds = wall.as_secs_f64();
        self.line("failing", cpu, wall, reconciles)
            .with("reconciles_per_s", reconciles as f64 / seconds)
            .with("failed_share", failed as f64 / reconciles as f64)
            .with("cpu_ms_per_s", cpu as f64 / 1e6 / seconds)
            .print();
        Ok(())
    }
}

fn adds_line(phase: &str, adds: u64, measured: &Window, runs_per_add: f64) {
    Line::of(phase)
        .with("adds", adds)
        .with("cpu_ns_per_add", measured.cpu() as f64 / adds as f64)
        .with("runs_per_add", runs_per_add)
        .print();
}
