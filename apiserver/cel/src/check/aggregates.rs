//! Lists, maps, struct literals and comprehensions.

use super::Reference;
use super::checker::Checker;
use crate::syntax::ast::{Comprehension, List, MapEntry, Struct, StructField};
use crate::syntax::{Expr, ExprId};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn check_list(&mut self, id: ExprId, list: &mut List) {
        let mut elements = None;
        for (index, element) in list.elements.iter_mut().enumerate() {
            self.check(element);
            let is_optional = list.optional.contains(&index);
            let ty = self.value_type(element, is_optional);
            elements = Some(self.join(elements, ty));
        }
        let elements = elements.unwrap_or_else(|| self.bindings.fresh());
        let ty = self.bindings.bounded(Type::list(elements));
        self.set_type(id, ty);
    }

    pub(super) fn check_map(&mut self, id: ExprId, entries: &mut [MapEntry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.type_of(entry.key.id);
            keys = Some(self.join(keys, key));
            self.check(&mut entry.value);
            let value = self.value_type(&entry.value, entry.is_optional);
            values = Some(self.join(values, value));
        }
        let keys = keys.unwrap_or_else(|| self.bindings.fresh());
        let values = values.unwrap_or_else(|| self.bindings.fresh());
        let ty = self.bindings.bounded(Type::map(keys, values));
        self.set_type(id, ty);
    }

    /// Type of an element; with `is_optional`, of the content of the optional that the element must
    /// be.
    fn value_type(&mut self, element: &Expr, is_optional: bool) -> Type {
        let ty = self.type_of(element.id);
        if !is_optional {
            return ty;
        }
        if let Some(content) = ty.optional_content() {
            return content.clone();
        }
        if !matches!(ty, Type::Dyn | Type::Any) {
            self.report_mismatch(element.id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    /// Type of elements of these two types: `dyn` if they do not agree.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if self.is_assignable(&previous, &current) => {
                previous.most_general(&current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn check_struct(&mut self, id: ExprId, literal: &mut Struct) {
        let Some((name, ty)) = self.resolve_ident(&literal.type_name) else {
            return self.report_undeclared(id, &literal.type_name);
        };
        literal.type_name.clone_from(&name);
        self.set_reference(id, Reference::Ident { name: name.as_str().into(), value: None });
        let (result, name) = self.struct_type(id, name, ty);
        self.set_type(id, result);
        for field in &mut literal.fields {
            self.check_struct_field(&name, field);
        }
    }

    /// Type of a struct literal, and the name by which the fields are looked up.
    fn struct_type(&mut self, id: ExprId, name: String, ident: Type) -> (Type, String) {
        let Type::Type(content) = ident else {
            if !matches!(ident, Type::Error) {
                self.report(id, format_args!("'{}' is not a type", declared_name(&ident)));
            }
            return (Type::Error, name);
        };
        let ty = content.map_or(Type::Type(None), |content| Type::clone(&content));
        if let Type::Object(object) = &ty {
            let name = object.name.to_string();
            return (ty, name);
        }
        match well_known_name(&ty) {
            // A value of this message has the type `dyn`, as a `Value` has, but has other fields.
            Some(_) if name == "google.protobuf.Any" => (ty, name),
            Some(name) => (ty, name.to_owned()),
            None => {
                self.report(id, format_args!("'{}' is not a message type", declared_name(&ty)));
                (Type::Error, name)
            }
        }
    }

    fn check_struct_field(&mut self, object: &str, field: &mut StructField) {
        self.check(&mut field.value);
        let found = self.environment.field(object, &field.name);
        let expected = self.field_or_report(field.id, found, object, &field.name);
        let actual = self.value_type(&field.value, field.is_optional);
        if !self.is_assignable(&expected, &actual) {
            let name = &field.name;
            let message = format!(
                "expected type of field '{name}' is '{expected}' but provided type is '{actual}'"
            );
            self.report(field.id, format_args!("{message}"));
        }
    }

    pub(super) fn check_comprehension(&mut self, id: ExprId, comprehension: &mut Comprehension) {
        self.check(&mut comprehension.range);
        self.check(&mut comprehension.init);
        let accumulator = self.type_of(comprehension.init.id);
        let (first, second) = self.range_types(comprehension);
        let scope = self.scope.len();
        self.scope.push((comprehension.accumulator.as_str().into(), accumulator.clone()));
        let loop_scope = self.scope.len();
        if let Some(name) =
            comprehension.second_variable.as_ref().filter(|name| **name != comprehension.variable)
        {
            self.scope.push((name.as_str().into(), second));
        }
        self.scope.push((comprehension.variable.as_str().into(), first));
        self.check(&mut comprehension.condition);
        self.expect_type(comprehension.condition.id, &Type::Bool);
        self.check(&mut comprehension.step);
        self.expect_type(comprehension.step.id, &accumulator);
        self.scope.truncate(loop_scope);
        self.check(&mut comprehension.result);
        self.scope.truncate(scope);
        let result = self.type_of(comprehension.result.id);
        let result = self.bindings.substitute(&result);
        self.set_type(id, result);
    }

    /// Types of the variables of a comprehension: with one variable, the first.
    fn range_types(&mut self, comprehension: &Comprehension) -> (Type, Type) {
        let range = self.type_of(comprehension.range.id);
        let range = self.bindings.substitute(&range);
        let has_two = comprehension.second_variable.is_some();
        match &range {
            Type::List(element) if has_two => (Type::Int, Type::clone(element)),
            Type::List(element) => (Type::clone(element), Type::Error),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.is_assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(comprehension.range.id, format_args!("{message}"));
                (Type::Error, Type::Error)
            }
        }
    }

    fn expect_type(&mut self, id: ExprId, expected: &Type) {
        let actual = self.type_of(id);
        if !self.is_assignable(expected, &actual) {
            self.report_mismatch(id, expected, &actual);
        }
    }
}

/// Name of a type without parameters: `list`, `wrapper(int)`.
fn declared_name(ty: &Type) -> String {
    match ty {
        Type::Wrapper(wrapped) => format!("wrapper({wrapped})"),
        other => other.name().to_owned(),
    }
}

/// Name of the message that a literal of a type of the language is written as.
fn well_known_name(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Duration => "google.protobuf.Duration",
        Type::Dyn => "google.protobuf.Value",
        Type::Null => "google.protobuf.NullValue",
        Type::List(element) if **element == Type::Dyn => "google.protobuf.ListValue",
        Type::Map(key, value) if **key == Type::String && **value == Type::Dyn => {
            "google.protobuf.Struct"
        }
        Type::Wrapper(wrapped) => match &**wrapped {
            Type::Bool => "google.protobuf.BoolValue",
            Type::Bytes => "google.protobuf.BytesValue",
            Type::Double => "google.protobuf.DoubleValue",
            Type::Int => "google.protobuf.Int64Value",
            Type::String => "google.protobuf.StringValue",
            Type::Uint => "google.protobuf.UInt64Value",
            _ => return None,
        },
        _ => return None,
    })
}
