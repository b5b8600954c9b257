//! `plan`: the changes that a run would make, for people and as JSON.
//!
//! Names, values and errors are foreign text: they are escaped before they reach a terminal.

// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::escape::{escaped, indented};
use super::options::{PlanArguments, PlanOutput};
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::controller::{
    PlannedAction, PlannedChange, PlannedEvent, PlannedObject, PlannedOutcome,
};
use windlass_runtime::manager::{Manager, Plan, PlanOptions};

/// Exit code when an object, a definition or another system would be changed.
const CHANGES: u8 = 2;
/// Exit code of an error, also of an error about a single object.
pub(super) const FAILED: u8 = 1;

/// Plans, prints the plan, and returns the exit code.
///
/// # Errors
/// Those of [`Manager::plan`].
pub(super) async fn run(manager: Manager, arguments: &PlanArguments) -> Result<ExitCode, Error> {
    let mut options = PlanOptions::default();
    options.kind.clone_from(&arguments.kind);
    options.objects.clone_from(&arguments.objects);
    options.concurrency = manager.workers.unwrap_or(options.concurrency);
    let plan = manager.plan(options).await?;
    let text = match arguments.output {
        PlanOutput::Text => text(&plan),
        PlanOutput::Json => format!("{:#}\n", json_of(&plan)),
    };
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::from(exit_code(&plan)))
}

/// The error of a plan or a shadow without a cluster.
pub(super) fn no_cluster() -> Error {
    let text = "plan and shadow need a cluster, and none is configured: set KUBECONFIG, or give --kubeconfig";
    Error::new(ErrorKind::Config, text)
}

/// Returns the exit code: an error goes before changes.
fn exit_code(plan: &Plan) -> u8 {
    match (plan.has_failures(), plan.has_changes()) {
        (true, _) => FAILED,
        (false, true) => CHANGES,
        (false, false) => 0,
    }
}

/// Returns the plan for people. Objects without changes are counted only.
fn text(plan: &Plan) -> String {
    let mut text = String::new();
    for name in &plan.definitions {
        let _ = writeln!(text, "~ install customresourcedefinitions {}", escaped(name));
    }
    let is_shown = |object: &&PlannedObject| {
        object.has_changes() || object.outcome != PlannedOutcome::Reconciled
    };
    for object in plan.objects.iter().filter(is_shown) {
        add_object(&mut text, object);
    }
    for note in &plan.notes {
        let _ = writeln!(text, "note: {}", indented(note));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&summary(plan));
    text
}

/// Adds an object, with its changes below.
fn add_object(text: &mut String, object: &PlannedObject) {
    let (kind, key) = (escaped(&object.kind), escaped(&object.key));
    let _ = writeln!(text, "{kind} {key} (controller {})", escaped(&object.controller));
    for change in &object.changes {
        add_change(text, change);
    }
    for call in &object.external_calls {
        let _ = writeln!(text, "  ! external call, not made: {}", escaped(call));
    }
    for event in &object.events {
        let _ = writeln!(text, "  event, not written: {}", indented(event));
    }
    let _ = match &object.outcome {
        PlannedOutcome::Waiting(why) => writeln!(text, "  waits: {}", indented(why)),
        PlannedOutcome::Failed(why) => writeln!(text, "  failed: {}", indented(why)),
        PlannedOutcome::Paused => writeln!(text, "  paused by its annotation"),
        PlannedOutcome::NotSelected => writeln!(text, "  not selected by the controller"),
        _ => Ok(()),
    };
}

/// Adds a change, with a line for each field.
fn add_change(text: &mut String, change: &PlannedChange) {
    let mark = match change.action {
        PlannedAction::Create => '+',
        PlannedAction::Update => '~',
        PlannedAction::Delete => '-',
        _ => '!',
    };
    let _ = writeln!(text, "  {mark} {}", escaped(change));
    for field in &change.fields {
        let path = escaped(&field.path);
        let value = |value: &Option<String>| value.as_ref().map_or("none".to_owned(), escaped);
        let _ = match change.action {
            PlannedAction::Create => writeln!(text, "      {path}: {}", value(&field.to)),
            _ => writeln!(text, "      {path}: {} -> {}", value(&field.from), value(&field.to)),
        };
    }
    if change.more_fields > 0 {
        let _ = writeln!(text, "      and {} more fields", change.more_fields);
    }
    if let Some(note) = &change.note {
        let _ = writeln!(text, "      note: {}", indented(note));
    }
}

/// Returns the last line.
fn summary(plan: &Plan) -> String {
    let count = |action| {
        let changes = plan.objects.iter().flat_map(|object| &object.changes);
        changes.filter(|change| change.action == action).count()
    };
    let actions = [
        (count(PlannedAction::Create), "to create"),
        (count(PlannedAction::Update), "to update"),
        (count(PlannedAction::Delete), "to delete"),
        (count(PlannedAction::Call), "calls of subresources"),
        (plan.definitions.len(), "definitions to install"),
        (plan.objects.iter().map(|object| object.external_calls.len()).sum(), "external calls"),
    ];
    let parts = actions.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    let changes = if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") };
    let count = |is_counted: fn(&PlannedOutcome) -> bool| {
        plan.objects.iter().filter(|object| is_counted(&object.outcome)).count()
    };
    let others = [
        (count(|it| matches!(it, PlannedOutcome::Failed(_))), "failed"),
        (count(|it| *it == PlannedOutcome::Paused), "paused"),
        (count(|it| *it == PlannedOutcome::NotSelected), "not selected"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    let rest: String = others.clone().map(|(count, what)| format!(", {count} {what}")).collect();
    let reconciled = plan.objects.len() - others.map(|(count, _)| count).sum::<usize>();
    format!("Plan: {changes}; {reconciled} reconciled as dry runs{rest}\n")
}

/// Returns the plan as JSON. Values of fields are JSON texts, as they may be cut or masked.
fn json_of(plan: &Plan) -> Value {
    let change = |change: &PlannedChange| {
        let fields = change.fields.iter();
        let fields = fields.map(|it| json!({ "path": it.path, "from": it.from, "to": it.to }));
        json!({
            "action": change.action.as_str(), "resource": change.resource,
            "namespace": change.key.namespace(), "name": change.key.name(),
            "fields": fields.collect::<Vec<_>>(), "moreFields": change.more_fields,
            "note": change.note,
        })
    };
    let event = |event: &PlannedEvent| json!({ "type": event.kind.as_str(), "reason": event.reason, "note": event.note });
    let object = |object: &PlannedObject| {
        let (outcome, message) = match &object.outcome {
            PlannedOutcome::Waiting(why) => ("waiting", Some(why)),
            PlannedOutcome::Failed(why) => ("failed", Some(why)),
            PlannedOutcome::Paused => ("paused", None),
            PlannedOutcome::NotSelected => ("notSelected", None),
            _ => ("reconciled", None),
        };
        json!({
            "controller": object.controller, "kind": object.kind,
            "namespace": object.key.namespace(), "name": object.key.name(),
            "outcome": outcome, "message": message,
            "changes": object.changes.iter().map(change).collect::<Vec<_>>(),
            "externalCalls": object.external_calls,
            "events": object.events.iter().map(event).collect::<Vec<_>>(),
            "reads": object.reads,
            "requeueAfterSeconds": object.requeue_after.map(|delay| delay.as_secs_f64()),
        })
    };
    json!({
        "hasChanges": plan.has_changes(), "hasFailures": plan.has_failures(),
        "definitions": plan.definitions, "notes": plan.notes,
        "objects": plan.objects.iter().map(object).collect::<Vec<_>>(),
    })
}
