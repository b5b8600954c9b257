//! Comparison of a plan with the expectations of its case.

use std::time::Duration;

use serde_json::json;
use windlass_runtime::controller::{
    PlannedAction, PlannedChange, PlannedEvent, PlannedObject, PlannedOutcome,
};

use super::Case;
use super::expected::{Effect, ExpectedChange, ExpectedEffects};
use super::fields::{self, FieldValues};
use super::given::{GivenObject, NamespaceNames};

/// Differences so far.
struct CaseComparison<'a> {
    case: &'a Case,
    places: &'a NamespaceNames,
    found: Vec<String>,
}

/// Returns the differences between a plan and the expectations, a line each.
pub(super) fn differences(
    case: &Case,
    planned: &PlannedObject,
    places: &NamespaceNames,
) -> Vec<String> {
    let mut comparison = CaseComparison { case, places, found: Vec::new() };
    comparison.outcome(planned);
    comparison.changes(&planned.changes);
    let ExpectedEffects { events, reads, calls, .. } = &case.expected;
    let is_event = |event: &PlannedEvent, text: &str| {
        text == format!("{} {}", event.kind.as_str(), event.reason)
    };
    for text in events.iter().filter(|text| !planned.events.iter().any(|it| is_event(it, text))) {
        comparison.missing("the Event", text, &planned.events);
    }
    let made: Vec<String> = planned.reads.iter().map(|read| places.near(read)).collect();
    for text in reads.iter().filter(|text| !made.contains(text)) {
        comparison.missing("the read", text, &made);
    }
    comparison.calls(calls, &planned.external_calls);
    comparison.found
}

/// Returns the words for the end of a reconcile.
fn outcome(outcome: &PlannedOutcome, requeue_after: Option<Duration>) -> String {
    let text = match outcome {
        PlannedOutcome::Waiting(text) => format!("waits: {text}"),
        PlannedOutcome::Failed(text) => format!("fails: {text}"),
        PlannedOutcome::Paused => "is paused by its annotation".to_owned(),
        PlannedOutcome::NotSelected => "is not selected by the controller".to_owned(),
        _ => "succeeds".to_owned(),
    };
    match requeue_after {
        Some(delay) => format!("{text}, and asks for another one after {delay:?}"),
        None => text,
    }
}

impl CaseComparison<'_> {
    /// Adds a difference.
    fn add(&mut self, text: String) {
        self.found.push(text);
    }

    /// Adds something that did not happen, with what did.
    fn missing(&mut self, noun: &str, text: &str, made: &[impl ToString]) {
        let made: Vec<String> = made.iter().map(ToString::to_string).collect();
        let made = if made.is_empty() { "none".to_owned() } else { made.join("; ") };
        self.add(format!("- {noun} {text} is missing; there were: {made}"));
    }

    /// Compares the end of the reconcile.
    fn outcome(&mut self, planned: &PlannedObject) {
        let ExpectedEffects { requeue_after, waits, fails, .. } = &self.case.expected;
        let expected = match (&planned.outcome, waits, fails) {
            (PlannedOutcome::Waiting(text), Some(reason), None)
                if text.split(':').next() == Some(reason) =>
            {
                return;
            }
            (PlannedOutcome::Failed(text), None, Some(part)) if text.contains(part) => return,
            (PlannedOutcome::Reconciled, None, None) if planned.requeue_after == *requeue_after => {
                return;
            }
            (_, Some(reason), _) => format!("waits for {reason}"),
            (_, None, Some(part)) => format!("fails with a text that contains {part:?}"),
            _ => outcome(&PlannedOutcome::Reconciled, *requeue_after),
        };
        let found = outcome(&planned.outcome, planned.requeue_after);
        self.add(format!("! the reconcile {found}; expected: it {expected}"));
    }

    /// Compares the calls of external systems.
    fn calls(&mut self, expected: &[String], made: &[String]) {
        for text in expected.iter().filter(|text| !made.iter().any(|call| call.contains(*text))) {
            self.missing("the call", text, made);
        }
        let is_expected = |call: &String| expected.iter().any(|text| call.contains(text));
        for call in made.iter().filter(|call| !is_expected(call)) {
            self.add(format!("+ a call that is not expected: {call}"));
        }
    }

    /// Compares the changes, those of the reconciled object last.
    fn changes(&mut self, made: &[PlannedChange]) {
        let expected = &self.case.expected.changes;
        let mut left: Vec<&PlannedChange> = made.iter().collect();
        for change in expected {
            let verb = change.effect.verb();
            let (resource, key) =
                (change.object.info.group_resource(), self.places.key(&change.object));
            let is_same = |made: &&PlannedChange| {
                made.action.as_str() == verb && made.resource == resource && made.key == key
            };
            match left.iter().position(is_same) {
                Some(place) => {
                    let made = left.remove(place);
                    self.fields(change, made);
                    // Its status has an expectation of its own.
                    if self.is_subject(made) {
                        self.status(Some(made));
                    }
                }
                None => self.add(format!("- {verb} {resource} {key} is missing")),
            }
        }
        let is_subject_expected =
            expected.iter().any(|change| change.object.is_same(&self.case.object));
        if !is_subject_expected {
            let place = left.iter().position(|made| self.is_status(made));
            let made = place.map(|place| left.remove(place));
            self.status(made);
        }
        for made in left {
            let fields: Vec<String> = made.fields.iter().take(8).map(field_text).collect();
            self.add(format!("+ {made} is not expected: {}", fields.join(", ")));
        }
    }

    /// Whether a change is one of the reconciled object.
    fn is_subject(&self, made: &PlannedChange) -> bool {
        let object = &self.case.object;
        made.action == PlannedAction::Update
            && made.resource == object.info.group_resource()
            && made.key == self.places.key(object)
    }

    /// Whether a change is one of the status of the reconciled object, and of nothing else.
    fn is_status(&self, made: &PlannedChange) -> bool {
        let mut fields = made.all_fields();
        self.is_subject(made) && fields.all(|field| fields::is_within(&field.path, ".status"))
    }

    /// Compares the status of the reconciled object; `None` when it is not changed.
    fn status(&mut self, made: Option<&PlannedChange>) {
        let writes = made.into_iter().flat_map(PlannedChange::all_fields);
        let writes: Vec<_> =
            writes.filter(|field| fields::is_within(&field.path, ".status")).collect();
        let Some(expected) = &self.case.expected.status else {
            if !writes.is_empty() {
                let fields: Vec<String> = writes.into_iter().take(8).map(field_text).collect();
                self.add(format!("+ a status that is not expected: {}", fields.join(", ")));
            }
            return;
        };
        if writes.is_empty() {
            return self
                .add("- the status is missing: the reconcile leaves it as it is".to_owned());
        }
        let kind = self.case.object.group_and_plural();
        let mut after = fields::of(&self.case.object.value, kind);
        writes.into_iter().for_each(|field| fields::set(&mut after, field));
        let wanted = fields::of(&json!({ "status": expected }), kind);
        self.compare("the status", &wanted, &after);
    }

    /// Compares the fields of a change.
    fn fields(&mut self, change: &ExpectedChange, made: &PlannedChange) {
        let ExpectedChange { effect, object } = change;
        let noun = format!("{} {} {}", effect.verb(), made.resource, made.key);
        if let Effect::Create { is_owned } = *effect
            && is_owned != made.is_owned
        {
            let not = if is_owned { "not " } else { "" };
            self.add(format!("~ {noun}: it is {not}owned by the reconciled object"));
        }
        if *effect == Effect::Delete {
            return;
        }
        let kind = object.group_and_plural();
        let known = self.known(object).map(|known| fields::of(&known.value, kind));
        let mut after = known.unwrap_or_default();
        made.all_fields().for_each(|field| fields::set(&mut after, field));
        let mut wanted = fields::of(&object.value, kind);
        // Name and place are those of the key.
        let is_key = |path: &str| {
            [".metadata.name", ".metadata.namespace", ".metadata.generateName"].contains(&path)
        };
        wanted.retain(|path, _| !is_key(path));
        self.compare(&noun, &wanted, &after);
    }

    /// Returns the given object of that key.
    fn known(&self, object: &GivenObject) -> Option<&GivenObject> {
        let case = self.case;
        std::iter::once(&case.object).chain(&case.given).find(|given| given.is_same(object))
    }

    /// Adds the wanted fields that an object does not have.
    fn compare(&mut self, noun: &str, wanted: &FieldValues, after: &FieldValues) {
        // An empty object names no field: that of a type whose field is no option.
        for (path, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is("{}")) {
            let text = match after.get(path) {
                Some(found) if found.is_equal(wanted) => continue,
                None => format!("absent, expected {}", wanted.text),
                // A plan has the texts of 512 fields, and 1 KiB of each.
                Some(found) if found.text.is_empty() || wanted.text.is_empty() => {
                    "another value than the expected one".to_owned()
                }
                Some(found) if found.text == wanted.text => {
                    format!("as expected in its first KiB only: {}", shown(&found.text))
                }
                Some(found) => format!("{}, expected {}", found.text, wanted.text),
            };
            self.add(format!("~ {noun}: {path} is {text}"));
        }
    }
}

/// Returns the words for a field of a change.
fn field_text(field: &windlass_runtime::controller::PlannedField) -> String {
    format!("{} = {}", field.path, shown(field.to.as_deref().unwrap_or("removed")))
}

/// Returns the beginning of a value.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
