//! Environment of a check: functions, variables, types and the container of names.

use std::collections::HashMap;
use std::sync::Arc;

use super::declarations::{self, Function, Functions};
use super::validate::LiteralValidator;
use super::{Checked, checker, validate, well_known};
use crate::syntax::{Ast, Issues, ParserOptions, Source, parse};
use crate::types::{FieldType, ObjectType, Type};

/// Variables, types and functions that an expression may use. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Environment {
    functions: &'static Functions,
    variables: Arc<HashMap<Arc<str>, Type>>,
    types: Arc<HashMap<Arc<str>, Type>>,
    container: Arc<str>,
    literal_validators: &'static [LiteralValidator],
    is_kubernetes: bool,
    has_patches: bool,
    has_bindings: bool,
}

/// Result of a look-up of an object's field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldLookup {
    /// Type of the field.
    Found(Type),
    /// The object has no such field.
    Undefined,
    /// No object type has that name.
    UnknownObject,
}

impl Environment {
    /// All functions and checks of Kubernetes 1.36, no variable.
    pub fn kubernetes() -> Environment {
        Environment {
            is_kubernetes: true,
            ..Environment::with_functions(declarations::kubernetes())
        }
    }

    /// The standard library of the language, without extensions; lists and maps may mix types.
    pub fn standard() -> Environment {
        Environment::with_functions(declarations::standard())
    }

    fn with_functions(functions: &'static Functions) -> Environment {
        Environment {
            functions,
            variables: Arc::default(),
            types: Arc::default(),
            container: "".into(),
            literal_validators: &[],
            is_kubernetes: false,
            has_patches: false,
            has_bindings: false,
        }
    }

    /// The environment with the types and functions of mutating policies: `Object` and the types of
    /// the object's fields, whose fields are of any type, and `JSONPatch`.
    #[must_use]
    pub fn with_patches(mut self) -> Environment {
        self.has_patches = true;
        self
    }

    /// The environment with the macro `cel.bind(name, value, expression)`.
    #[must_use]
    pub fn with_bindings(mut self) -> Environment {
        self.has_bindings = true;
        self
    }

    /// The environment with a variable more; the name may be qualified (`a.b`).
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<Arc<str>>, ty: Type) -> Environment {
        Arc::make_mut(&mut self.variables).insert(name.into(), ty);
        self
    }

    /// The environment with an object type whose fields hold no objects: without the paths of the
    /// fields, whose number and length grow with the depth of their types.
    #[cfg(feature = "eval")]
    #[must_use]
    pub(crate) fn with_flat_type(mut self, object: Arc<ObjectType>) -> Environment {
        Arc::make_mut(&mut self.types).insert(object.name.clone(), Type::Object(object));
        self
    }

    /// The environment with an object type that expressions can name, and the types of the fields
    /// under their paths (`Object.spec`).
    #[must_use]
    pub fn with_type(mut self, object: Arc<ObjectType>) -> Environment {
        let types = Arc::make_mut(&mut self.types);
        let mut rest = vec![(object.name.clone(), Type::Object(object))];
        while let Some((path, ty)) = rest.pop() {
            match &ty {
                Type::Object(object) => {
                    if types.insert(object.name.clone(), ty.clone()).is_some() {
                        continue;
                    }
                    let fields = object.fields.iter();
                    rest.extend(
                        fields.map(|(name, field)| {
                            (format!("{path}.{name}").into(), field.ty.clone())
                        }),
                    );
                }
                Type::List(element) => {
                    rest.push((format!("{path}.@idx").into(), Type::clone(element)));
                    types.insert(path, ty);
                }
                Type::Map(_, value) => {
                    rest.push((format!("{path}.@elem").into(), Type::clone(value)));
                    types.insert(path, ty);
                }
                _ => {}
            }
        }
        self
    }

    /// The environment with a container: names are looked up within the container and its parents
    /// first.
    #[must_use]
    pub fn with_container(mut self, name: impl Into<Arc<str>>) -> Environment {
        self.container = name.into();
        self
    }

    /// The environment with checks of constant arguments, which run if the types agree.
    #[must_use]
    pub fn with_literal_validators(
        mut self,
        validators: &'static [LiteralValidator],
    ) -> Environment {
        self.literal_validators = validators;
        self
    }

    /// Parses an expression with the syntax of Kubernetes and finds its types.
    ///
    /// # Errors
    ///
    /// The issues of the syntax or, without any, those of the types, in the words of cel-go.
    pub fn compile(&self, text: &str) -> Result<Checked, Issues> {
        let options = ParserOptions { bindings: self.has_bindings, ..ParserOptions::default() };
        self.check(parse(Source::new(text), &options)?)
    }

    /// Finds the types of a parsed expression.
    ///
    /// # Errors
    ///
    /// The issues in the words of cel-go, if the types do not agree.
    pub fn check(&self, ast: Ast) -> Result<Checked, Issues> {
        let checked = checker::check(self, ast)?;
        let mut issues = Issues::new(checked.ast.source.clone());
        if self.is_kubernetes {
            validate::homogeneous_literals(&checked, &mut issues);
        }
        validate::constant_arguments(&checked, self.literal_validators, &mut issues);
        if self.is_kubernetes {
            validate::format_strings(&checked, &mut issues);
        }
        issues.into_result(checked)
    }

    pub(super) fn container(&self) -> &str {
        &self.container
    }

    /// The names that `name` may stand for, most qualified first; a leading dot makes a name
    /// absolute.
    pub(super) fn candidates(&self, name: &str) -> impl Iterator<Item = String> {
        let (absolute, mut container) = match name.strip_prefix('.') {
            Some(absolute) => (absolute, None),
            None => (name, Some(&*self.container).filter(|container| !container.is_empty())),
        };
        let mut is_done = false;
        std::iter::from_fn(move || match container {
            Some(prefix) => {
                container = prefix.rsplit_once('.').map(|(parent, _)| parent);
                Some(format!("{prefix}.{absolute}"))
            }
            None if is_done => None,
            None => {
                is_done = true;
                Some(absolute.to_owned())
            }
        })
    }

    pub(super) fn function(&self, name: &str) -> Option<&'static Function> {
        self.candidates(name)
            .filter(|candidate| self.has_patches || candidate != "jsonpatch.escapeKey")
            .find_map(|candidate| self.functions.get(candidate.as_str()))
    }

    /// Type of a variable, or the type of the type with that name.
    pub(super) fn ident(&self, name: &str) -> Option<Type> {
        let as_type = |ty: Type| Type::Type(Some(Arc::new(ty)));
        if let Some(ty) = self.variables.get(name) {
            return Some(ty.clone());
        }
        if well_known::constant(name).is_some() {
            return Some(Type::Int);
        }
        let library_type = || match name {
            "optional_type" | "net.IP" | "net.CIDR" if self.is_kubernetes => {
                Some(Type::opaque(name))
            }
            _ => None,
        };
        well_known::named(name).or_else(|| self.object(name)).or_else(library_type).map(as_type)
    }

    /// Type of an object's field.
    pub(super) fn field(&self, object: &str, field: &str) -> FieldLookup {
        match self.object(object) {
            Some(Type::Object(object)) => self.field_of(&object, field),
            Some(_) => FieldLookup::Undefined,
            None => well_known::field(object, field, self.is_kubernetes),
        }
    }

    /// Type of a field of an object type, which need not be registered in the environment.
    pub(super) fn field_of(&self, object: &ObjectType, name: &str) -> FieldLookup {
        if self.has_patches && is_open(&object.name) {
            return FieldLookup::Found(Type::Dyn);
        }
        let find = |name: &str| {
            let index = object.fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok()?;
            object.fields.get(index).map(|(_, field)| field.ty.clone())
        };
        // Properties with the name of a keyword are declared as `__keyword__`.
        let escaped = || RESERVED.contains(&name).then(|| find(&format!("__{name}__"))).flatten();
        find(name).or_else(escaped).map_or(FieldLookup::Undefined, FieldLookup::Found)
    }

    /// An object type, or another type that a struct literal may name.
    fn object(&self, name: &str) -> Option<Type> {
        if let Some(ty) = self.types.get(name) {
            return Some(ty.clone());
        }
        match name {
            "duration" if self.is_kubernetes => Some(Type::Duration),
            "timestamp" if self.is_kubernetes => Some(Type::Timestamp),
            _ if self.has_patches && is_open(name) => Some(literal(name, &[])),
            "JSONPatch" if self.has_patches => {
                let fields = [
                    ("from", Type::String),
                    ("op", Type::String),
                    ("path", Type::String),
                    ("value", Type::Dyn),
                ];
                Some(literal(name, &fields))
            }
            _ => None,
        }
    }
}

/// Whether the fields of a type are not known: that of an object that a mutating policy makes, or
/// of a part of such an object.
fn is_open(name: &str) -> bool {
    name.strip_prefix("Object").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A type of literals with these fields, which are sorted.
fn literal(name: &str, fields: &[(&str, Type)]) -> Type {
    let field = |(name, ty): &(&str, Type)| {
        (Arc::from(*name), FieldType { ty: ty.clone(), max_size: None })
    };
    let fields = fields.iter().map(field).collect();
    Type::Object(Arc::new(ObjectType { name: name.into(), fields }))
}

/// Words that cannot be names of fields in an expression unless they are escaped.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
