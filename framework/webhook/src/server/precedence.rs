//! Precedence among replicas of one operator whose webhooks differ, as during a rolling upgrade.
//!
//! The writer of a configuration adds an annotation: a hash of the written webhooks, and the start
//! of the process. A process that started before the one of the annotation leaves other webhooks
//! alone; one that started later replaces them. A process that left them alone for five minutes
//! asks by the annotation, and any process with these webhooks answers there; without an answer
//! within a minute they belong to no process any more, and are replaced.

// DESIGN.md, 307: The replica that started last decides about the webhooks of its operator
// DESIGN.md, 244: A start that finds its webhooks right is their last start

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use windlass_core::{Error, ErrorKind};

use crate::configuration::hash;

/// Annotation of a configuration about its writer.
pub(crate) const WRITER: &str = "windlass.dev/webhooks-writer";

/// Time after which a process asks whether another one with the stored webhooks still runs.
const ASK_AFTER: Duration = Duration::from_secs(300);
/// Time for the answer: four looks of the other process.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest time between two readings that counts as waiting for the answer: an API server that this
/// process cannot read may not take the answer either.
const LONGEST_GAP: Duration = Duration::from_secs(30);

/// The process that wrote a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigurationWriter {
    /// Hash of the webhooks without their authorities.
    webhooks: String,
    /// Start of the process, in milliseconds since 1970.
    started: i64,
    /// Time of the question whether a process with these webhooks runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<i64>,
    /// Time of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<i64>,
}

impl ConfigurationWriter {
    /// Returns this process, with the webhooks that it writes.
    pub(super) fn this(webhooks: &impl Serialize, started: Timestamp) -> Result<Self, Error> {
        let mut value = serde_json::to_value(webhooks).map_err(|error| {
            Error::new(ErrorKind::Other, "cannot compare webhook configurations").because(error)
        })?;
        for entry in value.as_array_mut().into_iter().flatten() {
            if let Some(client) = entry.get_mut("clientConfig").and_then(Value::as_object_mut) {
                client.remove("caBundle");
            }
        }
        let webhooks = format!("{:016x}", hash(&value.to_string()));
        let started = started.as_millisecond();
        Ok(Self { webhooks, started, asked: None, answered: None })
    }

    /// Reads the annotation of a configuration; a spoilt one is none.
    pub(super) fn of(meta: &ObjectMeta) -> Option<Self> {
        serde_json::from_str(meta.annotations.as_ref()?.get(WRITER)?).ok()
    }

    /// Writes the annotation.
    pub(super) fn write(&self, meta: &mut ObjectMeta) {
        if let Ok(text) = serde_json::to_string(self) {
            let annotations: &mut BTreeMap<_, _> = meta.annotations.get_or_insert_default();
            annotations.insert(WRITER.to_owned(), text);
        }
    }

    /// Whether both have the same webhooks.
    pub(super) fn has_webhooks_of(&self, other: &Self) -> bool {
        self.webhooks == other.webhooks
    }

    /// Returns the writer with the later start of both, if both have the same webhooks: a repair by
    /// an older replica must not let a version in between decide.
    pub(super) fn no_earlier_than(self, stored: Option<&Self>) -> Self {
        let same = stored.filter(|stored| stored.has_webhooks_of(&self));
        let started = same.map_or(self.started, |stored| self.started.max(stored.started));
        Self { started, ..self }
    }

    /// Returns the writer with the start of this process if that is later, and with an answer if
    /// another process asks; `None` when the annotation is right. A start that found the right
    /// webhooks decides like one that wrote them.
    pub(super) fn renewed(self, this: &Self, now: Timestamp) -> Option<Self> {
        let is_asked = self.is_asked();
        if !is_asked && this.started <= self.started {
            return None;
        }
        let new = Self { started: self.started.max(this.started), ..self };
        Some(if is_asked { new.answer(now) } else { new })
    }

    /// Returns this process as one that started after a writer of other webhooks.
    pub(super) fn after(self, other: Option<&Self>) -> Self {
        let other = other.filter(|other| !other.has_webhooks_of(&self));
        let started =
            other.map_or(self.started, |other| self.started.max(other.started.saturating_add(1)));
        Self { started, ..self }
    }

    /// Returns the start of the process.
    pub(super) fn started(&self) -> Timestamp {
        Timestamp::from_millisecond(self.started).unwrap_or_default()
    }

    /// Whether another process asks for one with these webhooks.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns the writer with a question.
    pub(super) fn ask(self, now: Timestamp) -> Self {
        Self { asked: Some(now.as_millisecond()), ..self }
    }

    /// Returns the writer with the answer.
    pub(super) fn answer(self, now: Timestamp) -> Self {
        Self { asked: None, answered: Some(now.as_millisecond()), ..self }
    }

    /// Whether this one decides: it started later.
    fn precedes(&self, other: &Self) -> bool {
        (self.started, &self.webhooks) > (other.started, &other.webhooks)
    }
}

/// Treatment of a configuration with the webhooks of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    /// It is left alone.
    Leave {
        /// Whether it was not before.
        is_new: bool,
    },
    /// It is left alone, and its writer is asked whether it runs.
    Ask,
    /// It is replaced.
    Replace,
}

/// Knowledge of a process about another version whose webhooks it leaves alone.
#[derive(Debug, Default)]
pub(super) struct OtherVersion {
    /// The writer, and the moment since which this process knows of no answer.
    left: Option<(ConfigurationWriter, Instant)>,
    /// The last reading of a question.
    read_at: Option<Instant>,
}

impl OtherVersion {
    /// Decides about a configuration whose webhooks another version wrote.
    pub(super) fn judge(
        &mut self,
        this: &ConfigurationWriter,
        stored: &ConfigurationWriter,
        now: Instant,
    ) -> Precedence {
        if this.precedes(stored) {
            self.left = None;
            return Precedence::Replace;
        }
        let known = self.left.take().filter(|(known, _)| known.has_webhooks_of(stored));
        let is_new = known.is_none();
        // A further question and an answer, of whomever, begin the time anew.
        let same = known.filter(|(known, _)| known == stored);
        let is_gap = stored.is_asked()
            && self.read_at.is_some_and(|last| now.saturating_duration_since(last) > LONGEST_GAP);
        self.read_at = stored.is_asked().then_some(now);
        let since = same.filter(|_| !is_gap).map_or(now, |(_, since)| since);
        self.left = Some((stored.clone(), since));
        match stored.is_asked() {
            true if now - since > ANSWER => Precedence::Replace,
            false if now - since > ASK_AFTER => Precedence::Ask,
            _ => Precedence::Leave { is_new },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn writer(webhooks: &str, started: i64) -> ConfigurationWriter {
        ConfigurationWriter { webhooks: webhooks.to_owned(), started, asked: None, answered: None }
    }

    #[test]
    fn webhooks_with_other_authorities_are_of_one_version() {
        let with = |bundle: &str, path: &str| {
            let webhooks = json!([{ "clientConfig": { "caBundle": bundle, "path": path } }]);
            ConfigurationWriter::this(&webhooks, Timestamp::UNIX_EPOCH).unwrap()
        };
        assert!(with("a", "/x").has_webhooks_of(&with("b", "/x")));
        assert!(!with("a", "/x").has_webhooks_of(&with("a", "/y")));
    }

    #[test]
    fn an_annotation_is_read_as_it_was_written_and_a_spoilt_one_is_none() {
        let (mut meta, written) =
            (ObjectMeta::default(), writer("a", 7).ask(Timestamp::UNIX_EPOCH));
        assert_eq!(ConfigurationWriter::of(&meta), None);
        written.write(&mut meta);
        assert_eq!(ConfigurationWriter::of(&meta), Some(written));
        meta.annotations.as_mut().unwrap().insert(WRITER.to_owned(), "{".to_owned());
        assert_eq!(ConfigurationWriter::of(&meta), None);
    }

    #[test]
    fn a_writer_of_the_same_webhooks_keeps_the_later_start() {
        let (early, late) = (writer("a", 1), writer("a", 9));
        assert_eq!(early.clone().no_earlier_than(Some(&late)), late);
        assert_eq!(late.clone().no_earlier_than(Some(&early)), late);
        assert_eq!(early.clone().no_earlier_than(Some(&writer("b", 9))), early);
        assert_eq!(early.clone().no_earlier_than(None), early);
    }

    #[test]
    fn an_annotation_is_renewed_by_a_later_start_and_by_an_answer_alone() {
        let now = Timestamp::from_millisecond(50).unwrap();
        let stored = writer("a", 5);
        assert_eq!(stored.clone().renewed(&writer("a", 5), now), None);
        assert_eq!(stored.clone().renewed(&writer("a", 4), now), None);
        assert_eq!(stored.clone().renewed(&writer("a", 6), now), Some(writer("a", 6)));
        let asked = stored.clone().ask(now);
        assert_eq!(asked.renewed(&writer("a", 4), now), Some(stored.answer(now)));
    }

    #[test]
    fn a_process_that_replaces_other_webhooks_at_its_start_started_after_their_writer() {
        let (this, other) = (writer("a", 5), writer("b", 5));
        let after = this.clone().after(Some(&other));
        assert!(after.precedes(&other) && after.started == 6);
        assert_eq!(this.clone().after(Some(&writer("a", 9))), this);
        assert_eq!(this.clone().after(None), this);
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_answers_is_asked_every_five_minutes_and_a_silent_one_is_replaced() {
        let (old, new) = (writer("old", 1), writer("new", 2));
        let (mut other, began) = (OtherVersion::default(), Instant::now());
        let mut judge = |stored: &ConfigurationWriter, seconds| {
            other.judge(&old, stored, began + Duration::from_secs(seconds))
        };
        let left = Precedence::Leave { is_new: false };
        assert_eq!(judge(&new, 0), Precedence::Leave { is_new: true });
        assert_eq!(judge(&new, 300), left);
        assert_eq!(judge(&new, 301), Precedence::Ask);
        let asked = new.clone().ask(Timestamp::UNIX_EPOCH);
        for second in [302, 332, 362] {
            assert_eq!(judge(&asked, second), left);
        }
        let answered = asked.answer(Timestamp::UNIX_EPOCH);
        assert_eq!((judge(&answered, 363), judge(&answered, 663)), (left, left));
        assert_eq!(judge(&answered, 664), Precedence::Ask);
        // A question of another process is waited for, too.
        for (second, ms) in [(665, 1), (690, 1), (720, 2), (750, 2), (780, 2)] {
            let asked = answered.clone().ask(Timestamp::from_millisecond(ms).unwrap());
            assert_eq!(judge(&asked, second), left);
        }
        let asked = answered.clone().ask(Timestamp::from_millisecond(2).unwrap());
        // Unread for a minute, the time of the answer begins again.
        assert_eq!(
            (judge(&asked, 841), judge(&asked, 871), judge(&asked, 901)),
            (left, left, left)
        );
        assert_eq!(judge(&asked, 902), Precedence::Replace);
        // No process that started earlier replaces the later one, which replaces at once.
        assert_eq!(OtherVersion::default().judge(&new, &old, began), Precedence::Replace);
    }
}
