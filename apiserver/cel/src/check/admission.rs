//! The variables of admission policies and match conditions, with their types.

use std::sync::Arc;

use super::Environment;
use crate::types::{FieldType, ObjectType, Type};

impl Environment {
    /// All functions of Kubernetes, and the variables of admission policies: `object` and
    /// `oldObject`, whose fields may be anything, `request` and `namespaceObject`.
    pub fn admission() -> Environment {
        let (request, namespace) = (request(), namespace());
        Environment::kubernetes()
            .with_type(namespace.clone())
            .with_type(request.clone())
            .with_variable("object", Type::Dyn)
            .with_variable("oldObject", Type::Dyn)
            .with_variable("namespaceObject", Type::Object(namespace))
            .with_variable("request", Type::Object(request))
    }

    /// The environment with `authorizer` and `authorizer.requestResource`.
    #[must_use]
    pub fn with_authorizer(self) -> Environment {
        let authorizer = Type::opaque("kubernetes.authorization.Authorizer");
        let resource = Type::opaque("kubernetes.authorization.ResourceCheck");
        self.with_variable("authorizer", authorizer)
            .with_variable("authorizer.requestResource", resource)
    }
}

fn object(name: &str, fields: Vec<(&str, Type)>) -> Arc<ObjectType> {
    let mut fields: Vec<(Arc<str>, FieldType)> = fields
        .into_iter()
        .map(|(name, ty)| (Arc::from(name), FieldType { ty, max_size: None }))
        .collect();
    fields.sort_by(|left, right| left.0.cmp(&right.0));
    Arc::new(ObjectType { name: name.into(), fields })
}

fn texts() -> Type {
    Type::list(Type::String)
}

fn request() -> Arc<ObjectType> {
    let kind = ["group", "version", "kind"].map(|name| (name, Type::String));
    let kind = Type::Object(object("kubernetes.GroupVersionKind", kind.to_vec()));
    let resource = ["group", "version", "resource"].map(|name| (name, Type::String));
    let resource = Type::Object(object("kubernetes.GroupVersionResource", resource.to_vec()));
    let user = vec![
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", texts()),
        ("extra", Type::map(Type::String, texts())),
    ];
    let fields = vec![
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::String),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", Type::Object(object("kubernetes.UserInfo", user))),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    object("kubernetes.AdmissionRequest", fields)
}

fn namespace() -> Arc<ObjectType> {
    let condition = vec![
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ];
    let condition = Type::Object(object("kubernetes.NamespaceCondition", condition));
    let status = vec![("conditions", Type::list(condition)), ("phase", Type::String)];
    let labels = Type::map(Type::String, Type::String);
    let metadata = vec![
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", labels.clone()),
        ("annotations", labels),
        // The server declares the name of Go's field, while the data has `uid`.
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", texts()),
    ];
    let spec = vec![("finalizers", texts())];
    let fields = vec![
        ("metadata", Type::Object(object("kubernetes.NamespaceMetadata", metadata))),
        ("spec", Type::Object(object("kubernetes.NamespaceSpec", spec))),
        ("status", Type::Object(object("kubernetes.NamespaceStatus", status))),
    ];
    object("kubernetes.Namespace", fields)
}
