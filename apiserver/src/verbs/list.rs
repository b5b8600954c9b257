//! LIST: which objects, as of which revision, in which pages.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::options::{ListOptions, Match};
use super::{Answer, Call};
use crate::core::Core;
use crate::go;
use crate::kinds::{Kind, events};
use crate::selectors::{FieldSelector, LabelSelector, field_value};
use crate::status::ApiError;
use crate::storage::{self, Snapshot};

/// What a list, watch or deletion of a collection selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Of a request's options; its fields must be ones the kind can be selected by.
    pub(crate) fn of(kind: &Kind, options: &ListOptions) -> Result<Self, ApiError> {
        let mut fields = options.fields.clone();
        if kind.is("", "pods") {
            // A name from the first days.
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

    /// Selects everything?
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Is the stored object selected?
    pub(crate) fn matches(&self, stored: &Value) -> bool {
        self.labels.matches(stored) && self.fields.matches(stored, selectable)
    }
}

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
    let own = kind.served.custom || !kind.facts.fields.is_empty();
    Err(ApiError::bad_request(if own {
        format!("field label not supported: {field}")
    } else {
        format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    }))
}

/// The value of a field for selectors; some are not where their name says.
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

/// Items of built-in lists carry no kind.
pub(crate) fn anonymous(item: &mut Value) {
    if let Value::Object(fields) = item {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
}

/// A version in a request.
pub(crate) fn version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
    })
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    /// -1 for a list that goes on with what is there now.
    revision: i64,
    /// First key not shown yet.
    start: String,
}

impl Token {
    fn encode(&self) -> String {
        let text = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": format!("/{}", self.start)});
        URL_SAFE_NO_PAD.encode(text.to_string())
    }

    fn decode(text: &str) -> Result<Self, ApiError> {
        let refuse = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|why| refuse(base64_error(&why)))?;
        let token: Value =
            serde_json::from_slice(&bytes).map_err(|why| refuse(go::json_error(&why, &bytes)))?;
        let version = token["v"].as_str().unwrap_or_default();
        if version != "meta.k8s.io/v1" {
            return Err(refuse(format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        let revision = token["rv"].as_i64().unwrap_or(0);
        if revision == 0 {
            let why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(refuse(why.to_owned()));
        }
        let start = token["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(refuse("encoded start key empty (version meta.k8s.io/v1)".to_owned()));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(refuse(start.to_owned()));
        }
        Ok(Self { revision, start: start.trim_start_matches('/').to_owned() })
    }
}

/// The error as Go words it.
fn base64_error(why: &base64::DecodeError) -> String {
    let at = match *why {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            at
        }
        base64::DecodeError::InvalidLength(length) => length.saturating_sub(1),
        base64::DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

/// From where and when a list is read.
struct Source {
    snapshot: Snapshot,
    revision: u64,
    start: String,
    limit: usize,
}

/// The version a list must wait for, when it lies in the future.
pub(crate) fn awaited(options: &ListOptions) -> u64 {
    version(&options.version).ok().flatten().unwrap_or(0)
}

/// Lists objects.
pub(crate) fn list(core: &Core, call: &Call, options: &ListOptions) -> Result<Answer, ApiError> {
    let kind = &call.kind;
    let selection = Selection::of(kind, options)?;
    let source = source(core, call, options)?;
    let mut items = Vec::new();
    let mut next = None;
    let mut rest = 0_usize;
    for (key, held) in storage::in_namespace(&source.snapshot, &call.namespace) {
        if **key < *source.start || !selection.matches(&held.value) {
            continue;
        }
        if source.limit > 0 && items.len() == source.limit {
            next.get_or_insert_with(|| format!("{}\0", last_key(&items)));
            rest += 1;
            if !selection.is_everything() {
                break;
            }
            continue;
        }
        items.push((key.clone(), held.clone()));
    }
    let revision = i64::try_from(source.revision).unwrap_or(i64::MAX);
    let token = next.map(|start| Token { revision, start }.encode());
    let items = items.iter().map(|(_, held)| kind.present(&held.value)).collect();
    let remaining = selection.is_everything().then_some(rest);
    Ok(Answer::ok(assemble(kind, items, source.revision, token, remaining)))
}

fn last_key<T>(items: &[(std::sync::Arc<str>, T)]) -> &str {
    items.last().map_or("", |(key, _)| key)
}

/// The list object.
fn assemble(
    kind: &Kind,
    mut items: Vec<Value>,
    revision: u64,
    token: Option<String>,
    remaining: Option<usize>,
) -> Value {
    let served = &kind.served;
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if served.custom {
        metadata["continue"] = json!("");
    } else {
        items.iter_mut().for_each(anonymous);
    }
    if let Some(token) = token {
        metadata["continue"] = json!(token);
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    json!({
        "kind": served.list_kind, "apiVersion": served.api_version(),
        "metadata": metadata, "items": items,
    })
}

fn source(core: &Core, call: &Call, options: &ListOptions) -> Result<Source, ApiError> {
    let asked = version(&options.version)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    if !options.token.is_empty() {
        return continued(core, call, options, asked);
    }
    let resource = &call.kind.storage;
    let (snapshot, revision) = core.store.snapshot(resource);
    let asked = asked.unwrap_or(0);
    if asked > revision {
        return Err(ApiError::future_version(asked, revision));
    }
    let exact = options.matching == Match::Exact
        || (options.matching == Match::Unset && asked > 0 && options.limit > 0);
    if exact {
        let old = core.store.snapshot_at(resource, asked);
        let snapshot = old.map_err(|_| {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        })?;
        return Ok(Source {
            snapshot,
            revision: asked,
            start: String::new(),
            limit: options.limit,
        });
    }
    // "Any version" is served whole.
    let limit = if options.version == "0" { 0 } else { options.limit };
    Ok(Source { snapshot, revision, start: String::new(), limit })
}

fn continued(
    core: &Core,
    call: &Call,
    options: &ListOptions,
    asked: Option<u64>,
) -> Result<Source, ApiError> {
    let token = Token::decode(&options.token)?;
    if asked.is_some_and(|asked| asked > 0) {
        let why = "specifying resource version is not allowed when using continue";
        return Err(ApiError::bad_request(why));
    }
    let resource = &call.kind.storage;
    let start = token.start.clone();
    let Ok(revision) = u64::try_from(token.revision) else {
        let (snapshot, revision) = core.store.snapshot(resource);
        return Ok(Source { snapshot, revision, start, limit: options.limit });
    };
    match core.store.snapshot_at(resource, revision) {
        Ok(snapshot) => Ok(Source { snapshot, revision, start, limit: options.limit }),
        Err(_) => Err(ApiError::expired_token(Token { revision: -1, start }.encode())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_encoding_and_rejects_traversal() {
        let token = Token { revision: 7, start: "ns/a\0".to_owned() };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        let bad = Token { revision: 7, start: "../x".to_owned() };
        assert_eq!(Token::decode(&bad.encode()).unwrap_err().code(), 400);
        let error = Token::decode("!!").unwrap_err();
        assert!(error.message().starts_with("invalid continue token: continue key is not valid: "));
    }
}
