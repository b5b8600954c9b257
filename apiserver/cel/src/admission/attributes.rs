//! The input of a policy: the request with its objects.

use serde_json::{Map, Value as Json, json};

use crate::eval::Value;

/// Members of a request that count as missing if they are empty.
const OPTIONAL: [&str; 4] = ["name", "namespace", "subResource", "requestSubResource"];

/// Members of a namespace's metadata that validations see.
const METADATA: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// The request that is judged, with its objects. Parts that are not set are null for expressions.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    pub(super) request: &'a Json,
    pub(super) object: Option<&'a Json>,
    pub(super) old_object: Option<&'a Json>,
    pub(super) params: Option<&'a Json>,
    pub(super) namespace: Option<&'a Json>,
    pub(super) authorizer: Option<(&'a Value<'static>, &'a Value<'static>)>,
}

impl<'a> Attributes<'a> {
    /// A request, in the form of an `AdmissionReview`: `kind`, `resource`, `name`, `namespace`,
    /// `operation`, `userInfo`, `dryRun`, `options` and others. The objects in the review are not
    /// read.
    pub fn new(request: &'a Json) -> Attributes<'a> {
        Attributes {
            request,
            object: None,
            old_object: None,
            params: None,
            namespace: None,
            authorizer: None,
        }
    }

    /// The same with `object`: the new object, complete as the server stores it.
    #[must_use]
    pub fn object(self, object: &'a Json) -> Attributes<'a> {
        Attributes { object: Some(object), ..self }
    }

    /// The same with `oldObject`: the object before an update or a deletion.
    #[must_use]
    pub fn old_object(self, object: &'a Json) -> Attributes<'a> {
        Attributes { old_object: Some(object), ..self }
    }

    /// The same with `params`: the object that a binding names.
    #[must_use]
    pub fn params(self, params: &'a Json) -> Attributes<'a> {
        Attributes { params: Some(params), ..self }
    }

    /// The same with `namespaceObject`: the namespace of a namespaced object.
    #[must_use]
    pub fn namespace(self, namespace: &'a Json) -> Attributes<'a> {
        Attributes { namespace: Some(namespace), ..self }
    }

    /// The same with `authorizer` and `authorizer.requestResource`; without them an expression that
    /// reads either has an error.
    #[must_use]
    pub fn authorizer(
        self,
        authorizer: &'a Value<'static>,
        request_resource: &'a Value<'static>,
    ) -> Attributes<'a> {
        Attributes { authorizer: Some((authorizer, request_resource)), ..self }
    }
}

/// The parts of a request that are not read in place, because expressions see them in another form.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) request: Json,
    /// The namespace with the members that validations see.
    pub(super) namespace: Json,
    /// The namespace as audit annotations see it.
    pub(super) whole_namespace: Json,
}

impl Prepared {
    pub(super) fn new(attributes: &Attributes<'_>) -> Prepared {
        Prepared {
            request: request(attributes.request),
            namespace: attributes.namespace.map_or(Json::Null, namespace),
            whole_namespace: attributes.namespace.map_or(Json::Null, whole_namespace),
        }
    }
}

/// The request in the server's form: without the objects, and without empty members that are
/// optional.
fn request(given: &Json) -> Json {
    // The objects are bound from elsewhere: they are not copied, of any size and depth.
    let members = given.as_object().into_iter().flatten();
    let mut request: Map<String, Json> = members
        .filter(|(name, _)| !matches!(name.as_str(), "object" | "oldObject"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for name in OPTIONAL {
        remove_empty(&mut request, name);
    }
    for name in ["object", "oldObject"] {
        request.insert(name.to_owned(), Json::Null);
    }
    request.insert("uid".to_owned(), json!(""));
    for (name, copied) in [("requestKind", "kind"), ("requestResource", "resource")] {
        if let Some(value) = request.get(copied).cloned() {
            request.entry(name).or_insert(value);
        }
    }
    request.entry("dryRun").or_insert(json!(false));
    request.entry("options").or_insert(Json::Null);
    if let Some(user) = request.entry("userInfo").or_insert_with(|| json!({})).as_object_mut() {
        for name in ["username", "uid", "groups", "extra"] {
            remove_empty(user, name);
        }
    }
    Json::Object(request)
}

fn remove_empty(map: &mut Map<String, Json>, name: &str) {
    let is_empty = match map.get(name) {
        Some(Json::String(text)) => text.is_empty(),
        Some(Json::Array(items)) => items.is_empty(),
        Some(Json::Object(entries)) => entries.is_empty(),
        Some(Json::Null) => true,
        _ => false,
    };
    if is_empty {
        map.remove(name);
    }
}

fn namespace(given: &Json) -> Json {
    let metadata = given.get("metadata").and_then(Json::as_object);
    let metadata: Map<String, Json> = metadata
        .into_iter()
        .flatten()
        .filter(|(name, _)| METADATA.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let part = |name: &str| given.get(name).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}

fn whole_namespace(given: &Json) -> Json {
    let mut whole = given.as_object().cloned().unwrap_or_default();
    // The server's own copy of an object has no type.
    for name in ["apiVersion", "kind"] {
        whole.remove(name);
    }
    Json::Object(whole)
}
