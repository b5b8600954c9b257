//! Source text, issues with caret lines, the syntax tree, lexer, parser and macros. No
//! dependencies.

pub mod ast;
pub mod identifiers;
pub mod issues;
mod lexer;
mod macros;
pub mod parser;
pub mod source;

pub use ast::{Ast, Expr, ExprId, ExprKind, Literal};
pub use issues::{Issue, Issues};
pub use parser::{ParserOptions, parse};
pub use source::{Position, Source};
