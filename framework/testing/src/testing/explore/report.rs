//! The report of an exploration, in sentences.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::saved::{self, Moment};
use super::state::Masks;

/// A fault that runs of an exploration have shown.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Kind of the fault, such as "the end differs".
    pub(super) heading: String,
    /// The disturbances, a sentence each.
    pub(super) caused: Vec<String>,
    /// The first write that differed.
    pub(super) first: String,
    /// The reconcile of that write, with its reasons.
    pub(super) because: String,
    /// The differences.
    pub(super) details: Vec<String>,
    /// Seed of the run.
    pub(super) seed: u64,
    /// Moments of its disturbances.
    pub(super) moments: Vec<Moment>,
    /// Name of the variable that repeats the run.
    pub(super) variable: &'static str,
    /// Text that repeats the run: seed and plan, or seed and number of faults.
    pub(super) replay: String,
    /// Plans of other runs that differed first in the same write.
    pub(super) others: Vec<String>,
    /// Real time from the start of the exploration to the first of these runs' ends.
    pub(super) after: Duration,
    /// Text by which findings are grouped.
    pub(super) cause: String,
}

impl Finding {
    /// Returns the fault in a few words, such as "the end differs".
    pub fn heading(&self) -> &str {
        &self.heading
    }

    /// Returns the differences, a sentence each.
    pub fn details(&self) -> &[String] {
        &self.details
    }

    /// Returns the value of `WINDLASS_EXPLORE`, or of `WINDLASS_SIMULATE`, that repeats this run
    /// alone.
    pub fn replay(&self) -> &str {
        &self.replay
    }

    /// Returns the real time from the start of the exploration until this was found.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// Writes the finding into a file that [`Exploration::replay`](super::Exploration::replay)
    /// reads, as a test for later versions of the operator.
    ///
    /// The file names the moments in words: "the second delete of this object", for example. The
    /// findings of a [simulation](fn@super::simulate) have no such moments; their seeds repeat
    /// them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut sentences = vec![self.heading.clone()];
        sentences.extend(self.caused.iter().chain(&self.details).cloned());
        std::fs::write(path, saved::written(self.seed, &self.moments, &sentences))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading)?;
        if self.caused.is_empty() {
            writeln!(f, "   done:   nothing was disturbed")?;
        }
        for caused in &self.caused {
            writeln!(f, "   done:   {caused}")?;
        }
        if !self.first.is_empty() {
            writeln!(f, "   first write that differed: {}", self.first)?;
        }
        if !self.because.is_empty() {
            writeln!(f, "   its reconcile: {}", self.because)?;
        }
        for detail in self.details.iter().take(12) {
            writeln!(f, "   {detail}")?;
        }
        if self.details.len() > 12 {
            writeln!(f, "   … and {} more differences", self.details.len() - 12)?;
        }
        if !self.others.is_empty() {
            let shown: Vec<&str> = self.others.iter().take(4).map(String::as_str).collect();
            writeln!(
                f,
                "   {} more runs came to the same write: {}",
                self.others.len(),
                shown.join("; ")
            )?;
        }
        write!(f, "   alone, with its writes: {}='{}'", self.variable, self.replay)
    }
}

/// Outcome of an exploration.
#[derive(Clone, Debug, Default)]
pub struct ExplorationReport {
    pub(super) findings: Vec<Finding>,
    pub(super) runs: usize,
    pub(super) plans: usize,
    pub(super) elapsed: Duration,
    pub(super) seed: u64,
    /// Whether two runs of one seed differed.
    pub(super) is_random: bool,
    /// Longest virtual time from the last disturbance of a run to the operator's last change.
    pub(super) longest_rest: Duration,
    /// Places that the operator renews all the time.
    pub(super) renewed: Arc<Masks>,
}

impl ExplorationReport {
    /// Returns the findings, one for each cause; those of fewer disturbances first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns the longest virtual time that the operator needed to come to rest: from the end of
    /// the last disturbance, or the workload's last change, to the operator's last change.
    pub fn longest_rest(&self) -> Duration {
        self.longest_rest
    }

    /// Returns the real time of the exploration.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Adds a finding, or another run to the one of the same cause.
    pub(super) fn add(&mut self, finding: Finding) {
        let same = self.findings.iter_mut().find(|known| known.cause == finding.cause);
        match same {
            Some(known) => known.others.push(finding.replay),
            None => self.findings.push(finding),
        }
    }
}

/// Returns the line about places that the operator renews all the time; empty without any.
pub(super) fn not_compared(renewed: &Masks) -> String {
    if renewed.is_empty() {
        return String::new();
    }
    let places = renewed.iter().map(|(resource, path)| format!("{path} of {resource}"));
    let places: Vec<String> = places.collect();
    format!("\nnot compared, since the operator renews it all the time: {}", places.join(", "))
}

impl fmt::Display for ExplorationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let Self { findings, runs, plans, seed, is_random, .. } = self;
        write!(
            f,
            "{} findings in {runs} runs of {plans} plans, {seconds:.1} s, seed {seed}",
            findings.len()
        )?;
        let rest = self.longest_rest.as_secs_f64();
        write!(f, "\nat rest within {rest:.1} s of virtual time after the last disturbance")?;
        write!(f, "{}", not_compared(&self.renewed))?;
        if *is_random {
            write!(
                f,
                "\ntwo runs of one seed differed: the operator reads real time, real randomness or a real network, \
                 so that findings may not repeat"
            )?;
        }
        for (index, finding) in findings.iter().enumerate() {
            write!(f, "\n\n{}. {finding}", index + 1)?;
        }
        Ok(())
    }
}
