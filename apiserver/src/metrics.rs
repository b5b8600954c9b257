//! Counters of requests, under the names that kube-apiserver gives them.
//!
//! Labels are the names of served resources, never texts of clients, and the number of series is
//! bounded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the buckets of durations, in milliseconds.
const BUCKETS: [u64; 23] = [
    5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
    10_000, 15_000, 20_000, 30_000, 45_000, 60_000,
];
/// Most series of a metric; further requests are not counted.
const SERIES: usize = 4096;

/// Labels of a request's series.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    /// Verb in capital letters.
    pub(crate) verb: String,
    /// API group; empty unless the resource is served.
    pub(crate) group: String,
    /// Version; empty unless the resource is served.
    pub(crate) version: String,
    /// Plural; empty unless the resource is served.
    pub(crate) resource: String,
    /// Subresource; may be empty.
    pub(crate) subresource: String,
    /// `resource`, `namespace` or `cluster`; empty for paths.
    pub(crate) scope: &'static str,
    /// `All` for a dry run.
    pub(crate) dry_run: &'static str,
}

impl Labels {
    /// Whether the request only reads.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.verb.as_str(), "GET" | "LIST" | "WATCH" | "HEAD")
    }

    /// Returns the labels, sorted, as they are written; without the code.
    fn text(&self, with_dry_run: bool) -> String {
        let Labels { verb, group, version, resource, subresource, scope, dry_run } = self;
        let dry_run = if with_dry_run { format!("dry_run=\"{dry_run}\",") } else { String::new() };
        format!(
            "component=\"apiserver\",{dry_run}group=\"{group}\",resource=\"{resource}\",\
             scope=\"{scope}\",subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\""
        )
    }
}

/// Durations of requests by bucket.
#[derive(Clone, Debug, Default)]
struct Durations {
    /// Number of requests in each bucket; the last bucket is above all bounds.
    buckets: [u64; BUCKETS.len() + 1],
    sum: Duration,
}

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    totals: Mutex<BTreeMap<(Labels, u16), u64>>,
    durations: Mutex<BTreeMap<Labels, Durations>>,
    watches: Mutex<BTreeMap<Labels, u64>>,
    reading: AtomicI64,
    writing: AtomicI64,
}

/// A running request; ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest<'a>(&'a AtomicI64);

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running watch; ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunningWatch {
    metrics: Arc<Metrics>,
    labels: Labels,
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        if let Some(count) = self.metrics.watches.lock().get_mut(&self.labels) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Metrics {
    /// Counts a request other than a watch as running.
    pub(crate) fn begin(&self, labels: &Labels) -> RunningRequest<'_> {
        let counter = if labels.is_read() { &self.reading } else { &self.writing };
        counter.fetch_add(1, Ordering::Relaxed);
        RunningRequest(counter)
    }

    /// Counts a watch as running.
    pub(crate) fn watch(self: &Arc<Self>, labels: Labels) -> RunningWatch {
        let mut watches = self.watches.lock();
        if watches.len() < SERIES || watches.contains_key(&labels) {
            *watches.entry(labels.clone()).or_default() += 1;
        }
        RunningWatch { metrics: self.clone(), labels }
    }

    /// Counts an answered request.
    pub(crate) fn count(&self, labels: Labels, code: u16, duration: Duration) {
        let mut totals = self.totals.lock();
        let key = (labels, code);
        if totals.len() >= SERIES && !totals.contains_key(&key) {
            return;
        }
        let labels = key.0.clone();
        *totals.entry(key).or_default() += 1;
        drop(totals);
        if labels.verb == "WATCH" {
            return;
        }
        // Bounded by `totals`, which was checked above.
        let mut durations = self.durations.lock();
        let held = durations.entry(labels).or_default();
        let bucket = BUCKETS.partition_point(|bound| Duration::from_millis(*bound) < duration);
        if let Some(count) = held.buckets.get_mut(bucket) {
            *count += 1;
        }
        held.sum += duration;
    }

    /// Returns all counters in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        head(
            &mut out,
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests that run now, watches left out.",
        );
        for (kind, counter) in [("mutating", &self.writing), ("readOnly", &self.reading)] {
            let count = counter.load(Ordering::Relaxed);
            line(
                &mut out,
                "apiserver_current_inflight_requests",
                &format!("request_kind=\"{kind}\""),
                count,
            );
        }
        head(&mut out, "apiserver_longrunning_requests", "gauge", "Watches that run now.");
        for (labels, count) in &*self.watches.lock() {
            line(&mut out, "apiserver_longrunning_requests", &labels.text(false), count);
        }
        head(
            &mut out,
            "apiserver_request_duration_seconds",
            "histogram",
            "Durations of answered requests.",
        );
        for (labels, durations) in &*self.durations.lock() {
            durations.write(&mut out, &labels.text(true));
        }
        head(&mut out, "apiserver_request_total", "counter", "Answered requests.");
        for ((labels, code), count) in &*self.totals.lock() {
            let labels = format!("code=\"{code}\",{}", labels.text(true));
            line(&mut out, "apiserver_request_total", &labels, count);
        }
        out
    }
}

impl Durations {
    /// Writes the histogram of a request.
    fn write(&self, out: &mut String, labels: &str) {
        const NAME: &str = "apiserver_request_duration_seconds";
        let mut count = 0;
        for (index, held) in self.buckets.iter().enumerate() {
            count += held;
            let bound = BUCKETS.get(index).map(|bound| (*bound as f64 / 1000.0).to_string());
            let bound = bound.as_deref().unwrap_or("+Inf");
            let labels = format!("{labels},le=\"{bound}\"");
            line(out, &format!("{NAME}_bucket"), &labels, count);
        }
        line(out, &format!("{NAME}_sum"), labels, self.sum.as_secs_f64());
        line(out, &format!("{NAME}_count"), labels, count);
    }
}

/// Returns the figures of the process, as far as the system tells them, in the text format of
/// Prometheus.
pub(crate) fn process(started: i64) -> String {
    let mut out = String::new();
    let mut gauge = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            head(&mut out, name, kind, help);
            out.push_str(&format!("{name} {value}\n"));
        }
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
    };
    let times = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces; it ends at the last parenthesis.
    let fields = times.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |index: usize| fields.split_whitespace().nth(index)?.parse::<f64>().ok();
    // User and system time, in hundredths of a second.
    let seconds = ticks(11).zip(ticks(12)).map(|(user, system)| (user + system) / 100.0);
    gauge("process_cpu_seconds_total", "counter", "Processor time of the process.", seconds);
    let resident = size("VmRSS:");
    gauge("process_resident_memory_bytes", "gauge", "Memory of the process.", resident);
    let started = Some(started as f64);
    gauge("process_start_time_seconds", "gauge", "Start of the server since 1970.", started);
    gauge(
        "process_virtual_memory_bytes",
        "gauge",
        "Address space of the process.",
        size("VmSize:"),
    );
    out
}

/// Writes the head of a metric.
fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

/// Writes a value.
fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    out.push_str(&format!("{name}{{{labels}}} {value}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(verb: &str) -> Labels {
        Labels { verb: verb.to_owned(), resource: "pods".to_owned(), ..Labels::default() }
    }

    #[test]
    fn requests_are_counted_by_code_and_their_durations_by_bucket() {
        let metrics = Metrics::default();
        for (code, time) in [(200, 5), (200, 30), (404, 70_000)] {
            metrics.count(labels("GET"), code, Duration::from_millis(time));
        }
        let text = metrics.text();
        let has = |name: &str, rest: &str| {
            text.lines().any(|line| line.starts_with(name) && line.ends_with(rest))
        };
        assert!(has("apiserver_request_total{code=\"200\"", "} 2"), "{text}");
        assert!(has("apiserver_request_total{code=\"404\"", "} 1"), "{text}");
        let buckets = "apiserver_request_duration_seconds_bucket{";
        assert!(has(buckets, "le=\"0.005\"} 1") && has(buckets, "le=\"0.05\"} 2"), "{text}");
        assert!(has(buckets, "le=\"60\"} 2") && has(buckets, "le=\"+Inf\"} 3"), "{text}");
    }

    #[test]
    fn requests_and_watches_count_while_they_run() {
        let metrics = Arc::new(Metrics::default());
        let (running, watching) = (metrics.begin(&labels("POST")), metrics.watch(labels("WATCH")));
        let has = |line: &str| metrics.text().lines().any(|held| held == line);
        assert!(has("apiserver_current_inflight_requests{request_kind=\"mutating\"} 1"));
        let watches = |count| {
            let labels = labels("WATCH").text(false);
            format!("apiserver_longrunning_requests{{{labels}}} {count}")
        };
        assert!(has(&watches(1)));
        drop((running, watching));
        assert!(has("apiserver_current_inflight_requests{request_kind=\"mutating\"} 0"));
        assert!(has(&watches(0)));
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let metrics = Metrics::default();
        for code in 0..10_000 {
            metrics.count(labels("GET"), code, Duration::ZERO);
        }
        assert_eq!(metrics.totals.lock().len(), SERIES);
    }
}
