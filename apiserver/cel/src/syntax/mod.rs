//! Source text, issues with caret lines, the syntax tree, lexer, parser and macros. No dependencies.

pub mod ast;
pub mod identifiers;
pub mod issues;
pub mod source;

pub use ast::{Ast, Expr, ExprId, ExprKind, Literal};
pub use issues::{Issue, Issues};
pub use source::{Position, Source};
