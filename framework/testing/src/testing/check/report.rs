//! The result of a check.

use std::fmt;

use windlass_core::error::{Error, ErrorKind};

use super::judge::ValueCounts;
use super::repeats::RepeatCounts;
use super::status::StatusOutcome;
use super::versions::VersionCounts;

/// Most differences that an error lists: a single mistake of a type gives many.
const SHOWN: usize = 5;

/// The result of [`check`](super::check).
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Kind.
    kind: String,
    /// Bytes of the definition.
    bytes: usize,
    /// Rules of the schema.
    rules: usize,
    /// Counts of the values.
    tally: ValueCounts,
    /// Counts of the values of the status.
    status: StatusOutcome,
    /// Places that the server checks less strictly than serde.
    unchecked: Vec<String>,
    /// Counts of conversions; `None` for a kind with a single version.
    versions: Option<VersionCounts>,
    /// Rules that webhooks repeat; `None` without a handler.
    repeats: Option<RepeatCounts>,
}

impl CheckReport {
    /// Puts the parts together.
    pub(super) fn new(
        kind: &str,
        bytes: usize,
        rules: usize,
        tally: ValueCounts,
        status: StatusOutcome,
        unchecked: Vec<String>,
    ) -> Self {
        let (versions, repeats) = (None, None);
        Self { kind: kind.to_owned(), bytes, rules, tally, status, unchecked, versions, repeats }
    }

    /// Adds the rules that webhooks repeat.
    pub(super) fn with_repeats(self, repeats: RepeatCounts) -> Self {
        Self { repeats: Some(repeats), ..self }
    }

    /// Adds the conversions between versions.
    pub(super) fn with_versions(self, versions: Option<VersionCounts>) -> Self {
        Self { versions, ..self }
    }

    /// The error of conversions that lose something.
    fn lossy(&self) -> Option<Error> {
        let differences = self.versions.as_ref().map(|versions| &versions.differences)?;
        let shown: Vec<&str> = differences.iter().take(SHOWN).map(String::as_str).collect();
        let message = format!(
            "objects of {} do not come back from another version as they were ({} cases, {} shown):\n- {}\n\
             Correct the functions of its conversion: one to the hub and back again must change nothing the \
             second time",
            self.kind,
            differences.len(),
            shown.len(),
            shown.join("\n- ")
        );
        (!shown.is_empty()).then(|| Error::new(ErrorKind::Usage, message))
    }

    /// Returns the number of objects that were converted to another version and back, and of
    /// objects without an equal there. Zero for a kind with a single version.
    pub fn converted(&self) -> (usize, usize) {
        self.versions.as_ref().map_or((0, 0), |tally| (tally.converted, tally.refused))
    }

    /// Returns the report, or the differences as an error.
    pub(super) fn into_result(self) -> Result<Self, Error> {
        let all =
            |tally: &ValueCounts| [&tally.lost[..], &tally.differences, &tally.misread].concat();
        let of_status = match &self.status {
            StatusOutcome::Tried(tally) => (tally.values, all(tally)),
            _ => (0, Vec::new()),
        };
        let mut found = all(&self.tally);
        found.extend(of_status.1.iter().map(|difference| format!("of its status, {difference}")));
        if found.is_empty() {
            return match self.nothing_stored().or_else(|| self.lossy()) {
                Some(error) => Err(error),
                None => Ok(self),
            };
        }
        let shown: Vec<&str> = found.iter().take(SHOWN).map(String::as_str).collect();
        let message = format!(
            "{} is read by serde and checked by the API server differently ({} of {} values; {} shown):\n- {}\n\
             Change the type or its schema so that both agree",
            self.kind,
            found.len(),
            self.tally.values + of_status.0,
            shown.len(),
            shown.join("\n- ")
        );
        Err(Error::new(ErrorKind::Usage, message))
    }

    /// The error of a check in which the server stored no object, or no status.
    fn nothing_stored(&self) -> Option<Error> {
        let (what, tally, remedy) = match &self.status {
            _ if self.tally.stored == 0 => {
                ("objects", &self.tally, "Give an object that the server accepts")
            }
            StatusOutcome::Tried(tally) if tally.stored == 0 => {
                ("statuses", tally, "Give an object with a status that the server accepts")
            }
            StatusOutcome::Tried(tally) if tally.readable == 0 => {
                return Some(self.nothing_read("statuses", tally));
            }
            _ if self.tally.readable == 0 => {
                return Some(self.nothing_read("objects", &self.tally));
            }
            _ => return None,
        };
        let refusal = tally.refusal.as_deref().unwrap_or("all of them were changed ones");
        let message = format!(
            "cannot check {}: the API server stored none of {} generated {what}, so nothing was compared; the first \
             refusal: {refusal}\n{remedy}: `check_from([…])`",
            self.kind, tally.values
        );
        Some(Error::new(ErrorKind::Usage, message))
    }

    /// Returns the error of a type that reads nothing of what was stored: a warning is about single
    /// values.
    fn nothing_read(&self, what: &str, tally: &ValueCounts) -> Error {
        let message = format!(
            "the check of {} failed: serde read none of {} stored {what}; the first reason: {}",
            self.kind,
            tally.stored,
            tally.unreadable.as_deref().unwrap_or_default()
        );
        Error::new(ErrorKind::Usage, message)
    }

    /// Returns the places that the API server checks less strictly than serde, with the reasons: an
    /// object that passes the server may be unreadable for the operator.
    pub fn unchecked(&self) -> &[String] {
        &self.unchecked
    }

    /// Returns the fields at which the webhooks seem to repeat a rule of the schema, with the rule
    /// and the remedy; empty without [`check_webhooks`](super::check_webhooks).
    pub fn repeated(&self) -> &[String] {
        self.repeats.as_ref().map_or(&[], |tally| &tally.remarks)
    }

    /// Returns the bytes of the definition; `kubectl apply` fails above 262,144.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of objects that were tried, and of those that the server stored.
    pub fn tried(&self) -> (usize, usize) {
        (self.tally.values, self.tally.stored)
    }

    /// Returns the number of values of the status that were tried, and of those that the server
    /// stored. Zero for a kind without a status, and when the server stored none of the generated
    /// objects.
    pub fn tried_status(&self) -> (usize, usize) {
        match &self.status {
            StatusOutcome::Tried(tally) => (tally.values, tally.stored),
            StatusOutcome::None | StatusOutcome::NoObject => (0, 0),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: definition accepted, {} bytes, {} rules; {} of {} objects stored, all of them readable but {}",
            self.kind,
            self.bytes,
            self.rules,
            self.tally.stored,
            self.tally.values,
            self.tally.unchecked
        )?;
        match &self.status {
            StatusOutcome::None => {}
            StatusOutcome::NoObject => {
                writeln!(f, "status not tried: the server stored no generated object")?;
            }
            StatusOutcome::Tried(tally) => writeln!(
                f,
                "{} of {} values of the status stored, all of them readable but {}",
                tally.stored, tally.values, tally.unchecked
            )?,
        }
        if let Some(tally) = &self.versions {
            writeln!(
                f,
                "{} objects came back from another version as they were, {} had no equal there",
                tally.converted, tally.refused
            )?;
        }
        if let Some(tally) = &self.repeats {
            writeln!(
                f,
                "{} objects that break one rule each were judged by the webhooks, which seem to repeat \
                 {} of the rules",
                tally.broken,
                tally.remarks.len()
            )?;
            tally.remarks.iter().try_for_each(|remark| writeln!(f, "- {remark}"))?;
        }
        if self.unchecked.is_empty() {
            return write!(f, "checked by the API server: all that serde checks");
        }
        write!(f, "not checked by the API server:")?;
        self.unchecked.iter().try_for_each(|place| write!(f, "\n- {place}"))
    }
}
