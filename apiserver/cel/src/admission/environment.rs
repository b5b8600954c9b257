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
pub(super) struct AvailableVariables {
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
pub(super) fn environment(
    scope: AvailableVariables,
    variables: Option<&VariableTypes>,
) -> Environment {
    static BASE: LazyLock<Environment> =
        LazyLock::new(|| Environment::admission().with_literal_validators(LITERALS));
    let mut environment = BASE.clone();
    if scope.has_patches {
        environment = environment.with_patches();
    }
    if scope.has_params {
        environment = environment.with_variable("params", Type::Dyn);
    }
    if scope.has_authorizer {
        environment = environment.with_authorizer();
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
