//! LIST: selection, revision and pages.

mod token;

use std::sync::Arc;

use serde_json::{Value, json};

use super::options::{ListOptions, Match};
use super::suspend::convert;
use super::{ObjectResponse, VerbCall};
use crate::core::ServerCore;
use crate::kinds::{Kind, events};
use crate::selectors::{FieldSelector, LabelSelector, field_value};
use crate::status::ApiError;
use crate::storage::{self, Snapshot, StoredObject};
use token::ContinueToken;

/// Selection of a list, watch or deletion of a collection.
#[derive(Clone, Debug)]
pub(crate) struct ListSelection {
    /// Label selector.
    labels: LabelSelector,
    /// Field selector, with fields named as they are stored.
    fields: FieldSelector,
}

impl ListSelection {
    /// Returns the selection of a request's options. Fails for fields by which the kind cannot be
    /// selected.
    pub(crate) fn of(kind: &Kind, options: &ListOptions) -> Result<Self, ApiError> {
        let mut fields = options.fields.clone();
        if kind.is("", "pods") {
            // An old name of the same field.
            fields.rename("spec.host", "spec.nodeName");
        }
        for field in fields.fields() {
            check_field(kind, field)?;
        }
        if kind.served.group == events::GROUP {
            for part in
                ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]
            {
                fields.rename(&format!("regarding.{part}"), &format!("involvedObject.{part}"));
            }
            fields.rename("reportingController", "reportingComponent");
        }
        Ok(Self { labels: options.labels.clone(), fields })
    }

    /// Whether every object is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a stored object is selected.
    pub(crate) fn matches(&self, stored: &Value) -> bool {
        self.labels.matches(stored) && self.fields.matches(stored, selectable)
    }
}

/// Refuses a field by which the kind cannot be selected.
fn check_field(kind: &Kind, field: &str) -> Result<(), ApiError> {
    let path = format!(".{field}");
    let common =
        field == "metadata.name" || (field == "metadata.namespace" && kind.served.namespaced);
    if common || field == "metadata.namespace" || kind.served.selectable.contains(&path) {
        return Ok(());
    }
    if kind.is("batch", "jobs") {
        return Err(ApiError::bad_request(format!("field label {field:?} not supported for Job")));
    }
    if kind.is("resource.k8s.io", "resourceslices") {
        let (version, name) = (kind.served.api_version(), kind.name());
        return Err(ApiError::bad_request(format!(
            "field label not supported for {version}, Kind={name}: {field}"
        )));
    }
    let own = kind.served.custom || !kind.facts.fields.is_empty();
    Err(ApiError::bad_request(if own {
        format!("field label not supported: {field}")
    } else {
        format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    }))
}

/// Returns the value of a field for selectors, which for some fields lies elsewhere than the name
/// says.
fn selectable(stored: &Value, field: &str) -> String {
    match field {
        "status.successful" => count(&stored["status"]["succeeded"]),
        "status.replicas" => count(&stored["status"]["replicas"]),
        "spec.unschedulable" | "spec.hostNetwork" if stored["apiVersion"] == "v1" => {
            let flag = field.trim_start_matches("spec.");
            stored["spec"][flag].as_bool().unwrap_or(false).to_string()
        }
        "source" if stored["kind"] == "Event" => {
            let component = field_value(stored, "source.component");
            if component.is_empty() { field_value(stored, "reportingComponent") } else { component }
        }
        _ => field_value(stored, field),
    }
}

fn count(value: &Value) -> String {
    value.as_i64().unwrap_or(0).to_string()
}

/// Removes kind and version from an item: items of built-in lists carry none.
pub(crate) fn anonymous(item: &mut Value) {
    if let Value::Object(fields) = item {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
}

/// Parses a version of a request; `None` for the empty text.
pub(crate) fn version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|fault: std::num::ParseIntError| {
        let why = match fault.kind() {
            std::num::IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}"
        )
    })
}

/// The snapshot, revision, start and limit of a list.
struct ListSource {
    /// Objects at the list's revision.
    snapshot: Snapshot,
    revision: u64,
    /// First key of the page.
    start: String,
    /// Most items of the page; 0 for no limit.
    limit: usize,
}

/// Returns the version that a list must wait for; 0 for none.
pub(crate) fn awaited(options: &ListOptions) -> u64 {
    version(&options.version).ok().flatten().unwrap_or(0)
}

/// Lists objects.
pub(crate) fn list(
    core: &ServerCore,
    call: &VerbCall,
    options: &ListOptions,
) -> Result<ObjectResponse, ApiError> {
    let kind = &call.kind;
    let selection = ListSelection::of(kind, options)?;
    let source = source(core, call, options)?;
    // Converted before they are selected: labels and selectable fields are those of this version.
    let shown = selected(core, call, &selection, &source)?;
    let (items, metadata) = cut(call, &selection, &source, shown);
    let items = items.into_iter().map(|(_, object)| object.shown(kind)).collect();
    Ok(ObjectResponse::ok(assemble(kind, items, &metadata)))
}

/// The objects of a page as they are stored.
pub(crate) struct StoredPage {
    /// The objects, in the order of the list.
    pub(crate) held: Vec<Arc<StoredObject>>,
    /// Metadata of the list: the version, and the beginning of the next page.
    pub(crate) metadata: Value,
}

/// Returns the stored objects of a page.
pub(crate) fn page(
    core: &ServerCore,
    call: &VerbCall,
    options: &ListOptions,
) -> Result<StoredPage, ApiError> {
    let selection = ListSelection::of(&call.kind, options)?;
    let source = source(core, call, options)?;
    let all = stored(call, &source).filter(|(_, held)| selection.matches(&held.value));
    let all = Box::new(all.map(|(key, held)| (key, ListedObject::Stored(held.clone()))));
    let (items, metadata) = cut(call, &selection, &source, all);
    let held = items.into_iter().filter_map(|(_, item)| match item {
        ListedObject::Stored(held) => Some(held),
        ListedObject::Shown(_) => None,
    });
    Ok(StoredPage { held: held.collect(), metadata })
}

/// Returns the first objects up to the limit, and the metadata of their list.
fn cut<'s>(
    call: &VerbCall,
    selection: &ListSelection,
    source: &'s ListSource,
    all: ListedObjects<'s>,
) -> (Vec<(Arc<str>, ListedObject)>, Value) {
    let mut items = Vec::new();
    let mut rest = 0_usize;
    for (key, object) in all {
        if source.limit > 0 && items.len() == source.limit {
            rest += 1;
            // The rest is counted only without a selector, as upstream does.
            if !selection.is_everything() {
                break;
            }
            continue;
        }
        items.push((key.clone(), object));
    }
    let is_full = source.limit > 0 && items.len() == source.limit;
    let goes_on = is_full && (rest > 0 || has_more(call, selection, source, last_key(&items)));
    let mut metadata = json!({"resourceVersion": source.revision.to_string()});
    if call.kind.served.custom {
        metadata["continue"] = json!("");
    }
    if goes_on {
        // The first possible key behind the last shown key.
        let last = last_key(&items);
        let last = last.strip_prefix(prefix(call).as_str()).unwrap_or(last);
        let start = format!("{last}\0");
        let revision = i64::try_from(source.revision).unwrap_or(i64::MAX);
        metadata["continue"] = json!(ContinueToken { revision, start }.encode());
        if selection.is_everything() {
            metadata["remainingItemCount"] = json!(rest);
        }
    }
    (items, metadata)
}

/// Whether a full page ends before the last object. As upstream does, objects behind the page count
/// whether or not they are selected; a list of a single name reads no others.
fn has_more(call: &VerbCall, selection: &ListSelection, source: &ListSource, last: &str) -> bool {
    selection.fields.exact("metadata.name").is_none()
        && storage::in_namespace(&source.snapshot, &call.namespace).any(|(key, _)| **key > *last)
}

/// An object of a list.
enum ListedObject {
    /// In stored form.
    Stored(Arc<StoredObject>),
    /// Converted by a webhook.
    Shown(Value),
}

impl ListedObject {
    fn shown(self, kind: &Kind) -> Value {
        match self {
            Self::Stored(held) => kind.present(&held.value),
            Self::Shown(value) => value,
        }
    }
}

/// Objects of a list with their keys.
type ListedObjects<'s> = Box<dyn Iterator<Item = (&'s Arc<str>, ListedObject)> + 's>;

/// Returns the selected objects from the start of the page on, with their keys.
fn selected<'s>(
    core: &ServerCore,
    call: &'s VerbCall,
    selection: &'s ListSelection,
    source: &'s ListSource,
) -> Result<ListedObjects<'s>, ApiError> {
    check_versions(call, &source.snapshot)?;
    let all = stored(call, source);
    if !convert::is_by_webhook(&call.session, &call.kind) {
        let chosen = all.filter(|(_, held)| selection.matches(&held.value));
        return Ok(Box::new(chosen.map(|(key, held)| (key, ListedObject::Stored(held.clone())))));
    }
    let (keys, stored): (Vec<_>, Vec<_>) = all.map(|(key, held)| (key, &held.value)).unzip();
    let shown = convert::shown_all(core, &call.session, &call.kind, stored)?;
    let chosen = keys.into_iter().zip(shown).filter(|(_, object)| selection.matches(object));
    Ok(Box::new(chosen.map(|(key, object)| (key, ListedObject::Shown(object)))))
}

/// Refuses a list or a watch of objects one of which is stored in a version that is gone: upstream
/// reads all objects of a kind before any is shown.
pub(crate) fn check_versions(call: &VerbCall, snapshot: &Snapshot) -> Result<(), ApiError> {
    if call.kind.custom.is_none() {
        return Ok(());
    }
    for (_, held) in snapshot {
        convert::check_version(&call.kind, &held.value).map_err(|error| {
            let (version, kind) = (call.kind.served.api_version(), call.kind.name());
            let why = format!("failed to list {version}, Kind={kind}: {}", error.message());
            ApiError::too_many(&format!("storage is (re)initializing: {why}"), 1)
        })?;
    }
    Ok(())
}

/// Returns the stored objects from the start of the page on, with their keys.
fn stored<'s>(
    call: &'s VerbCall,
    source: &'s ListSource,
) -> impl Iterator<Item = (&'s Arc<str>, &'s Arc<StoredObject>)> + 's {
    storage::in_namespace(&source.snapshot, &call.namespace)
        .filter(|(key, _)| ***key >= *source.start)
}

fn last_key<T>(items: &[(Arc<str>, T)]) -> &str {
    items.last().map_or("", |(key, _)| key)
}

/// Returns the list object.
fn assemble(kind: &Kind, mut items: Vec<Value>, metadata: &Value) -> Value {
    let served = &kind.served;
    if !served.custom {
        items.iter_mut().for_each(anonymous);
    }
    json!({
        "kind": served.list_kind, "apiVersion": served.api_version(),
        "metadata": metadata, "items": items,
    })
}

/// Returns the beginning of all keys of a list, which tokens leave out.
fn prefix(call: &VerbCall) -> String {
    if call.namespace.is_empty() { String::new() } else { storage::key(&call.namespace, "") }
}

/// Chooses the snapshot that a list reads.
fn source(
    core: &ServerCore,
    call: &VerbCall,
    options: &ListOptions,
) -> Result<ListSource, ApiError> {
    if !options.token.is_empty() {
        return continued(core, call, options);
    }
    let asked = version(&options.version)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    let resource = &call.kind.storage;
    let (snapshot, revision) = core.store.snapshot(resource);
    let asked = asked.unwrap_or(0);
    if asked > revision {
        return Err(ApiError::future_version(asked, revision));
    }
    // A first page of a given version is exact, too, unless the client says otherwise.
    let exact = options.matching == Match::Exact
        || (options.matching == Match::Unset && asked > 0 && options.limit > 0);
    if exact {
        let old = core.store.snapshot_at(resource, asked);
        let snapshot = old.map_err(|_| {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        })?;
        return Ok(ListSource {
            snapshot,
            revision: asked,
            start: String::new(),
            limit: options.limit,
        });
    }
    // "Any version" is answered whole, without pages.
    let limit = if options.version == "0" { 0 } else { options.limit };
    Ok(ListSource { snapshot, revision, start: String::new(), limit })
}

/// Chooses the snapshot of a list that continues.
fn continued(
    core: &ServerCore,
    call: &VerbCall,
    options: &ListOptions,
) -> Result<ListSource, ApiError> {
    let token = ContinueToken::decode(&options.token)?;
    // As a text: it is not read as a number any more.
    if !matches!(options.version.as_str(), "" | "0") {
        let why = "specifying resource version is not allowed when using continue";
        return Err(ApiError::bad_request(why));
    }
    let resource = &call.kind.storage;
    let start = format!("{}{}", prefix(call), token.start);
    // "Any version" is answered whole, without pages.
    let limit = if options.version == "0" { 0 } else { options.limit };
    // A negative revision: the token of an expired list, which goes on inconsistently.
    let Ok(revision) = u64::try_from(token.revision) else {
        let (snapshot, revision) = core.store.snapshot(resource);
        return Ok(ListSource { snapshot, revision, start, limit });
    };
    let current = core.store.revision();
    if revision > current {
        return Err(ApiError::future_version(revision, current));
    }
    match core.store.snapshot_at(resource, revision) {
        Ok(snapshot) => Ok(ListSource { snapshot, revision, start, limit }),
        Err(_) => Err(ApiError::expired_token(ContinueToken { revision: -1, ..token }.encode())),
    }
}
