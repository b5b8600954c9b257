//! The variables of policies and match conditions, with their types.

use std::sync::{Arc, LazyLock};

use crate::check::Environment;
use crate::eval::LITERALS;
use crate::types::{FieldType, ObjectType, Type};

/// Name of the type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// The variables that an expression may read beside `object`, `oldObject`, `request` and
/// `namespaceObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scope {
    /// `params`
    pub(super) has_params: bool,
    /// `authorizer` and `authorizer.requestResource`
    pub(super) has_authorizer: bool,
    /// The types and functions of mutations: `Object`, `JSONPatch`, `jsonpatch.escapeKey`
    pub(super) has_patches: bool,
}

/// Types of the variables of a policy that are known so far; a later variable replaces an earlier
/// variable of the same name.
#[derive(Debug, Clone, Default)]
pub(super) struct VariableTypes {
    fields: Vec<(Arc<str>, FieldType)>,
}

impl VariableTypes {
    pub(super) fn insert(&mut self, name: &str, ty: Type) {
        let field = FieldType { ty, max_size: None };
        match self.fields.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(index) => {
                if let Some(entry) = self.fields.get_mut(index) {
                    entry.1 = field;
                }
            }
            Err(index) => self.fields.insert(index, (name.into(), field)),
        }
    }
}

/// The environment of an expression; without `variables` there is no such name.
pub(super) fn environment(scope: Scope, variables: Option<&VariableTypes>) -> Environment {
    static BASE: LazyLock<Environment> = LazyLock::new(base);
    let mut environment = BASE.clone();
    if scope.has_patches {
        environment = environment.with_patches();
    }
    if scope.has_params {
        environment = environment.with_variable("params", Type::Dyn);
    }
    if scope.has_authorizer {
        let authorizer = Type::opaque("kubernetes.authorization.Authorizer");
        let resource = Type::opaque("kubernetes.authorization.ResourceCheck");
        environment = environment
            .with_variable("authorizer", authorizer)
            .with_variable("authorizer.requestResource", resource);
    }
    if let Some(types) = variables {
        let object = ObjectType { name: VARIABLES.into(), fields: types.fields.clone() };
        let object = Arc::new(object);
        let ty = Type::Object(object.clone());
        // Types of variables have no objects within them (`variable_type`).
        environment = environment.with_flat_type(object).with_variable("variables", ty);
    }
    environment
}

fn base() -> Environment {
    let (request, namespace) = (request(), namespace());
    Environment::kubernetes()
        .with_literal_validators(LITERALS)
        .with_type(namespace.clone())
        .with_type(request.clone())
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("namespaceObject", Type::Object(namespace))
        .with_variable("request", Type::Object(request))
}

/// The type that a variable has for the expressions which read it: scalars, lists and maps keep
/// theirs.
pub(super) fn variable_type(ty: &Type) -> Type {
    match ty {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(element) => Type::list(variable_type(element)),
        Type::Map(key, value) => Type::map(variable_type(key), variable_type(value)),
        _ => Type::Dyn,
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
