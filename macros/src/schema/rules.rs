//! CEL rules, parsed and checked at compile time with the server's own functions and messages.
//!
//! Fields have the types that their spelling shows; any other type is `dyn`.

// DESIGN.md, 132: CEL rules of a derive are type-checked with the types that a macro sees

use std::sync::Arc;

use syn::LitStr;
use syn::Type as Spelling;
use windlass_cel::check::Environment;
use windlass_cel::syntax::Issues;
use windlass_cel::syntax::identifiers::{escape, unescape};
use windlass_cel::types::{FieldType, ObjectType, Type};

use super::class::{TypeClass, class, element, is_option};
use super::key::{CelRule, RulePath};
use super::model::SchemaField;
use crate::errors::Errors;
use crate::keys;

/// Reasons that a rule may give.
pub(super) const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The value that a rule is about, and the fields that the rule may name.
#[derive(Debug)]
pub(super) struct RuleSubject<'a> {
    ty: Type,
    /// Fields of the type; empty where they are not known.
    fields: &'a [SchemaField],
}

impl<'a> RuleSubject<'a> {
    /// Returns the subject of a rule on a struct: an object with the fields that are described, or
    /// `dyn` when not all fields are known.
    pub(super) fn of_struct(fields: &'a [SchemaField]) -> Self {
        // A flattened field brings fields known to its type only.
        if fields.is_empty() || fields.iter().any(|field| field.serde.flatten.is_some()) {
            return Self { ty: Type::Dyn, fields };
        }
        let described = fields.iter().filter(|field| field.is_read());
        let mut known: Vec<(Arc<str>, FieldType)> = described
            .filter_map(|field| {
                let ty = if field.is_replaced() { Type::Dyn } else { cel_type(&field.ty) };
                Some((escape(&field.json)?.into(), FieldType { ty, max_size: None }))
            })
            .collect();
        known.sort_by(|a, b| a.0.cmp(&b.0));
        let object = ObjectType { name: "Object".into(), fields: known };
        Self { ty: Type::Object(Arc::new(object)), fields }
    }

    /// Returns the subject of a rule on a field: a value of the field's type, without fields.
    pub(super) fn of_field(field: &SchemaField) -> Self {
        let ty = if field.is_replaced() { Type::Dyn } else { cel_type(&field.ty) };
        Self { ty, fields: &[] }
    }

    /// Checks the parts of a rule.
    pub(super) fn check(&self, rule: &CelRule, errors: &mut Errors) {
        let old = rule.optional_old_self;
        self.compile(&rule.rule, old, &Type::Bool, "a rule must be a bool", errors);
        if let Some(expression) = &rule.message_expression {
            self.compile(expression, old, &Type::String, "a message must be a string", errors);
        }
        let names_old = |text: &LitStr| text.value().contains("oldSelf");
        if old && !names_old(&rule.rule) {
            let message = "`optional_old_self` is for rules that name `oldSelf`: they are evaluated when an object is \
                           created, too";
            errors.at(rule.rule.span(), message);
        }
        if let Some(reason) = &rule.reason
            && !REASONS.contains(&reason.value().as_str())
        {
            errors.at(reason.span(), keys::unknown("reason", &reason.value(), REASONS));
        }
        if let Some(message) = &rule.message
            && (message.value().trim().is_empty() || message.value().contains('\n'))
        {
            errors.at(message.span(), "a message is one line of text");
        }
        match &rule.path {
            Some(RulePath::Json(path)) if !path.value().starts_with(['.', '[']) => {
                let message = "the path of a rule begins with a dot, from the value on: `path = \".host\"`; or name \
                               a field of this type: `path = host`";
                errors.at(path.span(), message);
            }
            Some(RulePath::Field(name))
                if !self.fields.iter().any(|field| name == field.rust().as_str()) =>
            {
                errors.at(name.span(), no_field(&name.to_string(), self.fields));
            }
            Some(RulePath::Field(name))
                if self.fields.iter().any(|it| name == it.rust().as_str() && !it.is_read()) =>
            {
                let message =
                    format!("`{name}` is skipped and no part of the schema: name a field that is");
                errors.at(name.span(), message);
            }
            _ => {}
        }
    }

    /// Checks an expression; with `is_old_optional`, `oldSelf` is an optional value.
    fn compile(
        &self,
        text: &LitStr,
        is_old_optional: bool,
        expected: &Type,
        meaning: &str,
        errors: &mut Errors,
    ) {
        let source = text.value();
        let old = self.ty.clone();
        let old = if is_old_optional { Type::optional(old) } else { old };
        let mut environment = Environment::kubernetes()
            .with_variable("self", self.ty.clone())
            .with_variable("oldSelf", old);
        if let Type::Object(object) = &self.ty {
            environment = environment.with_type(object.clone());
        }
        match environment.compile(&source) {
            Ok(checked) => {
                let found = checked.output_type();
                if found != expected && *found != Type::Dyn {
                    errors.at(text.span(), format_args!("{meaning}; this expression is `{found}`"));
                }
            }
            Err(issues) => errors.at(text.span(), self.explain(&issues)),
        }
    }

    /// The issues in the server's words, with the field that was meant.
    fn explain(&self, issues: &Issues) -> String {
        let read = self.fields.iter().filter(|field| field.is_read());
        let known: Vec<&str> = read.map(|field| field.json.as_str()).collect();
        let mut text = format!("the rule is not valid CEL:\n{issues}");
        for issue in issues.iter() {
            if let Some(rest) = issue.message.strip_prefix("undeclared reference to '") {
                let name = rest.split('\'').next().unwrap_or_default();
                text.push_str(&undeclared(name, &known));
                continue;
            }
            let Some(name) = issue.message.strip_prefix("undefined field '") else { continue };
            let name = name.trim_end_matches('\'');
            let name = unescape(name).unwrap_or_else(|| name.to_owned());
            let named = |field: &&SchemaField| field.rust() == name || field.json == name;
            let by_rust = self.fields.iter().find(named);
            if by_rust.is_some_and(|field| !field.is_read()) {
                text.push_str(&format!(
                    "\n`{name}` is skipped and no part of the schema, so no rule sees it"
                ));
                continue;
            }
            let meant = by_rust.map(|field| field.json.as_str()).or(keys::closest(&name, &known));
            match meant {
                Some(meant) => text.push_str(&format!("\ndid you mean `{meant}`?")),
                None => text.push_str(&format!("\nthe type has {}", list(&known))),
            }
        }
        text
    }
}

/// The remedy for a word that is neither a variable nor a function; empty where none is known.
fn undeclared(name: &str, fields: &[&str]) -> String {
    if fields.contains(&name) {
        return format!("\nfields start at `self`: `self.{name}`");
    }
    let meant = if matches!(name, "this" | "object" | "value") {
        Some("self")
    } else {
        keys::closest(name, &["self", "oldSelf"])
    };
    match meant {
        Some(meant) => format!("\ndid you mean `{meant}`?"),
        None => String::new(),
    }
}

/// "`a`, `b`"
fn list(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The answer to a name that is no field in Rust.
pub(super) fn no_field(name: &str, fields: &[SchemaField]) -> String {
    let names: Vec<String> = fields.iter().map(SchemaField::rust).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Some(field) = fields.iter().find(|field| field.json == name) {
        return format!("fields are named as in Rust here: `{}`", field.rust());
    }
    match keys::closest(name, &names) {
        Some(meant) => format!("there is no field `{name}`; did you mean `{meant}`?"),
        None if names.is_empty() => {
            format!("there is no field `{name}`: the type has no named fields")
        }
        None => format!("there is no field `{name}`; the fields are {}", list(&names)),
    }
}

/// The type of a field in CEL: that of an option of a scalar may be null.
fn cel_type(ty: &Spelling) -> Type {
    let found = type_below_options(ty);
    let is_scalar = matches!(found, Type::String | Type::Int | Type::Double | Type::Bool);
    if is_option(ty) && is_scalar { Type::Wrapper(Arc::new(found)) } else { found }
}

/// The type of a field in CEL, as if no option were around the type.
fn type_below_options(ty: &Spelling) -> Type {
    match class(ty) {
        TypeClass::Text => Type::String,
        TypeClass::Integer => Type::Int,
        TypeClass::Number => Type::Double,
        TypeClass::Bool => Type::Bool,
        TypeClass::List => Type::list(element(ty).map_or(Type::Dyn, cel_type)),
        TypeClass::Map => Type::map(Type::String, element(ty).map_or(Type::Dyn, cel_type)),
        TypeClass::Unknown => Type::Dyn,
    }
}
