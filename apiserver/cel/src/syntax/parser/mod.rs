//! Parser: source text to syntax tree, with the grammar, limits and messages of cel-go.

mod builder;
mod engine;
mod grammar;
mod literals;
mod predict;
mod recover;
mod visit;

pub(super) use builder::Builder;

use super::ast::Ast;
use super::issues::Issues;
use super::source::Source;

/// Syntax and limits of the parser. The default is that of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParserOptions {
    /// Whether `a.?b`, `a[?b]`, `[?e]`, `{?k: v}` and the macros `optMap` and `optFlatMap` exist.
    pub optional_syntax: bool,
    /// Whether the macros with two variables exist, `transformList` among them.
    pub two_variable_comprehensions: bool,
    /// Whether the macro `cel.bind` exists.
    pub bindings: bool,
    /// Largest depth of the same rule of the grammar.
    pub max_recursion_depth: usize,
    /// Largest size of an expression in code points.
    pub expression_size_limit: usize,
    /// Largest number of syntax errors that are reported.
    pub error_reporting_limit: usize,
    /// Largest number of recoveries from errors.
    pub error_recovery_limit: usize,
    /// Largest number of tokens that one recovery skips.
    pub error_recovery_token_lookahead_limit: usize,
}

impl Default for ParserOptions {
    fn default() -> ParserOptions {
        ParserOptions {
            optional_syntax: true,
            two_variable_comprehensions: true,
            bindings: false,
            max_recursion_depth: 250,
            expression_size_limit: 100_000,
            error_reporting_limit: 100,
            error_recovery_limit: 30,
            error_recovery_token_lookahead_limit: 256,
        }
    }
}

/// Parses an expression and expands its macros.
///
/// # Errors
///
/// All errors of the syntax and of macros' arguments, in the words of cel-go.
pub fn parse(source: Source, options: &ParserOptions) -> Result<Ast, Issues> {
    let mut issues = Issues::new(source.clone());
    let size = source.text().chars().count();
    if size > options.expression_size_limit {
        let limit = options.expression_size_limit;
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {limit}");
        issues.report_without_position(message);
        return Err(issues);
    }
    let mut engine = engine::Engine::new(source.text(), issues, options);
    let Ok(root) = engine.parse() else {
        return Err(engine.issues);
    };
    let builder = Builder::new(engine.issues, options);
    let visitor = visit::Visitor::new(source.text(), &engine.nodes, builder);
    let (root, builder) = visitor.run(root);
    let (positions, issues) = builder.finish();
    issues.into_result(Ast { source: source.clone(), root, positions })
}

#[cfg(test)]
mod tests;
