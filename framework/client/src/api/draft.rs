//! A [`Prepared`] under construction for a kind: no type parameters, the first mistake is kept
//! until the end.
//!
//! This module adds the parts that depend on the kind: path, wording of error texts, body, and
//! whether the request may be repeated. The checks of paths are those of
//! [`Request`](crate::client::Request), by [`Address`](crate::client::Address).

// DESIGN.md, 117: A request has four shapes

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Patch;
use super::patch::has_version;
use crate::client::{Client, PatchType, Prepared, Verb};
use windlass_core::resource::{ResourceInfo, Scope};
use windlass_core::wire::times;

/// The parts that all requests of an [`Api`](super::Api) share.
#[derive(Clone, Debug)]
pub(crate) struct ApiTarget {
    pub(crate) client: Client,
    pub(crate) info: ResourceInfo,
    /// `None` for cluster-scoped kinds.
    pub(crate) namespace: Option<String>,
    /// Whether answers should hold metadata only.
    pub(crate) metadata: bool,
}

impl ApiTarget {
    /// A target; without a kind all its requests are refused.
    pub(crate) fn new(client: Client, info: Option<ResourceInfo>, namespace: Option<&str>) -> Self {
        let info = info.unwrap_or(ResourceInfo {
            group: "".into(),
            version: "".into(),
            kind: "".into(),
            plural: "".into(),
            scope: Scope::Namespaced,
        });
        // Objects of a cluster-scoped kind have no namespace, whatever the client's namespace is.
        let namespace = namespace.filter(|_| info.scope == Scope::Namespaced).map(str::to_owned);
        Self { client, info, namespace, metadata: false }
    }

    /// The same kind and namespace, for metadata only.
    pub(crate) fn metadata(&self) -> Self {
        Self { metadata: true, ..self.clone() }
    }

    /// Name of an object in error texts: `websites.example.dev "home" in "shop"`.
    pub(crate) fn noun(&self, name: &str) -> String {
        noun(&self.info, self.namespace.as_deref(), Some(name))
    }
}

/// A request under construction.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) target: Arc<ApiTarget>,
    /// The request so far: verb, method, query, body, timeout, and whether a second execution does
    /// no harm. Path, headers and description follow when the draft is finished.
    pub(super) prepared: Prepared,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// Name of the object in error texts: `websites.example.dev "home" in "shop"`.
    pub(super) noun: String,
    /// Format of the patch in the body, for a patch or an apply.
    pub(super) form: Option<PatchType>,
    /// Whether the answer should hold metadata only.
    pub(super) metadata: bool,
    /// The first mistake of the caller, reported instead of sending.
    pub(super) mistake: Option<String>,
    /// Called with the answer of an executed request.
    pub(super) on_response: Option<OnResponse>,
}

/// A function that is called with the answer of an executed request.
pub(super) type OnResponse = Arc<dyn Fn(&Bytes) + Send + Sync>;

/// Shows only the length of the body, which may be a Secret.
impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("verb", &self.prepared.verb)
            .field("object", &self.noun)
            .field("subresource", &self.subresource)
            .field("query", &self.prepared.query)
            .field("form", &self.form)
            .field("body", &format_args!("{} bytes", self.prepared.body.len()))
            .field("mistake", &self.mistake)
            .finish_non_exhaustive()
    }
}

/// Encodes `object` as JSON bytes.
pub(crate) fn json<T: Serialize>(object: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(object).map(times::encoded)
}

impl Draft {
    /// A request with the first checks: the kind is known, the namespace is not empty.
    fn new(
        target: &Arc<ApiTarget>,
        verb: Verb,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Self {
        let info = &target.info;
        let mut draft = Self {
            target: Arc::clone(target),
            // Reads are repeatable from here on; a write becomes so by a precondition.
            prepared: Prepared::new(verb, method(verb), String::new(), String::new()),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: None,
            noun: noun(info, namespace, name),
            form: None,
            metadata: target.metadata,
            mistake: None,
            on_response: None,
        };
        draft.prepared.timeout = target.client.asked_timeout();
        draft.prepared.scope = Some(info.scope);
        if info.plural.is_empty() {
            draft.refuse("the kind is not known; use Client::dynamic with its ResourceInfo");
        }
        if namespace == Some("") {
            draft.refuse("the namespace is empty; use Client::all for all of them");
        }
        draft
    }

    /// A request about the whole collection.
    pub(crate) fn collection(target: &Arc<ApiTarget>, verb: Verb) -> Self {
        let mut draft = Self::new(target, verb, target.namespace.as_deref(), None);
        // API servers delete collections in a single namespace only.
        if verb == Verb::DeleteCollection && draft.lacks_namespace(target.namespace.as_deref()) {
            draft.refuse("a collection is deleted in one namespace; use Client::namespace");
        }
        draft
    }

    /// A request about a single object.
    pub(crate) fn named(target: &Arc<ApiTarget>, verb: Verb, name: &str) -> Self {
        Self::placed(target, verb, target.namespace.as_deref(), name)
    }

    /// A request about a single object in this namespace.
    fn placed(target: &Arc<ApiTarget>, verb: Verb, namespace: Option<&str>, name: &str) -> Self {
        let mut draft = Self::new(target, verb, namespace, Some(name));
        if name.is_empty() {
            draft.refuse("the name may not be empty; for the whole collection use Api::list");
        }
        if draft.lacks_namespace(namespace) {
            draft.refuse("an object of a namespaced kind needs a namespace; use Client::namespace");
        }
        draft
    }

    /// Whether the kind is namespaced and the namespace is missing.
    fn lacks_namespace(&self, namespace: Option<&str>) -> bool {
        self.target.info.scope == Scope::Namespaced && namespace.is_none()
    }

    /// A creation of the object with this metadata, by name or generated name.
    pub(crate) fn create(
        target: &Arc<ApiTarget>,
        metadata: &ObjectMeta,
        body: serde_json::Result<Vec<u8>>,
    ) -> Self {
        let namespace = namespace_of(target, metadata.namespace.as_deref());
        // No name in the path of a creation: the body has the name.
        let mut draft = Self::new(target, Verb::Create, namespace, None);
        draft.needs_content();
        let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
        match (text(&metadata.name), text(&metadata.generate_name)) {
            (Some(name), _) => {
                draft.noun = noun(&target.info, namespace, Some(&name));
            }
            // The name is not known yet: the prefix stands for the name in error texts.
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

    /// A replacement of the object with this metadata; repeatable when the metadata name a version.
    pub(crate) fn replace(
        target: &Arc<ApiTarget>,
        metadata: &ObjectMeta,
        body: serde_json::Result<Vec<u8>>,
    ) -> Self {
        let namespace = namespace_of(target, metadata.namespace.as_deref());
        let name = metadata.name.as_deref().unwrap_or_default();
        let mut draft = Self::placed(target, Verb::Update, namespace, name);
        draft.needs_content();
        draft.check_agreement(metadata.namespace.as_deref());
        // With a version, a second execution is refused as a conflict.
        draft.prepared.repeatable =
            metadata.resource_version.as_ref().is_some_and(|rv| !rv.is_empty());
        draft.object_body(body);
        draft
    }

    /// A patch; repeatable when the patch depends on a version.
    pub(crate) fn patch(target: &Arc<ApiTarget>, name: &str, patch: Patch) -> Self {
        // An apply needs type and name in the body.
        if let Patch::Apply(intent) = patch {
            return Self::apply(target, name, Ok(intent));
        }
        let mut draft = Self::named(target, Verb::Patch, name);
        draft.patch_body(&patch);
        draft
    }

    /// A request about a subresource of a single object.
    pub(crate) fn part(target: &Arc<ApiTarget>, verb: Verb, name: &str, subresource: &str) -> Self {
        let mut draft = Self::named(target, verb, name);
        draft.metadata = false;
        if subresource.is_empty() {
            draft.refuse("the subresource is empty");
        }
        draft.subresource = Some(subresource.to_owned());
        draft
    }

    /// A server-side apply of `intent`, completed with type and name.
    pub(crate) fn apply(
        target: &Arc<ApiTarget>,
        name: &str,
        intent: serde_json::Result<Value>,
    ) -> Self {
        let (mut object, mistake) = match intent {
            Ok(Value::Object(object)) => (object, None),
            Ok(_) => (Map::new(), Some("the intent is not an object".to_owned())),
            Err(error) => (Map::new(), Some(format!("the intent is not JSON: {error}"))),
        };
        let own = metadata_text(&object, "namespace");
        let named = metadata_text(&object, "name");
        let namespace = namespace_of(target, own.as_deref()).map(str::to_owned);
        let mut draft = Self::placed(target, Verb::Apply, namespace.as_deref(), name);
        // A mistake in the intent is reported first.
        draft.mistake = mistake.or(draft.mistake);
        draft.check_agreement(own.as_deref());
        if named.is_some_and(|named| named != name) {
            draft.refuse("the intent carries another name");
        }
        add_type(&mut object, &target.info);
        if let Value::Object(metadata) = object.entry("metadata").or_insert_with(|| json!({})) {
            // API servers refuse an apply that contains them.
            metadata.remove("managedFields");
            metadata.entry("name").or_insert_with(|| json!(name));
        }
        // A second execution sets the same fields again.
        draft.prepared.repeatable = true;
        draft.form = Some(PatchType::Apply);
        draft.prepared.body = times::encoded(Value::Object(object).to_string().into_bytes()).into();
        draft
    }

    /// Refuses a write of metadata alone: such a write would remove everything else from the
    /// object.
    fn needs_content(&mut self) {
        if self.metadata {
            self.refuse("only metadata is at hand; patch or apply it");
        }
    }

    /// Notes a mistake; the first mistake is reported.
    pub(crate) fn refuse(&mut self, mistake: impl Into<String>) {
        self.mistake.get_or_insert_with(|| mistake.into());
    }

    /// Refuses an object whose namespace differs from the request's.
    fn check_agreement(&mut self, own: Option<&str>) {
        if let (Some(own), Some(namespace)) = (own, self.target.namespace.as_deref())
            && own != namespace
        {
            let text = format!("the object is of namespace \"{own}\", the request of another");
            self.refuse(text);
        }
    }

    /// Sets an encoded object as the body, completed with its type.
    fn object_body(&mut self, body: serde_json::Result<Vec<u8>>) {
        match body.map(|body| typed(body, &self.target.info)) {
            Ok(body) => self.prepared.body = body,
            Err(error) => self.refuse(format!("the object cannot be serialized as JSON: {error}")),
        }
    }

    /// Sets the body unchanged.
    pub(crate) fn set_json(&mut self, body: &Value) {
        self.prepared.body = body.to_string().into();
    }

    /// Sets any value as the body; repeatable when the value names the version to replace.
    pub(crate) fn any_body(&mut self, body: &impl Serialize) {
        match serde_json::to_value(body) {
            Ok(body) => {
                self.prepared.repeatable |=
                    self.prepared.verb == Verb::Update && has_version(&body);
                self.prepared.body = times::encoded(body.to_string().into_bytes()).into();
            }
            Err(error) => self.refuse(format!("the body cannot be serialized as JSON: {error}")),
        }
    }

    /// Sets a patch as the body, with its format.
    pub(crate) fn patch_body(&mut self, patch: &Patch) {
        self.prepared.repeatable |= patch.is_repeatable();
        self.form = Some(patch.form());
        self.prepared.body = patch.body().to_string().into();
    }

    /// Sets a query parameter; a later value replaces an earlier value.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<String>) {
        self.unset(key);
        self.prepared.push_parameter(key, value);
    }

    /// Removes a query parameter.
    pub(crate) fn unset(&mut self, key: &'static str) {
        self.prepared.query.retain(|(old, _)| old != key);
    }

    /// Whether a query parameter is set.
    pub(crate) fn is_set(&self, key: &'static str) -> bool {
        self.prepared.parameter(key).is_some()
    }

    /// The same list from `token` on. Later pages have the version of the first; the server refuses
    /// requests that name both.
    pub(crate) fn next_page(&self, token: &str) -> Self {
        let mut next = self.clone();
        next.unset("resourceVersion");
        next.unset("resourceVersionMatch");
        next.set("continue", token);
        next
    }

    /// Turns the request into a request about the status.
    pub(crate) fn set_status(&mut self) {
        if self.subresource.as_deref().is_some_and(|other| other != "status") {
            self.refuse("a subresource has no status of its own");
        } else if self.prepared.verb == Verb::Create {
            self.refuse("a status is not created; create the object, then write its status");
        }
        self.subresource = Some("status".to_owned());
    }

    /// Marks the request as harmless when executed twice.
    pub(crate) fn repeatable(&mut self) {
        self.prepared.repeatable = true;
    }

    /// Asks for metadata only.
    pub(crate) fn only_metadata(mut self) -> Self {
        self.metadata = true;
        self
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Asks the server to store nothing.
    pub(crate) fn dry_run(&mut self) {
        // Nothing is stored, so that the request may be repeated.
        self.set("dryRun", "All");
        self.prepared.repeatable = true;
    }

    /// Sets the total time of the call with all retries; zero selects the client's default again.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.prepared.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }

    pub(crate) fn verb(&self) -> Verb {
        self.prepared.verb
    }
}

/// HTTP method of a verb.
fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => Method::GET,
        Verb::Create => Method::POST,
        Verb::Update => Method::PUT,
        Verb::Patch | Verb::Apply => Method::PATCH,
        Verb::Delete | Verb::DeleteCollection => Method::DELETE,
    }
}

/// Name of an object, or of a collection, in error texts.
fn noun(info: &ResourceInfo, namespace: Option<&str>, name: Option<&str>) -> String {
    let mut text = match info.plural.is_empty() {
        true => "objects of an unknown kind".to_owned(),
        false => info.group_resource(),
    };
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

/// The namespace of the request: the target's, otherwise the object's own.
fn namespace_of<'a>(target: &'a ApiTarget, own: Option<&'a str>) -> Option<&'a str> {
    let own = own.filter(|own| !own.is_empty() && target.info.scope == Scope::Namespaced);
    target.namespace.as_deref().or(own)
}

/// A text in the metadata of a JSON object.
fn metadata_text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get("metadata")?.get(key)?.as_str().map(str::to_owned)
}

/// Fills in missing `apiVersion` and `kind`.
fn add_type(object: &mut Map<String, Value>, info: &ResourceInfo) {
    for (key, value) in [("apiVersion", info.api_version()), ("kind", info.kind.to_string())] {
        let slot = object.entry(key).or_insert(Value::Null);
        if slot.as_str().is_none_or(str::is_empty) {
            *slot = Value::String(value);
        }
    }
}

/// The body with `apiVersion` and `kind`, which most types serialize first themselves.
fn typed(body: Vec<u8>, info: &ResourceInfo) -> Bytes {
    // Spares most bodies a second pass through JSON.
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
