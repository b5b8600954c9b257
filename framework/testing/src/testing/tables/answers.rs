//! Answers in the place of an API server: reads of the given objects, and dry runs of writes to
//! them.
//!
//! Nothing is stored, so every request is answered from the same objects. Not included: defaults,
//! rules, rights, the ownership of fields, and patches other than applies and merges.

use http::Method;
use http::request::Parts;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::given::GivenObject;
use crate::testing::target::RequestTarget;

/// Members by which the items of a list are told apart.
const ITEM_NAMES: [&str; 3] = ["uid", "type", "name"];

/// The given objects, with their namespaces.
#[derive(Debug)]
pub(super) struct GivenObjects(pub(super) Vec<(String, GivenObject)>);

/// An answer: its code, its body, and whether more may follow, as of a watch.
pub(super) struct ScriptedResponse {
    pub(super) code: u16,
    pub(super) body: Bytes,
    pub(super) is_open: bool,
}

impl GivenObjects {
    /// Answers a request.
    pub(super) fn answer(&self, parts: &Parts, body: &[u8]) -> ScriptedResponse {
        let query = parts.uri.query().unwrap_or_default();
        let parameter = |name: &str| parameter(query, name);
        let Some(target) = RequestTarget::of(parts.uri.path()) else {
            return failure(404, "NotFound", "there is no API server, only objects");
        };
        let is_watch = parameter("watch").is_some_and(|value| value == "true" || value == "1");
        match parts.method {
            Method::GET if is_watch => {
                let is_initial = parameter("sendInitialEvents").is_some_and(|it| it == "true");
                self.watch(&target, query, is_initial)
            }
            Method::GET if target.name.is_empty() => self.list(&target, query),
            Method::GET => match self.get(&target) {
                Some(object) => success(200, object),
                None => absent(&target),
            },
            Method::POST => self.create(&target, body),
            Method::DELETE if target.name.is_empty() => self.list(&target, query),
            Method::DELETE => match self.get(&target) {
                Some(object) => success(200, object),
                None => absent(&target),
            },
            Method::PUT | Method::PATCH => {
                let header = parts.headers.get(http::header::CONTENT_TYPE);
                let format = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
                self.write(&target, parts.method == Method::PUT, format, body)
            }
            _ => failure(405, "MethodNotAllowed", "a method that no case needs"),
        }
    }

    /// Returns the object of a target.
    fn get<'a>(&'a self, target: &'a RequestTarget) -> Option<&'a Value> {
        let mut objects = self.of_kind(target);
        objects.find(|object| object["metadata"]["name"] == *target.name)
    }

    /// Iterates over the objects of the kind and the namespace of a target.
    fn of_kind<'a>(&'a self, target: &'a RequestTarget) -> impl Iterator<Item = &'a Value> {
        let is_near =
            |namespace: &str| target.namespace.is_empty() || target.namespace == namespace;
        let objects = self.0.iter().filter(move |(namespace, given)| {
            given.info.group == target.group
                && given.info.plural == target.plural
                && is_near(namespace)
        });
        objects.map(|(_, given)| &given.value)
    }

    /// Returns the objects that a list or a watch selects.
    fn selected<'a>(&'a self, target: &'a RequestTarget, query: &str) -> Vec<&'a Value> {
        let labels = parameter(query, "labelSelector").unwrap_or_default();
        let fields = parameter(query, "fieldSelector").unwrap_or_default();
        let is_selected = |object: &&Value| {
            let label = |name: &str| object["metadata"]["labels"][name].as_str().map(str::to_owned);
            let field = |path: &str| {
                object.pointer(&format!("/{}", path.replace('.', "/")))?.as_str().map(str::to_owned)
            };
            matches(&labels, label) && matches(&fields, field)
        };
        self.of_kind(target).filter(is_selected).collect()
    }

    fn list(&self, target: &RequestTarget, query: &str) -> ScriptedResponse {
        let items = self.selected(target, query);
        let kind = items.first().and_then(|item| item["kind"].as_str()).unwrap_or("Object");
        let version = items.first().map_or(json!("v1"), |item| item["apiVersion"].clone());
        let list = json!({ "kind": format!("{kind}List"), "apiVersion": version,
            "metadata": { "resourceVersion": "1000" }, "items": items });
        success(200, &list)
    }

    fn watch(&self, target: &RequestTarget, query: &str, is_initial: bool) -> ScriptedResponse {
        let mut events = Vec::new();
        if is_initial {
            let objects = self.selected(target, query).into_iter();
            events.extend(objects.map(|object| json!({ "type": "ADDED", "object": object })));
            // Without a kind, which is not known when there is no object.
            events.push(json!({ "type": "BOOKMARK", "object": {
                "metadata": { "resourceVersion": "1000",
                    "annotations": { "k8s.io/initial-events-end": "true" } } } }));
        }
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        ScriptedResponse { code: 200, body: lines.into(), is_open: true }
    }

    fn create(&self, target: &RequestTarget, body: &[u8]) -> ScriptedResponse {
        let Ok(mut object) = serde_json::from_slice::<Value>(body) else {
            return failure(400, "BadRequest", "the body is no JSON");
        };
        if !target.subresource.is_empty() || target.group == "authorization.k8s.io" {
            // A question whose answer is yes, or a call without a result.
            object["status"]["allowed"] = json!(true);
            return success(201, &object);
        }
        let prefix = object["metadata"]["generateName"].as_str().map(str::to_owned);
        if object["metadata"]["name"].is_null()
            && let Some(prefix) = prefix
        {
            object["metadata"]["name"] = json!(format!("{prefix}x0x0x"));
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let target = RequestTarget { name, ..target.clone() };
        if self.get(&target).is_some() {
            let text = format!("{} {:?} already exists", target.resource(), target.name);
            return failure(409, "AlreadyExists", &text);
        }
        success(201, &completed(&target, object))
    }

    /// Answers an update, an apply or a merge patch.
    fn write(
        &self,
        target: &RequestTarget,
        is_update: bool,
        format: &str,
        body: &[u8],
    ) -> ScriptedResponse {
        let Ok(sent) = serde_json::from_slice::<Value>(body) else {
            return failure(400, "BadRequest", "the body is no JSON");
        };
        let is_apply = format.starts_with("application/apply-patch");
        let is_merge = format.starts_with("application/merge-patch");
        if !is_update && !is_apply && !is_merge {
            let text = format!("{format} needs a server: check the table by `check_on_server`");
            return failure(415, "UnsupportedMediaType", &text);
        }
        let Some(stored) = self.get(target) else {
            if is_apply && target.subresource.is_empty() {
                return success(201, &completed(target, sent));
            }
            return absent(target);
        };
        if is_condition_broken(stored, &sent) {
            let text = format!("{} {:?} is another version", target.resource(), target.name);
            return failure(409, "Conflict", &text);
        }
        let mut after = stored.clone();
        let is_status = target.subresource == "status";
        let fields = sent.as_object().cloned().unwrap_or_default();
        if is_update {
            let metadata = merged_metadata(stored, &sent);
            after = if is_status { stored.clone() } else { sent.clone() };
            after["metadata"] = metadata;
            let from = if is_status { &sent } else { stored };
            after["status"] = from["status"].clone();
        } else {
            for (name, value) in &fields {
                // The status is written by its subresource only, and the rest is not written there.
                let is_kept = matches!(name.as_str(), "apiVersion" | "kind")
                    || (name == "status") != is_status;
                if !is_kept {
                    merge(&mut after[name.as_str()], value, is_apply);
                }
            }
        }
        after["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        if after["status"].is_null()
            && let Some(fields) = after.as_object_mut()
        {
            fields.remove("status");
        }
        success(200, &after)
    }
}

/// Whether a write names another uid or version than the stored ones.
fn is_condition_broken(stored: &Value, sent: &Value) -> bool {
    ["uid", "resourceVersion"].iter().any(|field| {
        let (stored, sent) = (&stored["metadata"][*field], &sent["metadata"][*field]);
        !sent.is_null() && sent != "" && sent != stored
    })
}

/// Returns the metadata after an update: what the server sets is kept.
fn merged_metadata(stored: &Value, sent: &Value) -> Value {
    let mut metadata = sent["metadata"].clone();
    for field in
        ["uid", "creationTimestamp", "deletionTimestamp", "generation", "namespace", "name"]
    {
        if !stored["metadata"][field].is_null() {
            metadata[field] = stored["metadata"][field].clone();
        }
    }
    metadata
}

/// Merges a value into another one; lists item by item for an apply. The recursion is as deep as
/// the values.
fn merge(into: &mut Value, sent: &Value, is_apply: bool) {
    match (&mut *into, sent) {
        (Value::Object(known), Value::Object(fields)) => {
            for (name, value) in fields {
                if value.is_null() && !is_apply {
                    known.remove(name);
                } else {
                    merge(known.entry(name.clone()).or_insert(Value::Null), value, is_apply);
                }
            }
        }
        (Value::Null, Value::Object(_)) => {
            *into = Value::Object(Map::new());
            merge(into, sent, is_apply);
        }
        (Value::Array(known), Value::Array(items)) if is_apply => merge_items(known, items),
        _ => *into = sent.clone(),
    }
}

/// Merges the items of a list that an apply names: by their name, or as a set of texts; else the
/// list is replaced.
fn merge_items(known: &mut Vec<Value>, items: &[Value]) {
    let all = |is_one: &dyn Fn(&Value) -> bool| known.iter().chain(items).all(is_one);
    if all(&Value::is_string) {
        let new = items.iter().filter(|item| !known.contains(item)).cloned().collect::<Vec<_>>();
        known.extend(new);
        return;
    }
    let Some(member) = ITEM_NAMES.into_iter().find(|name| all(&|item| item[*name].is_string()))
    else {
        *known = items.to_vec();
        return;
    };
    for item in items {
        match known.iter_mut().find(|other| other[member] == item[member]) {
            Some(other) => merge(other, item, true),
            None => known.push(item.clone()),
        }
    }
}

/// Returns the answer about an object that is not given.
fn absent(target: &RequestTarget) -> ScriptedResponse {
    failure(404, "NotFound", &format!("{} {:?} not found", target.resource(), target.name))
}

/// Completes a new object as a server does.
fn completed(target: &RequestTarget, mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(target.name);
    if !target.namespace.is_empty() {
        metadata["namespace"] = json!(target.namespace);
    }
    metadata["uid"] = json!("00000000-0000-4000-8000-ffffffffffff");
    metadata["resourceVersion"] = json!("1001");
    metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    metadata["generation"] = json!(1);
    object
}

fn success(code: u16, object: &Value) -> ScriptedResponse {
    ScriptedResponse { code, body: object.to_string().into(), is_open: false }
}

fn failure(code: u16, reason: &str, message: &str) -> ScriptedResponse {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code });
    success(code, &status)
}

/// Returns the value of a parameter of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    let value = value.replace('+', " ");
    Some(percent_encoding::percent_decode_str(&value).decode_utf8_lossy().into_owned())
}

/// Whether the values fit a selector of equalities; requirements of other forms are taken as met.
fn matches(selector: &str, value: impl Fn(&str) -> Option<String>) -> bool {
    if selector.contains('(') {
        return true;
    }
    selector.split(',').filter(|part| !part.is_empty()).all(|part| {
        let has =
            |(name, wanted): (&str, &str)| value(name.trim()).as_deref() == Some(wanted.trim());
        if let Some(pair) = part.split_once("!=") {
            return !has(pair);
        }
        match part.split_once("==").or_else(|| part.split_once('=')) {
            Some(pair) => has(pair),
            None => match part.strip_prefix('!') {
                Some(name) => value(name.trim()).is_none(),
                None => value(part.trim()).is_some(),
            },
        }
    })
}
