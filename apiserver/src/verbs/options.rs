//! Options of requests, read from the query or from a `DeleteOptions` body, and their validation.

use serde_json::Value;

use crate::go;
use crate::selectors::{FieldSelector, LabelSelector};
use crate::served::Cause;
use crate::status::{ApiError, cause, forbidden_field, invalid_value, unsupported};

/// The query of a URL, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes `a=b&c=%20d`.
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            // Before decoding: an encoded plus sign stays a plus sign.
            let spaced = part.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(key), decode(value))
        });
        Self { pairs: pairs.collect() }
    }

    /// Returns the first value of a key; an empty value counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(held, _)| held == key)?;
        Some(pair.1.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether the key is present at all.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(held, _)| held == key)
    }

    /// Iterates over all values of a key.
    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(held, _)| held == key).map(|(_, value)| value.as_str())
    }

    /// Returns a flag: any value but `false` and `0` (in any case) is true, junk too.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.pairs.iter().find(|(held, _)| held == key)?.1.to_lowercase();
        Some(value != "false" && value != "0")
    }

    /// Returns a number.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let pair = self.pairs.iter().find(|(held, _)| held == key);
        let Some((_, text)) = pair else { return Ok(None) };
        text.parse().map(Some).map_err(|fault: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match fault.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let text = go::quote(text);
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text}: {why}"))
        })
    }
}

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Unknown fields are dropped.
    Ignore,
    /// Unknown fields are dropped with a warning.
    #[default]
    Warn,
    /// Unknown fields are refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// Executes everything but the store.
    pub(crate) dry_run: bool,
    /// Field manager of the write.
    pub(crate) manager: String,
    /// `fieldManager` as sent; may be empty.
    pub(crate) sent_manager: String,
    /// `fieldValidation` as sent; may be empty.
    pub(crate) sent_validation: String,
    /// Treatment of unknown fields.
    pub(crate) validation: FieldValidation,
    /// Whether an apply takes over other managers' fields.
    pub(crate) force: bool,
}

/// Reads `dryRun`; values other than `All` are a fault.
fn dry_run<'a>(values: impl Iterator<Item = &'a str>, causes: &mut Vec<Cause>) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|value| *value != "All") {
        let shown = Value::from(values.clone());
        let message = format!("Unsupported value: {shown}: supported values: \"All\"");
        causes.push(cause("FieldValueNotSupported", "dryRun", message));
    }
    !values.is_empty()
}

/// Reads write options; `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
pub(crate) fn write(
    query: &Query,
    kind: &str,
    default_manager: &str,
) -> Result<WriteOptions, ApiError> {
    let mut causes = Vec::new();
    let dry_run = dry_run(query.all("dryRun"), &mut causes);
    let given = query.get("fieldManager");
    if let Some(manager) = given {
        // Bytes, as upstream counts.
        if manager.len() > 128 {
            let detail = "may not be more than 128 bytes";
            causes.push(cause("FieldValueTooLong", "fieldManager", format!("Too long: {detail}")));
        } else if let Some((at, odd)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let shown = go::quote(manager);
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
            let message = format!("Invalid value: {shown}: {why}");
            causes.push(cause("FieldValueInvalid", "fieldManager", message));
        }
    }
    let validation = match query.get("fieldValidation") {
        None | Some("Warn") => FieldValidation::Warn,
        Some("Ignore") => FieldValidation::Ignore,
        Some("Strict") => FieldValidation::Strict,
        Some(other) => {
            causes.push(unsupported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]));
            FieldValidation::Warn
        }
    };
    if !causes.is_empty() {
        return Err(ApiError::invalid_options(kind, causes));
    }
    let manager = given.unwrap_or(default_manager).to_owned();
    Ok(WriteOptions {
        dry_run,
        manager,
        sent_manager: given.unwrap_or_default().to_owned(),
        sent_validation: query.get("fieldValidation").unwrap_or_default().to_owned(),
        validation,
        force: query.flag("force").unwrap_or(false),
    })
}

/// Treatment of dependents when their owner is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents are deleted later.
    Background,
    /// Dependents are deleted first.
    Foreground,
    /// Dependents stay.
    Orphan,
}

/// Options of delete and deletecollection.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// Executes everything but the store.
    pub(crate) dry_run: bool,
    /// Grace period of a Pod, in seconds.
    pub(crate) grace: Option<i64>,
    /// Treatment of dependents; `None` for the kind's default.
    pub(crate) propagation: Option<Propagation>,
    /// Whether dependents were asked for in the older form, to be deleted: the answer to a deletion
    /// that waits is 202 then.
    pub(crate) is_cascading: bool,
    /// Precondition: the uid of the object.
    pub(crate) uid: Option<String>,
    /// Precondition: the resourceVersion of the object.
    pub(crate) version: Option<String>,
}

/// Checks that the body of a deletion is delete options.
fn check_delete_body(body: &Value) -> Result<(), ApiError> {
    if let Value::Array(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) = body {
        return Err(ApiError::bad_request(go::not_an_object(body)));
    }
    let kind = body["kind"].as_str().unwrap_or_default();
    if !kind.is_empty() && kind != "DeleteOptions" {
        let version = body["apiVersion"].as_str().unwrap_or_default();
        // The scheme of options has few kinds.
        let is_known = kind == "Status" && version == "v1";
        let text = if is_known {
            let short = version.rsplit('/').next().unwrap_or(version);
            format!("converting ({short}.{kind}) to (v1.DeleteOptions): unknown conversion")
        } else {
            format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        };
        return Err(ApiError::bad_request(text));
    }
    for (field, fits, wanted) in [
        ("gracePeriodSeconds", Value::is_i64 as fn(&Value) -> bool, "int64"),
        ("orphanDependents", Value::is_boolean, "bool"),
        ("propagationPolicy", Value::is_string, "v1.DeletionPropagation"),
        ("dryRun", Value::is_array, "[]string"),
        ("preconditions", Value::is_object, "v1.Preconditions"),
    ] {
        let value = &body[field];
        if !value.is_null() && !fits(value) {
            let field = format!("DeleteOptions.{field}");
            return Err(ApiError::bad_request(go::mismatch(value, &field, wanted)));
        }
    }
    Ok(())
}

/// Returns the treatment of dependents, by policy or by the predecessor `orphanDependents`.
fn propagation(
    policy: Option<&str>,
    orphan: Option<bool>,
    causes: &mut Vec<Cause>,
) -> Option<Propagation> {
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        causes.push(invalid_value("propagationPolicy", &policy.into(), detail));
    }
    match policy {
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            causes.push(unsupported("propagationPolicy", other, &known));
            None
        }
        None => {
            orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background })
        }
    }
}

/// Reads delete options: from the body if present, else from the query.
pub(crate) fn delete(query: &Query, body: &Value) -> Result<DeleteOptions, ApiError> {
    check_delete_body(body)?;
    let text = |name: &str| match body {
        Value::Object(fields) => fields.get(name).and_then(Value::as_str).map(str::to_owned),
        _ => query.get(name).map(str::to_owned),
    };
    let mut causes = Vec::new();
    let (dry_run, grace, orphan) = match body {
        Value::Object(fields) => {
            let list = fields.get("dryRun").and_then(Value::as_array);
            let values = list.into_iter().flatten().filter_map(Value::as_str);
            let grace = fields.get("gracePeriodSeconds").and_then(Value::as_i64);
            let orphan = fields.get("orphanDependents").and_then(Value::as_bool);
            (dry_run(values, &mut causes), grace, orphan)
        }
        _ => (
            dry_run(query.all("dryRun"), &mut causes),
            query.integer("gracePeriodSeconds")?,
            query.flag("orphanDependents"),
        ),
    };
    // An empty policy counts as absent.
    let policy = text("propagationPolicy").filter(|policy| !policy.is_empty());
    let propagation = propagation(policy.as_deref(), orphan, &mut causes);
    if !causes.is_empty() {
        return Err(ApiError::invalid_options("DeleteOptions", causes));
    }
    let precondition = |name: &str| match body {
        // An empty precondition counts: nothing has that uid or version.
        Value::Object(_) => body["preconditions"][name].as_str().map(str::to_owned),
        _ => query.get(name).filter(|text| !text.is_empty()).map(str::to_owned),
    };
    // A negative period means one second, as upstream defines.
    let grace = grace.map(|seconds| if seconds < 0 { 1 } else { seconds });
    Ok(DeleteOptions {
        dry_run,
        grace,
        propagation,
        is_cascading: orphan == Some(false),
        uid: precondition("uid"),
        version: precondition("resourceVersion"),
    })
}

/// Meaning of `resourceVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// Not given.
    Unset,
    /// Exactly this version.
    Exact,
    /// This version or newer.
    NotOlderThan,
}

/// Options of list and watch.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    /// Label selector.
    pub(crate) labels: LabelSelector,
    /// Field selector.
    pub(crate) fields: FieldSelector,
    /// Page size; 0 is no limit.
    pub(crate) limit: usize,
    /// Continue token; may be empty.
    pub(crate) token: String,
    /// Version as sent; may be empty.
    pub(crate) version: String,
    /// Meaning of the version.
    pub(crate) matching: Match,
    /// Whether the client wants bookmarks.
    pub(crate) bookmarks: bool,
    /// Whether the client wants the initial state as events; `None` if not given.
    pub(crate) initial: Option<bool>,
    /// Duration of a watch, in seconds.
    pub(crate) timeout: Option<u64>,
}

/// Reads and checks list options.
pub(crate) fn list(query: &Query, watch: bool) -> Result<ListOptions, ApiError> {
    let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default());
    let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default());
    let mut causes = Vec::new();
    let limit = query.integer("limit")?.unwrap_or(0);
    let timeout = query.integer("timeoutSeconds")?;
    let mut options = ListOptions {
        labels: labels.map_err(ApiError::bad_request)?,
        fields: fields.map_err(ApiError::bad_request)?,
        limit: usize::try_from(limit).unwrap_or(0),
        token: query.get("continue").unwrap_or_default().to_owned(),
        version: query.get("resourceVersion").unwrap_or_default().to_owned(),
        matching: match query.get("resourceVersionMatch") {
            Some("Exact") => Match::Exact,
            Some("NotOlderThan") => Match::NotOlderThan,
            _ => Match::Unset,
        },
        bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
        initial: query.flag("sendInitialEvents"),
        timeout: timeout
            .and_then(|seconds| u64::try_from(seconds).ok())
            // Zero means no limit of the client's own.
            .filter(|seconds| *seconds > 0),
    };
    let matching = query.get("resourceVersionMatch").unwrap_or_default();
    if watch {
        if options.is_implied(matching) {
            options.initial = Some(true);
            options.matching = Match::NotOlderThan;
            options.check_watch("NotOlderThan", &mut causes);
        } else {
            options.check_watch(matching, &mut causes);
        }
    } else {
        options.check_list(matching, &mut causes)
    }
    if causes.is_empty() {
        Ok(options)
    } else {
        Err(ApiError::invalid_options("ListOptions", causes))
    }
}

impl ListOptions {
    /// Restricts the selection to the name of the path. Refuses selections of fields that do not
    /// select this name.
    pub(crate) fn only(&mut self, name: &str) -> Result<(), ApiError> {
        const FIELD: &str = "metadata.name";
        if self.fields.is_empty() {
            self.fields.require(FIELD, name);
            return Ok(());
        }
        if self.fields.exact(FIELD) == Some(name) {
            return Ok(());
        }
        Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"))
    }

    /// Collects faults in the options of a list.
    fn check_list(&self, matching: &str, causes: &mut Vec<Cause>) {
        let field = "resourceVersionMatch";
        let mut forbid = |holds: bool, detail: &str| {
            if holds {
                causes.push(forbidden_field(field, detail));
            }
        };
        if !matching.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid(self.version.is_empty(), detail);
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            forbid(!self.token.is_empty(), detail);
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            forbid(self.matching == Match::Exact && self.version == "0", detail);
            if self.matching == Match::Unset {
                causes.push(unsupported(field, matching, &["Exact", "NotOlderThan", ""]));
            }
        }
        if self.initial.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            causes.push(forbidden_field("sendInitialEvents", detail));
        }
    }

    /// Whether a watch begins with the present state although the client does not say so.
    fn is_implied(&self, matching: &str) -> bool {
        self.initial.is_none() && matching.is_empty() && matches!(self.version.as_str(), "" | "0")
    }

    /// Collects faults in the options of a watch.
    fn check_watch(&self, matching: &str, causes: &mut Vec<Cause>) {
        let field = "resourceVersionMatch";
        if self.initial.is_some() && matching != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(forbidden_field(field, detail));
        }
        if matching.is_empty() {
            return;
        }
        if self.initial.is_none() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(forbidden_field(field, detail));
        }
        if matching != "NotOlderThan" {
            causes.push(unsupported(field, matching, &["NotOlderThan"]));
        }
        if !self.token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            causes.push(forbidden_field(field, detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn junk_flags_are_true_and_junk_numbers_are_refused() {
        let query = Query::parse("watch=abc&allowWatchBookmarks=0&limit=x&labelSelector=a%3Db");
        assert_eq!(
            (query.flag("watch"), query.flag("allowWatchBookmarks")),
            (Some(true), Some(false))
        );
        assert_eq!(query.get("labelSelector"), Some("a=b"));
        let error = list(&query, false).unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (400, "strconv.ParseInt: parsing \"x\": invalid syntax")
        );
    }

    #[test]
    fn list_options_that_contradict_each_other_are_forbidden() {
        for (text, watch, causes) in [
            ("resourceVersionMatch=Exact", false, 1),
            ("resourceVersionMatch=Exact&resourceVersion=0", false, 1),
            ("resourceVersionMatch=Nope&resourceVersion=1", false, 1),
            ("resourceVersionMatch=NotOlderThan&continue=x", false, 2),
            ("sendInitialEvents=true", false, 1),
            ("sendInitialEvents=true", true, 1),
            ("resourceVersionMatch=NotOlderThan&resourceVersion=1", true, 1),
            ("sendInitialEvents=true&resourceVersionMatch=Exact", true, 2),
            ("continue=x", true, 1),
            ("continue=x&resourceVersion=0", true, 1),
        ] {
            let error = list(&Query::parse(text), watch).unwrap_err();
            assert_eq!((error.code(), error.causes().len()), (422, causes), "{text}");
        }
        let fine = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert!(list(&Query::parse(fine), true).is_ok());
        assert!(list(&Query::parse("continue=x&resourceVersion=1"), true).is_ok());
    }

    #[test]
    fn delete_options_come_from_the_body_before_the_query() {
        let query = Query::parse("propagationPolicy=Orphan");
        let options = delete(&query, &Value::Null).unwrap();
        assert_eq!(options.propagation, Some(Propagation::Orphan));
        let body = json!({"propagationPolicy": "Foreground", "gracePeriodSeconds": -1,
            "preconditions": {"uid": "u"}});
        let options = delete(&query, &body).unwrap();
        assert_eq!(options.propagation, Some(Propagation::Foreground));
        assert_eq!((options.grace, options.uid.as_deref()), (Some(1), Some("u")));
        let error = delete(&query, &json!({"propagationPolicy": "Foo"})).unwrap_err();
        assert!(error.message().ends_with(
            "Unsupported value: \"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        ));
    }

    #[test]
    fn a_dry_run_is_all_or_nothing() {
        assert!(write(&Query::parse("dryRun=All"), "CreateOptions", "x").unwrap().dry_run);
        assert!(write(&Query::parse("dryRun=Some"), "CreateOptions", "x").is_err());
    }
}
