//! Coverage of an operator by tests: ends and reasons of its reconciles, conditions, Events.
//!
//! Conditions and Events are read from the operator's own requests, so that they count on every
//! server.

// DESIGN.md, 268: Coverage is read from requests, and merged in a folder

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_runtime::controller::{ErasedController, ObservedReconcile, ReconcileEnd};

use crate::testing::target::RequestTarget;

/// Variable that names a folder for the coverage of a whole test run.
const FOLDER: &str = "WINDLASS_COVERAGE";
/// Name of the table in it.
const TABLE: &str = "coverage.txt";
/// Name of the file in it with the counts of all processes.
const COUNTS: &str = "counts.json";
/// Name of the file in it that a process locks while it writes there.
const LOCK: &str = "coverage.lock";
/// Most rows of one table.
const MOST: usize = 1000;

/// Counts by row, in tables by their title.
type Tables = BTreeMap<String, BTreeMap<String, u64>>;

/// Coverage of the operators of this process so far.
static OF_PROCESS: Mutex<StoredCoverage> = Mutex::new(StoredCoverage::new());

/// Ends and reasons of reconciles, conditions and Events that a test has seen, from
/// [`RunningOperator::coverage`](super::super::RunningOperator::coverage).
///
/// Ends, and conditions that a controller [keeps](windlass_runtime::controller::OwnsConditions),
/// have the row `never` when no test has seen them. The `Display` of a report is a table.
///
/// With the variable `WINDLASS_COVERAGE` naming a folder, each operator that ends adds its coverage
/// there, also from other processes; `coverage.txt` is the table of all since the folder was made:
///
/// ```text
/// WINDLASS_COVERAGE=target/coverage cargo test && cat target/coverage/coverage.txt
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageReport {
    tables: Tables,
}

impl CoverageReport {
    /// Returns the rows of the given controllers, all of them `never`.
    pub(in crate::testing) fn of(controllers: &[std::sync::Arc<dyn ErasedController>]) -> Self {
        let mut report = Self::default();
        for controller in controllers {
            let table = format!("controller {}", controller.name());
            for end in ["succeeded", "requeued", "waited", "failed"] {
                report.count(&table, end, 0);
            }
            let kind = controller.planned_kind().map(|info| info.group_resource().to_string());
            for type_ in controller.kept_conditions() {
                let table = format!("condition {type_} of {}", kind.clone().unwrap_or_default());
                ["True", "False"].iter().for_each(|status| report.count(&table, status, 0));
            }
        }
        report
    }

    /// Combines the coverage of two operators or tests.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for (table, rows) in &other.tables {
            rows.iter().for_each(|(row, count)| self.count(table, row, *count));
        }
        self
    }

    /// Returns the number of times that a row was seen:
    /// `count("condition Ready of websites.example.dev", "True")`,
    /// `count("controller sites", "failed")`, `count("events", "Warning ChildTaken")`. 0 for an
    /// unknown one.
    pub fn seen(&self, table: &str, row: &str) -> u64 {
        let rows = self.tables.get(table);
        rows.and_then(|rows| rows.get(row)).copied().unwrap_or_default()
    }

    /// Returns a report of one Event, seen a number of times.
    #[cfg(test)]
    pub(super) fn of_events(row: &str, count: u64) -> Self {
        let mut report = Self::default();
        report.count("events", row, count);
        report
    }

    fn count(&mut self, table: &str, row: &str, count: u64) {
        let rows = self.tables.entry(table.to_owned()).or_default();
        if rows.len() < MOST || rows.contains_key(row) {
            *rows.entry(row.to_owned()).or_default() += count;
        }
    }

    /// Counts the end of a reconcile, and its reasons.
    pub(super) fn reconciled(&mut self, reconcile: &ObservedReconcile, end: &ReconcileEnd) {
        let table = format!("controller {}", reconcile.controller);
        let row = match end {
            ReconcileEnd::Succeeded => "succeeded",
            ReconcileEnd::Requeued(_) => "requeued",
            ReconcileEnd::Waited(_) => "waited",
            ReconcileEnd::Failed => "failed",
            ReconcileEnd::Skipped => "skipped",
            ReconcileEnd::Dropped => "dropped",
        };
        self.count(&table, row, 1);
        if let ReconcileEnd::Waited(reason) = end {
            self.count(&table, &format!("waited for {reason}"), 1);
        }
        for reason in reconcile.reasons.split(", ") {
            // A read names its object behind its kind.
            let words: Vec<&str> = reason.split(' ').collect();
            let words =
                if words.first() == Some(&"reads") { &words[..words.len().min(2)] } else { &words };
            self.count(&table, &format!("because of: {}", words.join(" ")), 1);
        }
    }

    /// Counts the conditions of a write that succeeded, and its Event.
    pub(super) fn wrote(&mut self, target: &RequestTarget, body: &Value, is_done: bool) {
        if !is_done {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or("Unknown").to_owned();
        if target.plural == "events" {
            if !body["reason"].is_null() {
                let row = format!("{} {}", text(&body["type"]), text(&body["reason"]));
                self.count("events", &row, 1);
            }
            return;
        }
        let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
        for condition in conditions {
            let table = format!("condition {} of {}", text(&condition["type"]), target.resource());
            self.count(&table, &text(&condition["status"]), 1);
            if let Some(reason) = condition["reason"].as_str().filter(|reason| !reason.is_empty()) {
                let row = format!("{} {reason}", text(&condition["status"]));
                self.count(&table, &row, 1);
            }
        }
    }

    /// Adds the coverage of an operator that ends to the folder, if one is named.
    pub(in crate::testing) fn keep(&self) {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let folder = Path::new(&folder);
        // Locked until the file is written, so that an earlier state never replaces a later one.
        if let Err(error) = OF_PROCESS.lock().add(self, folder) {
            eprintln!("cannot add the coverage of this test to {}: {error}", folder.display());
        }
    }
}

/// The coverage that a process keeps in a folder whose files cannot be locked.
#[derive(Debug)]
pub(super) struct StoredCoverage {
    all: CoverageReport,
    /// The file of this process, once it has one.
    own: Option<PathBuf>,
}

impl StoredCoverage {
    pub(super) const fn new() -> Self {
        Self { all: CoverageReport { tables: Tables::new() }, own: None }
    }

    /// Adds a report to the counts of all processes, and writes their table.
    ///
    /// # Errors
    /// Those of the files.
    pub(super) fn add(&mut self, report: &CoverageReport, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        // One process at a time, or counts could be replaced by some without the latest ones.
        let lock = OpenOptions::new().create(true).append(true).open(folder.join(LOCK))?;
        match lock.lock() {
            // One file, since cargo-nextest starts a process for each test: to read a file of each
            // process would take longer from test to test.
            Ok(()) => {
                let counts = folder.join(COUNTS);
                let all = read(&counts).and(report);
                replace(&counts, &json!(all.tables).to_string())?;
            }
            Err(_) => self.add_own(report, folder)?,
        }
        replace(&folder.join(TABLE), &merged(folder)?.to_string())
    }

    /// Adds a report to the counts of this process, in a file of its own. The next process that
    /// writes makes up for a table that lacks the latest counts.
    pub(super) fn add_own(&mut self, report: &CoverageReport, folder: &Path) -> io::Result<()> {
        self.all = std::mem::take(&mut self.all).and(report);
        let own = match self.own.take() {
            Some(own) => own,
            None => new_file(folder)?,
        };
        replace(&own, &json!(self.all.tables).to_string())?;
        self.own = Some(own);
        Ok(())
    }
}

/// Creates a file for the counts of this process. Numbers of processes come again: on a machine
/// after a while, and in containers that share a folder at once.
fn new_file(folder: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut counter = 0_u32;
    loop {
        let path = folder.join(format!("{process}-{counter}.json"));
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => counter += 1,
            other => return other.map(|_| path),
        }
    }
}

/// Returns the coverage of all processes.
fn merged(folder: &Path) -> io::Result<CoverageReport> {
    let mut all = CoverageReport::default();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            all = all.and(&read(&path));
        }
    }
    Ok(all)
}

/// Returns the counts of a file; none of one that is absent, or half of one.
fn read(path: &Path) -> CoverageReport {
    let tables = std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    CoverageReport { tables: tables.unwrap_or_default() }
}

/// Replaces a file at once: others read it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}

impl fmt::Display for CoverageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (table, rows)) in self.tables.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{table}")?;
            for (row, count) in rows {
                let count = if *count == 0 { "never".to_owned() } else { count.to_string() };
                writeln!(f, "  {row:<60} {count:>8}")?;
            }
        }
        Ok(())
    }
}
