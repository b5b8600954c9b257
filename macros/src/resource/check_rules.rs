//! The rules of a kind, from the refusals of API servers, with the remedy.

use std::sync::Arc;

use windlass_cel::check::Environment;
use windlass_cel::syntax::Issues;
use windlass_cel::syntax::identifiers::escape;
use windlass_cel::types::{FieldType, ObjectType, Type};

use super::model::ResourceModel;
use super::place::RuleAttr;
use crate::errors::Errors;
use crate::keys::{WithSpan, unknown};

/// Reasons of rules that API servers accept.
const REASONS: &[&str] =
    &["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];
/// Fields of the metadata that rules see.
const METADATA: [&str; 2] = ["generateName", "name"];

/// Checks a rule without the path.
pub(super) fn check(model: &ResourceModel, rule: &RuleAttr, errors: &mut Errors) {
    if rule.rule.value.trim().is_empty() {
        errors.at(
            rule.rule.span,
            "a rule is a text of CEL, such as `self.spec.min <= self.spec.max`",
        );
        return;
    }
    let old = rule.optional_old_self.is_some();
    compile(model, &rule.rule, old, &Type::Bool, errors);
    if let Some(expression) = &rule.message_expression {
        compile(model, expression, old, &Type::String, errors);
    }
    let has_message = rule.message.is_some() || rule.message_expression.is_some();
    if rule.rule.value.trim().contains('\n') && !has_message {
        errors.at(rule.rule.span, "a rule of several lines needs a `message = \"…\"`");
    }
    if let Some(message) = &rule.message
        && (message.value.trim().is_empty() || message.value.contains('\n'))
    {
        errors.at(message.span, "a message is one line, such as `min is at most max`");
    }
    if let Some(reason) = rule.reason.as_ref().filter(|reason| !REASONS.contains(&&*reason.value)) {
        errors.at(reason.span, unknown("reason", &reason.value, REASONS));
    }
}

/// Checks an expression; with `is_old_optional`, `oldSelf` is an optional value.
fn compile(
    model: &ResourceModel,
    text: &WithSpan<String>,
    is_old_optional: bool,
    expected: &Type,
    errors: &mut Errors,
) {
    let metadata = object("ObjectMeta", METADATA.map(|name| (name.to_owned(), Type::String)));
    let root = root(model, Type::Object(metadata.clone()));
    let own = Type::Object(root.clone());
    let old = if is_old_optional { Type::optional(own.clone()) } else { own.clone() };
    let environment = Environment::kubernetes()
        .with_variable("self", own)
        .with_variable("oldSelf", old)
        .with_type(metadata)
        .with_type(root.clone());
    match environment.compile(&text.value) {
        Ok(checked) => {
            let found = checked.output_type();
            if found != expected && *found != Type::Dyn {
                let meaning = if *expected == Type::Bool {
                    "a rule must be a bool"
                } else {
                    "a message must be a string"
                };
                errors.at(text.span, format_args!("{meaning}; this expression is `{found}`"));
            }
        }
        Err(issues) => errors.at(text.span, explain(&issues, &text.value, &root)),
    }
}

/// The type of a whole object. The types of the fields may be anything: a macro does not see them.
fn root(model: &ResourceModel, metadata: Type) -> Arc<ObjectType> {
    let written = [("apiVersion", Type::String), ("kind", Type::String), ("metadata", metadata)];
    let fields = model.fields.iter().map(|field| (field.json.value.clone(), Type::Dyn));
    let written = written.into_iter().map(|(name, ty)| (name.to_owned(), ty));
    object("Object", written.chain(fields))
}

fn object(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Arc<ObjectType> {
    let mut fields: Vec<(Arc<str>, FieldType)> = fields
        .into_iter()
        .filter_map(|(name, ty)| Some((escape(&name)?.into(), FieldType { ty, max_size: None })))
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Arc::new(ObjectType { name: name.into(), fields })
}

/// The issues in the server's words, with the remedy.
fn explain(issues: &Issues, source: &str, root: &ObjectType) -> String {
    let mut text = format!("the rule is not valid CEL:\n{issues}");
    for issue in issues.iter() {
        let Some(name) = issue.message.strip_prefix("undefined field '") else { continue };
        let name = name.trim_end_matches('\'');
        if source.contains(&format!("metadata.{name}")) {
            text.push_str(
                "\nof the metadata, rules see `name` and `generateName` only: copy what a rule is about into the spec, \
                 or check it by an admission policy",
            );
            continue;
        }
        let known: Vec<&str> = root.fields.iter().map(|(name, _)| &**name).collect();
        text.push('\n');
        text.push_str(&unknown("field", name, &known));
    }
    text
}
