//! Shows the samples from their creation to their last change.

// DESIGN.md, 104: Quickstart trees are refreshed when a cache version moves

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use tokio::time::Instant;

use super::escape::escaped;
use super::logging;
use super::sample::Sample;
use super::tree::ObjectTrees;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, ResourceExt, ResourceInfo, Scope};
use windlass_runtime::manager::Running;

/// Time between two comparisons of the caches' versions, which cost no request.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time between two checks of samples that are not ready: their readiness may depend on
/// objects that no cache watches.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Time without a change after which the trees are shown.
const QUIET: Duration = Duration::from_millis(300);
/// Time after which the trees are shown although changes continue.
const LONGEST: Duration = Duration::from_secs(2);
/// Time after which trees that are not ready are shown to a waiting person.
const LATE: Duration = Duration::from_secs(3);

/// Shows trees of objects when they change.
pub(super) struct Show<'a> {
    running: &'a Running,
    /// Clock of the client: pauses and times of the output.
    clock: Clock,
    /// Kinds whose objects are shown, with all objects that they own.
    roots: Vec<ResourceInfo>,
    /// Samples that should become ready.
    awaited: Vec<&'a Sample>,
    /// Text below each tree.
    footer: String,
    /// Moment from which the time of the quickstart counts.
    began: Instant,
    /// Detects changes by the versions of the caches, without requests.
    changes: ChangeDetector,
    /// Trees that were shown last; equal trees are not shown again.
    shown: Option<ObjectTrees>,
}

impl<'a> Show<'a> {
    /// Nothing is shown yet; the time counts from here.
    pub(super) fn new(
        running: &'a Running,
        definitions: &[CustomResourceDefinition],
        awaited: Vec<&'a Sample>,
        footer: String,
    ) -> Self {
        let clock = running.client().environment().clock.clone();
        Self {
            running,
            roots: definitions.iter().filter_map(defined).collect(),
            awaited,
            footer,
            began: clock.now(),
            clock,
            changes: ChangeDetector::default(),
            shown: None,
        }
    }

    /// The clock of the operator.
    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Waits until all samples that can be are ready, and shows them; false when the operator ends
    /// first. `patient`: a person waits, and is shown an intermediate state if the wait is long.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) async fn until_ready(&mut self, patient: bool) -> Result<bool, Error> {
        let mut checked = None;
        while self.running.is_running() {
            let now = self.clock.now();
            // A script needs the outcome only; a person sees after some time that the program does
            // not hang.
            let late = patient && now - self.began >= LATE;
            let has_changed = self.changes.has_changed(self.running, now);
            // Checked without a change, too: a sample may be of a kind that the operator has no
            // cache of.
            if has_changed || checked.is_none_or(|at| now - at >= CHECK_EVERY) {
                checked = Some(now);
                if self.why_not().await?.is_none() {
                    self.ready(if patient { " Ctrl-C stops." } else { "" }).await?;
                    return Ok(true);
                }
            }
            // Called in any case: `is_due` resets the noted changes.
            let is_due = self.changes.is_due(now);
            if late && (is_due || self.shown.is_none()) {
                let why = self.why_not().await?.unwrap_or_default();
                self.show(&format!("Not ready yet: {why}.")).await?;
            }
            self.clock.sleep(PAUSE).await;
        }
        Ok(false)
    }

    /// Shows the trees, and the time that the samples took to become ready.
    pub(super) async fn ready(&mut self, end: &str) -> Result<(), Error> {
        let seconds = (self.clock.now() - self.began).as_secs_f64();
        self.show(&format!("Ready after {seconds:.1} s.{end}")).await
    }

    /// Shows the trees again after each change, until the operator ends.
    pub(super) async fn follow(&mut self) {
        while self.running.is_running() {
            self.clock.sleep(PAUSE).await;
            let now = self.clock.now();
            // Notes the time of a change; `is_due` decides when to show the change.
            self.changes.has_changed(self.running, now);
            if self.changes.is_due(now)
                && let Err(error) = self.show("").await
            {
                tracing::debug!(%error, "the changes of the samples cannot be read");
            }
        }
    }

    /// Shows the trees, if they differ from the last ones or there is a text.
    pub(super) async fn show(&mut self, text: &str) -> Result<(), Error> {
        let object_trees = ObjectTrees::read(self.running, &self.roots).await?;
        // A change of a cache may be invisible in the trees.
        if self.shown.as_ref() == Some(&object_trees) && text.is_empty() {
            return Ok(());
        }
        let colours = std::io::stdout().is_terminal() && logging::colours();
        let trees = object_trees.print(self.shown.as_ref(), colours);
        let footer: Vec<&str> =
            [text, &self.footer].into_iter().filter(|part| !part.is_empty()).collect();
        print_text(&format!("\n{trees}{}\n\n", footer.join("\n")));
        self.shown = Some(object_trees);
        Ok(())
    }

    /// Returns the first sample that is not ready, with the reason; `None` when all are.
    ///
    /// # Errors
    /// Those of reading. A deleted sample is not ready.
    pub(super) async fn why_not(&self) -> Result<Option<String>, Error> {
        for sample in &self.awaited {
            let (kind, name) = (&sample.info.kind, sample.object.name());
            let why = match api(self.running.client(), sample).get_opt(name).await? {
                Some(object) if is_ready(&object) => continue,
                Some(object) => why_not(&object),
                None => "it is gone".to_owned(),
            };
            return Ok(Some(format!("{kind} {name:?}: {why}")));
        }
        Ok(None)
    }
}

/// Creates the samples in their order.
///
/// # Errors
/// That of the first sample that the API server refuses.
pub(super) async fn create(client: &Client, samples: &[Sample]) -> Result<(), Error> {
    for sample in samples {
        api(client, sample).create(&sample.object).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let text = format!(
                    "cannot create the sample {} {:?}: neither its kind nor its namespace may be missing; \
                     install the kind by `Manager::install` or give its definition to \
                     `App::definition`, and make the namespace a sample before it",
                    sample.info.kind,
                    sample.object.name()
                );
                Error::new(ErrorKind::Usage, text).because(error)
            }
            _ => error,
        })?;
    }
    Ok(())
}

/// Returns the requests for the kind and namespace of a sample.
fn api(client: &Client, sample: &Sample) -> windlass_client::api::Api<DynamicObject> {
    client.dynamic(sample.info.clone(), sample.object.namespace())
}

/// Detects changes in the operator's caches, at no cost for the API server.
#[derive(Debug, Default)]
struct ChangeDetector {
    /// Version of each cache.
    versions: Vec<String>,
    /// Times of the first and the last change that was not shown.
    unseen: Option<(Instant, Instant)>,
}

impl ChangeDetector {
    /// Whether anything has changed since the last call.
    fn has_changed(&mut self, running: &Running, now: Instant) -> bool {
        let caches = running.informers().status();
        self.compare(caches.into_iter().map(|cache| cache.resource_version).collect(), now)
    }

    /// Compares the versions with those of the last call, and notes the time of a change.
    fn compare(&mut self, versions: Vec<String>, now: Instant) -> bool {
        if versions == self.versions {
            return false;
        }
        self.versions = versions;
        self.unseen = Some((self.unseen.map_or(now, |(first, _)| first), now));
        true
    }

    /// Whether to show the changes now. True once for the changes up to `now`.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due =
            self.unseen.is_some_and(|(first, last)| now - last >= QUIET || now - first >= LONGEST);
        if is_due {
            self.unseen = None;
        }
        is_due
    }
}

/// Whether `sample` is of a kind that `definitions` define, with a status in which an operator can
/// report readiness.
pub(super) fn becomes_ready(sample: &Sample, definitions: &[CustomResourceDefinition]) -> bool {
    definitions
        .iter()
        .filter(|one| {
            one.spec.group == sample.info.group && one.spec.names.kind == sample.info.kind
        })
        .flat_map(|definition| &definition.spec.versions)
        .filter(|version| version.name == sample.info.version)
        .filter_map(|version| version.subresources.as_ref())
        .any(|subresources| subresources.status.is_some())
}

/// The kind of a definition, in the stored version.
fn defined(definition: &CustomResourceDefinition) -> Option<ResourceInfo> {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage)?;
    let is_namespaced = spec.scope == "Namespaced";
    Some(ResourceInfo {
        group: spec.group.clone().into(),
        version: stored.name.clone().into(),
        kind: spec.names.kind.clone().into(),
        plural: spec.names.plural.clone().into(),
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}

/// The condition `Ready` of an object.
fn ready_condition(object: &DynamicObject) -> Option<&Value> {
    let conditions = object.rest.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")
}

/// Whether `Ready` is true, for the present generation.
fn is_ready(object: &DynamicObject) -> bool {
    ready_condition(object).is_some_and(|ready| {
        let current = ready["observedGeneration"].as_i64().is_none_or(|g| g >= object.generation());
        ready["status"] == "True" && current
    })
}

/// The reason of an object that is not ready, as a single line.
fn why_not(object: &DynamicObject) -> String {
    match ready_condition(object) {
        None => "it has no condition Ready; look at the log above".to_owned(),
        Some(ready) => format!(
            "Ready is {}, {}: {}",
            escaped(ready["status"].as_str().unwrap_or("?")),
            escaped(ready["reason"].as_str().unwrap_or("without a reason")),
            escaped(ready["message"].as_str().unwrap_or_default())
        ),
    }
}

/// Prints to standard output. A closed pipe is no failure.
pub(super) fn print_text(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(version: &str) -> Vec<String> {
        vec!["1".to_owned(), version.to_owned()]
    }

    /// A burst is shown once, endless changes every two seconds, and no change not at all.
    #[tokio::test(start_paused = true)]
    async fn changes_are_shown_once_they_cease_or_have_gone_on_for_two_seconds() {
        let (mut changes, start) = (ChangeDetector::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert!(changes.compare(versions("2"), at(0)) && !changes.is_due(at(0)));
        assert!(changes.compare(versions("3"), at(200)) && !changes.is_due(at(300)));
        assert!(!changes.compare(versions("3"), at(499)) && !changes.is_due(at(499)));
        assert!(changes.is_due(at(500)));
        assert!(!changes.is_due(at(5000)), "nothing has changed since");
        let mut checks = 0;
        for step in 0..100_u64 {
            let now = at(10_000 + step * 100);
            changes.compare(versions(&step.to_string()), now);
            checks += u32::from(changes.is_due(now));
        }
        assert_eq!(checks, 4, "in ten seconds");
    }

    /// A status may come from any writer: the text is foreign.
    #[test]
    fn the_reason_why_a_sample_is_not_ready_is_one_line_that_steers_no_terminal() {
        let ready = serde_json::json!({
            "type": "Ready", "status": "False\n", "reason": "\u{1b}]0;owned\u{7}", "message": "a\r2026 ERROR",
        });
        let object = serde_json::json!({
            "metadata": { "name": "home" }, "status": { "conditions": [ready] },
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let text = r"Ready is False\n, \u{1b}]0;owned\u{7}: a\r2026 ERROR";
        assert_eq!(why_not(&object), text);
    }
}
