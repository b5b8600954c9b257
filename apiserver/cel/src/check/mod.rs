//! Declarations of functions and variables, the type checker and the checked tree. No dependencies.

mod admission;
mod aggregates;
mod bindings;
mod calls;
mod checker;
mod declarations;
mod environment;
mod format;
#[cfg(test)]
mod tests;
mod validate;
mod well_known;

use std::sync::Arc;

pub use environment::Environment;
pub use validate::LiteralValidator;

use crate::syntax::{Ast, ExprId, Literal};
use crate::types::Type;

/// An expression whose types are known.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The syntax tree; qualified names (`a.b.c`) that the checker resolved are single identifiers.
    pub ast: Arc<Ast>,
    /// Type of each expression by [`ExprId::index`].
    pub types: Vec<Type>,
    /// Meaning of each name and call by [`ExprId::index`].
    pub references: Vec<Option<Reference>>,
}

/// Meaning of a name or a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A variable, or a constant or type with its value.
    Ident {
        /// The resolved name.
        name: Arc<str>,
        /// Value of a constant; `None` for a variable and a type.
        value: Option<Literal>,
    },
    /// Identifiers of the overloads that may answer the call, those of cel-go; a single identifier
    /// if the types decide.
    Overloads(Vec<&'static str>),
}

impl Checked {
    /// Type of the outermost expression.
    pub fn output_type(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    /// Type of an expression; `dyn` if the checker did not reach the expression.
    pub fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id.index()).unwrap_or(&Type::Dyn)
    }

    /// Meaning of a name or a call.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.index()).and_then(Option::as_ref)
    }
}
