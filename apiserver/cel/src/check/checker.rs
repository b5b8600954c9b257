//! The type checker: tables, scopes, identifiers and selections.

use std::fmt;
use std::sync::Arc;

use super::bindings::Bindings;
use super::environment::{Environment, FieldLookup};
use super::well_known;
use super::{Checked, Reference};
use crate::syntax::ast::{OffsetRange, Select};
use crate::syntax::{Ast, Expr, ExprId, ExprKind, Issues, Literal};
use crate::types::Type;

/// Largest nesting of expressions that is checked. The parser's own limit keeps expressions well
/// below it.
const MAX_DEPTH: u32 = 1_000;

/// Number of issues whose message is kept; more are not displayed.
const MAX_MESSAGES: u32 = 100;

/// State of a check.
pub(super) struct Checker<'e> {
    pub(super) environment: &'e Environment,
    pub(super) bindings: Bindings,
    pub(super) issues: Issues,
    /// Variables of the comprehensions around the expression, innermost last.
    pub(super) scope: Vec<(Arc<str>, Type)>,
    positions: Vec<OffsetRange>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    depth: u32,
    /// Number of issues so far.
    reported: u32,
}

/// Finds the types of an expression.
pub(super) fn check(environment: &Environment, mut ast: Ast) -> Result<Checked, Issues> {
    let count = ast.positions.len();
    let mut checker = Checker {
        environment,
        bindings: Bindings::default(),
        issues: Issues::new(ast.source.clone()),
        scope: Vec::new(),
        positions: std::mem::take(&mut ast.positions),
        types: vec![None; count],
        references: vec![None; count],
        depth: 0,
        reported: 0,
    };
    checker.check(&mut ast.root);
    let declared = std::mem::take(&mut checker.types);
    let types = declared
        .iter()
        .map(|ty| ty.as_ref().map_or(Type::Dyn, |ty| checker.bindings.resolve(ty)))
        .collect();
    if checker.bindings.is_exhausted() {
        checker.issues.report_without_position("type of the expression is too large");
    }
    ast.positions = checker.positions;
    checker.issues.into_result(Checked {
        ast: Arc::new(ast),
        types,
        references: checker.references,
    })
}

impl Checker<'_> {
    /// Checks an expression and all expressions below.
    pub(super) fn check(&mut self, expr: &mut Expr) {
        if self.depth >= MAX_DEPTH {
            self.report(expr.id, format_args!("expression nesting limit exceeded: {MAX_DEPTH}"));
            return self.set_type(expr.id, Type::Error);
        }
        self.depth += 1;
        match &mut expr.kind {
            ExprKind::Literal(literal) => {
                let ty = literal_type(literal);
                self.set_type(expr.id, ty);
            }
            ExprKind::Ident(_) => self.check_ident(expr),
            ExprKind::Select(_) => self.check_select(expr),
            ExprKind::Call(call) => self.check_call(expr.id, call),
            ExprKind::List(list) => self.check_list(expr.id, list),
            ExprKind::Map(entries) => self.check_map(expr.id, entries),
            ExprKind::Struct(literal) => self.check_struct(expr.id, literal),
            ExprKind::Comprehension(comprehension) => {
                self.check_comprehension(expr.id, comprehension)
            }
        }
        self.depth -= 1;
    }

    fn check_ident(&mut self, expr: &mut Expr) {
        let ExprKind::Ident(name) = &mut expr.kind else { return };
        match self.resolve_ident(name) {
            Some((resolved, ty)) => {
                self.set_ident(expr.id, &resolved, ty);
                *name = resolved;
            }
            None => {
                let name = std::mem::take(name);
                self.report_undeclared(expr.id, &name);
                expr.kind = ExprKind::Ident(name);
            }
        }
    }

    fn check_select(&mut self, expr: &mut Expr) {
        // A qualified name (`a.b.c`) may be that of a variable.
        if let Some((resolved, ty)) =
            qualified_name(expr).and_then(|name| self.resolve_ident(&name))
        {
            self.set_ident(expr.id, &resolved, ty);
            expr.kind = ExprKind::Ident(resolved);
            return;
        }
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let Select { operand, field, test_only } = &mut **select;
        let result = self.check_field(expr.id, operand, field, false);
        let result = if *test_only { Type::Bool } else { self.bindings.substitute(&result) };
        self.set_type(expr.id, result);
    }

    /// Type of a selection of `field` from `operand`, which is checked first.
    pub(super) fn check_field(
        &mut self,
        id: ExprId,
        operand: &mut Expr,
        field: &str,
        is_optional: bool,
    ) -> Type {
        self.check(operand);
        let operand_type = self.type_of(operand.id);
        let operand_type = self.bindings.substitute(&operand_type);
        let content = operand_type.optional_content();
        let result = self.field_type(id, content.unwrap_or(&operand_type), field);
        if content.is_some() || is_optional { Type::optional(result) } else { result }
    }

    fn field_type(&mut self, id: ExprId, target: &Type, field: &str) -> Type {
        match target {
            Type::Map(_, value) => Type::clone(value),
            Type::Object(object) => {
                let found = match self.environment.field(&object.name, field) {
                    // An object type that holds the fields need not be declared by name as well.
                    FieldLookup::UnknownObject if !object.fields.is_empty() => {
                        self.environment.field_of(object, field)
                    }
                    found => found,
                };
                self.field_or_report(id, found, &object.name, field)
            }
            // Types of Kubernetes' libraries are objects without a declaration to cel-go's checker.
            Type::Opaque(name, _) if name.starts_with("kubernetes.") => {
                self.field_or_report(id, FieldLookup::UnknownObject, name, field)
            }
            Type::Param(_) => {
                self.bindings.assign(&[Type::Dyn], std::slice::from_ref(target));
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.report(id, format_args!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        }
    }

    /// The field's type; with an issue, the type of errors if there is none.
    pub(super) fn field_or_report(
        &mut self,
        id: ExprId,
        found: FieldLookup,
        object: &str,
        field: &str,
    ) -> Type {
        match found {
            FieldLookup::Found(ty) => return ty,
            FieldLookup::Undefined => self.report(id, format_args!("undefined field '{field}'")),
            FieldLookup::UnknownObject => {
                self.report(id, format_args!("unexpected failed resolution of '{object}'"))
            }
        }
        Type::Error
    }

    /// Name and type of the variable, or of the type, that a name stands for.
    pub(super) fn resolve_ident(&self, name: &str) -> Option<(String, Type)> {
        self.environment.candidates(name).find_map(|candidate| {
            let local = self.scope.iter().rev().find(|(variable, _)| **variable == *candidate);
            let ty =
                local.map(|(_, ty)| ty.clone()).or_else(|| self.environment.ident(&candidate))?;
            Some((candidate, ty))
        })
    }

    /// Adds an issue about an expression.
    pub(super) fn report(&mut self, id: ExprId, message: fmt::Arguments<'_>) {
        let offset = self.positions.get(id.index()).map_or(0, |position| position.start);
        // Issues beyond the displayed ones are only counted: a large expression can have very many.
        let message =
            if self.reported < MAX_MESSAGES { message.to_string() } else { String::new() };
        self.reported += 1;
        self.issues.report(offset, message);
    }

    /// Adds the issue of an unknown name; the expression has no type then.
    pub(super) fn report_undeclared(&mut self, id: ExprId, name: &str) {
        let container = self.environment.container();
        self.report(
            id,
            format_args!("undeclared reference to '{name}' (in container '{container}')"),
        );
        self.set_type(id, Type::Error);
    }

    pub(super) fn report_mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        self.report(id, format_args!("expected type '{expected}' but found '{actual}'"));
    }

    pub(super) fn set_type(&mut self, id: ExprId, ty: Type) {
        if let Some(entry) = self.types.get_mut(id.index()) {
            *entry = Some(ty);
        }
    }

    pub(super) fn set_reference(&mut self, id: ExprId, reference: Reference) {
        if let Some(entry) = self.references.get_mut(id.index()) {
            *entry = Some(reference);
        }
    }

    fn set_ident(&mut self, id: ExprId, name: &str, ty: Type) {
        self.set_type(id, ty);
        let value = well_known::constant(name);
        self.set_reference(id, Reference::Ident { name: name.into(), value });
    }

    /// Type that the check of an expression has found.
    pub(super) fn type_of(&self, id: ExprId) -> Type {
        self.types.get(id.index()).cloned().flatten().unwrap_or(Type::Error)
    }

    /// Whether a value of type `from` can be where `to` is expected; binds type variables.
    pub(super) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.bindings.assign(std::slice::from_ref(from), std::slice::from_ref(to))
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The dotted name that an expression of identifiers and selections spells.
pub(super) fn qualified_name(expr: &Expr) -> Option<String> {
    let (mut fields, mut operand) = (Vec::new(), expr);
    while let ExprKind::Select(select) = &operand.kind {
        if select.test_only {
            return None;
        }
        fields.push(select.field.as_str());
        operand = &select.operand;
    }
    let ExprKind::Ident(name) = &operand.kind else { return None };
    fields.push(name);
    fields.reverse();
    Some(fields.join("."))
}
