//! A request while it is put together: no type parameters, the first mistake kept until the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Patch;
use crate::client::{Client, Prepared, Verb};
use crate::error::{Error, ErrorKind};
use crate::resource::{ResourceInfo, Scope};

const JSON: &str = "application/json";

/// What all requests of an [`Api`](super::Api) have in common.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) info: ResourceInfo,
    /// `None` for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
}

impl Target {
    pub(crate) fn new(client: Client, info: Option<ResourceInfo>, namespace: Option<&str>) -> Self {
        let info = info.unwrap_or(ResourceInfo {
            group: "".into(),
            version: "".into(),
            kind: "".into(),
            plural: "".into(),
            scope: Scope::Namespaced,
        });
        let namespace = namespace.filter(|_| info.scope == Scope::Namespaced).map(str::to_owned);
        Self { client, info, namespace }
    }
}

/// A request being put together.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) target: Arc<Target>,
    pub(crate) verb: Verb,
    method: Method,
    path: String,
    /// `websites.example.dev "home" in "shop"`.
    noun: String,
    subresource: Option<&'static str>,
    pub(crate) query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) repeatable: bool,
    timeout: Option<Duration>,
    mistake: Option<String>,
}

/// `object` as JSON bytes.
pub(crate) fn json<T: Serialize>(object: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(object)
}

impl Draft {
    fn new(target: &Arc<Target>, verb: Verb, namespace: Option<&str>, name: Option<&str>) -> Self {
        let info = &target.info;
        let path = match name {
            Some(name) => info.object_path(namespace, name),
            None => info.collection_path(namespace),
        };
        let mut draft = Self {
            target: Arc::clone(target),
            verb,
            method: method(verb),
            path,
            noun: noun(info, namespace, name),
            subresource: None,
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            repeatable: !verb.writes(),
            timeout: None,
            mistake: None,
        };
        if info.plural.is_empty() {
            draft.refuse("the kind is not known; use Client::dynamic with its ResourceInfo");
        }
        if let Some(namespace) = namespace {
            draft.check_segment("namespace", namespace);
        }
        if let Some(name) = name {
            draft.check_segment("name", name);
        }
        draft
    }

    /// A request about the whole collection.
    pub(crate) fn collection(target: &Arc<Target>, verb: Verb) -> Self {
        let mut draft = Self::new(target, verb, target.namespace.as_deref(), None);
        if verb == Verb::DeleteCollection && draft.lacks_namespace(target.namespace.as_deref()) {
            draft.refuse("a collection is deleted in one namespace; use Client::namespace");
        }
        draft
    }

    /// A request about one object.
    pub(crate) fn named(target: &Arc<Target>, verb: Verb, name: &str) -> Self {
        Self::placed(target, verb, target.namespace.as_deref(), name)
    }

    fn placed(target: &Arc<Target>, verb: Verb, namespace: Option<&str>, name: &str) -> Self {
        let mut draft = Self::new(target, verb, namespace, Some(name));
        if draft.lacks_namespace(namespace) {
            draft.refuse("an object of a namespaced kind needs a namespace; use Client::namespace");
        }
        draft
    }

    fn lacks_namespace(&self, namespace: Option<&str>) -> bool {
        self.target.info.scope == Scope::Namespaced && namespace.is_none()
    }

    pub(crate) fn create(
        target: &Arc<Target>,
        metadata: &ObjectMeta,
        body: serde_json::Result<Vec<u8>>,
    ) -> Self {
        let namespace = namespace_of(target, metadata.namespace.as_deref());
        let mut draft = Self::new(target, Verb::Create, namespace, None);
        let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
        match (text(&metadata.name), text(&metadata.generate_name)) {
            (Some(name), _) => {
                draft.noun = noun(&target.info, namespace, Some(&name));
                draft.check_segment("name", &name);
            }
            (None, Some(prefix)) => {
                draft.noun = noun(&target.info, namespace, Some(&format!("{prefix}*")));
            }
            (None, None) => draft.refuse("the object has neither a name nor a generateName"),
        }
        if draft.lacks_namespace(namespace) {
            draft.refuse("an object of a namespaced kind needs a namespace; use Client::namespace");
        }
        draft.check_agreement(metadata.namespace.as_deref());
        draft.object_body(body);
        draft
    }

    pub(crate) fn replace(
        target: &Arc<Target>,
        metadata: &ObjectMeta,
        body: serde_json::Result<Vec<u8>>,
    ) -> Self {
        let namespace = namespace_of(target, metadata.namespace.as_deref());
        let name = metadata.name.as_deref().unwrap_or_default();
        let mut draft = Self::placed(target, Verb::Update, namespace, name);
        draft.check_agreement(metadata.namespace.as_deref());
        draft.repeatable = metadata.resource_version.as_ref().is_some_and(|rv| !rv.is_empty());
        draft.object_body(body);
        draft
    }

    pub(crate) fn patch(target: &Arc<Target>, name: &str, patch: Patch) -> Self {
        let mut draft = Self::named(target, Verb::Patch, name);
        draft.repeatable = patch.has_precondition();
        let body = Bytes::from(patch.body().to_string());
        draft.set_body(patch.content_type(), body);
        draft
    }

    pub(crate) fn apply(
        target: &Arc<Target>,
        name: &str,
        intent: serde_json::Result<Value>,
    ) -> Self {
        let (mut object, mistake) = match intent {
            Ok(Value::Object(object)) => (object, None),
            Ok(_) => (Map::new(), Some("the intent is no object".to_owned())),
            Err(error) => (Map::new(), Some(format!("the intent is not JSON: {error}"))),
        };
        let own = metadata_text(&object, "namespace");
        let named = metadata_text(&object, "name");
        let namespace = namespace_of(target, own.as_deref()).map(str::to_owned);
        let mut draft = Self::placed(target, Verb::Apply, namespace.as_deref(), name);
        draft.mistake = mistake.or(draft.mistake);
        draft.check_agreement(own.as_deref());
        if named.is_some_and(|named| named != name) {
            draft.refuse("the intent carries another name");
        }
        add_type(&mut object, &target.info);
        if let Value::Object(metadata) = object.entry("metadata").or_insert_with(|| json!({})) {
            metadata.remove("managedFields");
            metadata.entry("name").or_insert_with(|| json!(name));
        }
        draft.repeatable = true;
        let body = Value::Object(object).to_string();
        draft.set_body("application/apply-patch+yaml", body.into());
        draft
    }

    /// The first mistake is the one that is told.
    pub(crate) fn refuse(&mut self, mistake: impl Into<String>) {
        self.mistake.get_or_insert_with(|| mistake.into());
    }

    fn check_segment(&mut self, what: &str, text: &str) {
        if text.is_empty() {
            self.refuse(format!("the {what} is empty"));
        } else if text == "." || text == ".." || text.contains(['/', '%']) {
            self.refuse(format!("`{text}` is no {what}: it would change the path"));
        }
    }

    fn check_agreement(&mut self, own: Option<&str>) {
        if let (Some(own), Some(namespace)) = (own, self.target.namespace.as_deref())
            && own != namespace
        {
            let text = format!("the object is of namespace \"{own}\", the request of another");
            self.refuse(text);
        }
    }

    fn object_body(&mut self, body: serde_json::Result<Vec<u8>>) {
        match body.map(|body| typed(body, &self.target.info)) {
            Ok(body) => self.set_body(JSON, body),
            Err(error) => self.refuse(format!("the object does not become JSON: {error}")),
        }
    }

    pub(crate) fn set_body(&mut self, content_type: &'static str, body: Bytes) {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = body;
    }

    /// Sets a query parameter; a later value replaces an earlier one.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<String>) {
        self.query.retain(|(old, _)| *old != key);
        self.query.push((key, value.into()));
    }

    pub(crate) fn set_status(&mut self) {
        if self.verb == Verb::Create {
            self.refuse("a status is not created; create the object, then write its status");
        }
        self.subresource = Some("status");
    }

    pub(crate) fn dry_run(&mut self) {
        self.set("dryRun", "All");
        self.repeatable = true;
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = Some(timeout);
    }

    /// The finished request.
    pub(crate) fn finish(self) -> Result<Prepared, Error> {
        let verb = word(self.verb);
        let what = match self.subresource {
            Some(subresource) => format!("{verb} {subresource} of {}", self.noun),
            None => format!("{verb} {}", self.noun),
        };
        if let Some(mistake) = self.mistake {
            return Err(Error::new(ErrorKind::Usage, format!("cannot {what}: {mistake}")));
        }
        let mut path = self.path;
        if let Some(subresource) = self.subresource {
            path.push('/');
            path.push_str(subresource);
        }
        let mut request = Prepared::new(self.verb, self.method, path, what);
        request.query = self.query.into_iter().map(|(key, value)| (key.into(), value)).collect();
        request.scope = Some(self.target.info.scope);
        request.headers = self.headers;
        request.body = self.body;
        request.repeatable = self.repeatable;
        request.timeout = self.timeout;
        Ok(request)
    }
}

fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => Method::GET,
        Verb::Create => Method::POST,
        Verb::Update => Method::PUT,
        Verb::Patch | Verb::Apply => Method::PATCH,
        Verb::Delete | Verb::DeleteCollection => Method::DELETE,
    }
}

/// The verb as error texts say it.
fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Update => "replace",
        Verb::DeleteCollection => "delete all",
        other => other.as_str(),
    }
}

fn noun(info: &ResourceInfo, namespace: Option<&str>, name: Option<&str>) -> String {
    let mut text = info.group_resource();
    if let Some(name) = name {
        text.push_str(&format!(" \"{name}\""));
    }
    if info.scope == Scope::Namespaced {
        match namespace {
            Some(namespace) => text.push_str(&format!(" in \"{namespace}\"")),
            None if name.is_none() => text.push_str(" in all namespaces"),
            None => {}
        }
    }
    text
}

fn namespace_of<'a>(target: &'a Target, own: Option<&'a str>) -> Option<&'a str> {
    let own = own.filter(|own| !own.is_empty() && target.info.scope == Scope::Namespaced);
    target.namespace.as_deref().or(own)
}

fn metadata_text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get("metadata")?.get(key)?.as_str().map(str::to_owned)
}

fn add_type(object: &mut Map<String, Value>, info: &ResourceInfo) {
    for (key, value) in [("apiVersion", info.api_version()), ("kind", info.kind.to_string())] {
        let slot = object.entry(key).or_insert(Value::Null);
        if slot.as_str().is_none_or(str::is_empty) {
            *slot = Value::String(value);
        }
    }
}

/// The body with `apiVersion` and `kind`, which most types write first themselves.
fn typed(body: Vec<u8>, info: &ResourceInfo) -> Bytes {
    if body.starts_with(br#"{"apiVersion":"#) {
        return body.into();
    }
    match serde_json::from_slice(&body) {
        Ok(Value::Object(mut object)) => {
            add_type(&mut object, info);
            Value::Object(object).to_string().into()
        }
        _ => body.into(),
    }
}
