//! Checks of Jobs and `CronJob`s.

mod schedule;

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::fields::{self, is_empty};
use super::{content, pod};
use crate::kinds::meta;
use crate::names;
use crate::selectors;
use crate::served::Cause;
use crate::status::{cause, invalid_value, required, unsupported};

/// Most Pods that an indexed Job runs at once.
const MOST_PARALLEL: i64 = 100_000;

/// Appends the faults of a Job.
pub(super) fn job(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    selection(object, causes);
    pod::template(&spec["template"], "spec.template", causes);
    restarts(&spec["template"]["spec"], "spec.template.spec", causes);
    run(spec, "spec", causes);
}

/// Appends the fault of a Job's restart policy.
fn restarts(pod: &Value, at: &str, causes: &mut Vec<Cause>) {
    let at = format!("{at}.restartPolicy");
    match pod["restartPolicy"].as_str().unwrap_or_default() {
        "" | "Always" => causes.push(required(&at, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" | "Never" => {}
        other => causes.push(unsupported(&at, other, &["OnFailure", "Never"])),
    }
}

/// Appends the faults of the selector of a Job, which is made of the uid unless given by hand.
fn selection(job: &Value, causes: &mut Vec<Cause>) {
    let spec = &job["spec"];
    let selector = &spec["selector"];
    if selector.is_null() {
        causes.push(required("spec.selector", ""));
    }
    let (uid, name) = (&job["metadata"]["uid"], &job["metadata"]["name"]);
    let own = json!({"metadata": {"labels": {
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": name, "batch.kubernetes.io/job-name": name,
    }}});
    let is_given = selector.is_null() || spec["manualSelector"] == true;
    if !is_given {
        generated(&spec["template"], &own["metadata"]["labels"], causes);
    }
    if !is_given && !selectors::selects(selector, &own) {
        causes.push(invalid_value("spec.selector", selector, "`selector` not auto-generated"));
    }
    let is_selected = !selector.is_null() && selectors::selects(selector, &spec["template"]);
    if fields::is_selector(selector) && !is_selected {
        let labels = &spec["template"]["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(invalid_value("spec.template.metadata.labels", labels, why));
    }
}

/// Appends the faults of the labels that tie Pods to their Job.
fn generated(template: &Value, wanted: &Value, causes: &mut Vec<Cause>) {
    let labels = &template["metadata"]["labels"];
    for (key, value) in wanted.as_object().into_iter().flatten() {
        let at = format!("spec.template.metadata.labels[{key}]");
        let why = format!("must be '{}'", value.as_str().unwrap_or_default());
        match labels.get(key) {
            None => causes.push(required(&at, &why)),
            Some(held) if held != value => causes.push(invalid_value(&at, labels, &why)),
            Some(_) => {}
        }
    }
}

/// Appends the faults of the settings for a Job's Pods.
fn run(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    managed(&spec["managedBy"], &format!("{at}.managedBy"), causes);
    indexed(spec, at, causes);
    if spec["podFailurePolicy"].is_object() {
        failure_policy(spec, &format!("{at}.podFailurePolicy"), causes);
    }
    if spec["successPolicy"].is_object() {
        success_policy(spec, &format!("{at}.successPolicy"), causes);
    }
    let policy = spec["podReplacementPolicy"].as_str();
    let known: &[&str] = match spec["podFailurePolicy"].is_object() {
        true => &["Failed"],
        false => &["Failed", "TerminatingOrFailed"],
    };
    if let Some(policy) = policy.filter(|policy| !known.contains(policy)) {
        causes.push(unsupported(&format!("{at}.podReplacementPolicy"), policy, known));
    }
}

/// Appends the faults of the name of a controller: a domain and a path.
fn managed(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    match value.as_str() {
        Some("") => causes.push(required(at, "")),
        Some(name) => content::prefixed_path(name, at, causes),
        None => {}
    }
}

/// Appends the faults of fields that belong to indexed Jobs.
fn indexed(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let is_indexed = spec["completionMode"] == "Indexed";
    let (limit, most) = (&spec["backoffLimitPerIndex"], &spec["maxFailedIndexes"]);
    let least = "must be greater than or equal to 0";
    for (field, value) in [("backoffLimitPerIndex", limit), ("maxFailedIndexes", most)] {
        if value.as_i64().is_some_and(|number| number < 0) {
            causes.push(invalid_value(&format!("{at}.{field}"), value, least));
        }
    }
    if most.is_i64() && limit.is_null() {
        let why = "when maxFailedIndexes is specified";
        causes.push(required(&format!("{at}.backoffLimitPerIndex"), why));
    }
    if !is_indexed {
        for (field, value) in [("backoffLimitPerIndex", limit), ("maxFailedIndexes", most)] {
            if value.is_i64() {
                let why = "requires indexed completion mode";
                causes.push(invalid_value(&format!("{at}.{field}"), value, why));
            }
        }
        return;
    }
    let completions = spec["completions"].as_i64();
    if completions.is_none() {
        let why = "when completion mode is Indexed";
        causes.push(required(&format!("{at}.completions"), why));
    }
    let parallel = &spec["parallelism"];
    if parallel.as_i64().is_some_and(|number| number > MOST_PARALLEL) {
        let why = format!(
            "must be less than or equal to {MOST_PARALLEL} when completion mode is Indexed"
        );
        causes.push(invalid_value(&format!("{at}.parallelism"), parallel, &why));
    }
    if most.as_i64().zip(completions).is_some_and(|(most, all)| most > all) {
        let why = "must be less than or equal to completions";
        causes.push(invalid_value(&format!("{at}.maxFailedIndexes"), most, why));
    }
}

/// Appends the faults of the rules about failed Pods.
fn failure_policy(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let pod = &spec["template"]["spec"];
    if pod["restartPolicy"] != "Never" {
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        let at = at.replace("podFailurePolicy", "template.spec.restartPolicy");
        causes.push(invalid_value(&at, &pod["restartPolicy"], why));
    }
    let names: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod[*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    let rules = spec["podFailurePolicy"]["rules"].as_array().into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        let at = format!("{at}.rules[{index}]");
        action(spec, rule, &at, causes);
        let codes = &rule["onExitCodes"];
        if codes.is_object() {
            exit_codes(codes, &names, &format!("{at}.onExitCodes"), causes);
        }
        let conditions = rule["onPodConditions"].as_array().map_or(&[][..], Vec::as_slice);
        for (number, condition) in conditions.iter().enumerate() {
            pattern(condition, &format!("{at}.onPodConditions[{number}]"), causes);
        }
        let why = match (codes.is_object(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        causes.push(cause("FieldValueInvalid", &at, format!("Invalid value: {why}")));
    }
}

/// Appends the faults of the action of a rule.
fn action(spec: &Value, rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let known = ["Count", "FailIndex", "FailJob", "Ignore"];
    let (at, action) = (format!("{at}.action"), rule["action"].as_str().unwrap_or_default());
    if action.is_empty() {
        let listed = known.map(|one| format!("{one:?}")).join(", ");
        causes.push(required(&at, &format!("valid values: [{listed}]")));
    } else if !known.contains(&action) {
        causes.push(unsupported(&at, action, &known));
    } else if action == "FailIndex" && spec["backoffLimitPerIndex"].is_null() {
        let why = "requires the backoffLimitPerIndex to be set";
        causes.push(invalid_value(&at, &action.into(), why));
    }
}

/// Appends the faults of a rule about exit codes.
fn exit_codes(codes: &Value, names: &BTreeSet<&str>, at: &str, causes: &mut Vec<Cause>) {
    let operator = codes["operator"].as_str().unwrap_or_default();
    if !["In", "NotIn"].contains(&operator) {
        causes.push(unsupported(&format!("{at}.operator"), operator, &["In", "NotIn"]));
    }
    if let Some(name) = codes["containerName"].as_str().filter(|name| !names.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        causes.push(invalid_value(&format!("{at}.containerName"), &name.into(), why));
    }
    let values = codes["values"].as_array().map_or(&[][..], Vec::as_slice);
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    let at = format!("{at}.values");
    if numbers.is_empty() {
        causes.push(invalid_value(&at, &json!([]), "at least one value is required"));
    }
    let mut seen = BTreeSet::new();
    for (index, number) in numbers.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if *number == 0 && operator == "In" {
            causes.push(invalid_value(&at, &json!(0), "must not be 0 for the In operator"));
        }
        if !seen.insert(*number) {
            causes.push(cause("FieldValueDuplicate", &at, format!("Duplicate value: {number}")));
        }
    }
    if !numbers.is_sorted() {
        causes.push(invalid_value(&at, &codes["values"], "must be ordered"));
    }
}

/// Appends the faults of a rule about a condition of Pods.
fn pattern(condition: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    fields::named(
        names::qualified(text("type")),
        &condition["type"],
        &format!("{at}.type"),
        causes,
    );
    let (at, status) = (format!("{at}.status"), text("status"));
    let known = ["False", "True", "Unknown"];
    if status.is_empty() {
        causes.push(required(&at, ""));
    } else if !known.contains(&status) {
        causes.push(unsupported(&at, status, &known));
    }
}

/// Appends the faults of the rules about success.
fn success_policy(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let rules = spec["successPolicy"]["rules"].as_array().map_or(&[][..], Vec::as_slice);
    if spec["completionMode"] != "Indexed" {
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                let part = |field: &str| &rule[field];
                let (indexes, count) = (part("succeededIndexes"), part("succeededCount"));
                format!("{{\"SucceededIndexes\":{indexes},\"SucceededCount\":{count}}}")
            })
            .collect();
        let shown = format!("{{\"Rules\":[{}]}}", shown.join(","));
        let why = "requires indexed completion mode";
        causes.push(cause("FieldValueInvalid", at, format!("Invalid value: {shown}: {why}")));
        return;
    }
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        causes.push(required(&format!("{at}.rules"), why));
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &format!("{at}.rules[{index}]"), causes);
    }
}

/// Appends the faults of a rule about success.
fn success_rule(rule: &Value, completions: i64, at: &str, causes: &mut Vec<Cause>) {
    let (indexes, count) = (&rule["succeededIndexes"], &rule["succeededCount"]);
    if indexes.is_null() && count.is_null() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        causes.push(required(at, why));
    }
    let mut most = None;
    if let Some(text) = indexes.as_str() {
        match number_of_indexes(text, completions) {
            Ok(number) => most = Some(number),
            Err(why) => {
                let why = format!("error parsing succeededIndexes: {why}");
                causes.push(invalid_value(&format!("{at}.succeededIndexes"), indexes, &why));
            }
        }
    }
    let Some(wanted) = count.as_i64() else { return };
    let at = format!("{at}.succeededCount");
    if wanted < 0 {
        causes.push(invalid_value(&at, count, "must be greater than or equal to 0"));
    }
    if wanted > completions {
        let why = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        causes.push(invalid_value(&at, count, &why));
    }
    if let Some(most) = most.filter(|most| wanted > *most) {
        let why = format!(
            "must be less than or equal to {most} (the number of indexes in the specified succeededIndexes field)"
        );
        causes.push(invalid_value(&at, count, &why));
    }
}

/// Returns the number of indexes that a text such as `0-2,4` names; the error is the reason in the
/// server's words.
fn number_of_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let read = |part: &str| -> Result<i64, String> {
        let number: i64 = part
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {part:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {part:?}"));
        }
        Ok(number)
    };
    let (mut total, mut previous) = (0_i64, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = interval.split('-').collect();
        let (first, last) = match parts.as_slice() {
            [one] => (read(one)?, None),
            [first, last] => (read(first)?, Some(read(last)?)),
            _ => {
                return Err(format!(
                    "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        };
        for next in std::iter::once(first).chain(last) {
            if let Some(previous) = previous.filter(|previous| *previous >= next) {
                return Err(format!("non-increasing order, previous: {previous}, current: {next}"));
            }
            previous = Some(next);
        }
        total = total.saturating_add(last.unwrap_or(first) - first + 1);
    }
    Ok(total)
}

/// Appends the faults of a `CronJob`.
pub(super) fn cron_job(object: &Value, causes: &mut Vec<Cause>) {
    /// Longest name: the names of the Jobs end with a number.
    const LONGEST: usize = 52;
    let spec = &object["spec"];
    let name = meta::text(object, "name");
    if name.len() > LONGEST {
        let why = format!("must be no more than {LONGEST} characters");
        causes.push(invalid_value("metadata.name", &name.into(), &why));
    }
    let job = &spec["jobTemplate"]["spec"];
    let at = "spec.jobTemplate.spec";
    if !job["selector"].is_null() {
        let why = "`selector` will be auto-generated";
        causes.push(fields::invalid_selector(&format!("{at}.selector"), &job["selector"], why));
    }
    if job["manualSelector"] == true {
        let message = "Unsupported value: true: supported values: \"nil\", \"false\"";
        let at = format!("{at}.manualSelector");
        causes.push(cause("FieldValueNotSupported", &at, message));
    }
    pod::template(&job["template"], &format!("{at}.template"), causes);
    restarts(&job["template"]["spec"], &format!("{at}.template.spec"), causes);
    run(job, at, causes);
    zone(spec, causes);
    let text = spec["schedule"].as_str().unwrap_or_default();
    if text.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(invalid_value("spec.schedule", &text.into(), detail));
    } else if !is_empty(&spec["schedule"])
        && let Some(why) = schedule::fault(text)
    {
        causes.push(invalid_value("spec.schedule", &text.into(), &why));
    }
}

/// Appends the fault of a time zone.
fn zone(spec: &Value, causes: &mut Vec<Cause>) {
    let Some(zone) = spec["timeZone"].as_str() else { return };
    // Without a table of zones on this machine no zone can be distinguished from another.
    let knows_zones = !jiff::tz::db().is_definitively_empty();
    let why = if zone.is_empty() {
        "timeZone must be nil or non-empty string".to_owned()
    } else if zone.eq_ignore_ascii_case("Local") {
        let why =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.push(invalid_value("spec.timeZone", &zone.into(), why));
        if zone == "Local" {
            return;
        }
        // Only that spelling is a zone to Go.
        format!("unknown time zone {zone}")
    } else if zone.trim() != zone || knows_zones && !is_zone(zone) {
        format!("unknown time zone {zone}")
    } else {
        return;
    };
    causes.push(invalid_value("spec.timeZone", &zone.into(), &why));
}

/// Whether a zone is known by this name; the server's table distinguishes capital and small
/// letters.
fn is_zone(zone: &str) -> bool {
    TimeZone::get(zone).is_ok_and(|found| found.iana_name().is_none_or(|name| name == zone))
}
