//! The Common Expression Language as Kubernetes 1.36 speaks it.
//!
//! The layers, each of which uses only those before it:
//!
//! 1. [`syntax`]: source text with positions, issues with caret lines, the syntax tree, lexer, parser and macros.
//! 2. [`types`]: the types of expressions and variables.
//! 3. [`check`]: declarations of functions and variables, the type checker, the checked tree.
//! 4. [`cost`]: the static estimate of an expression's cost.
//! 5. `schema` (feature `eval`): structural schemas as types, shapes and sizes.
//! 6. `library` (feature `eval`): quantities, addresses, URLs, versions, times and texts with Go's semantics.
//! 7. `eval` (feature `eval`): values over JSON, functions, evaluation with a budget.
//! 8. `rules` (feature `eval`): `x-kubernetes-validations` of definitions and objects.
//! 9. `admission` (feature `eval`): `ValidatingAdmissionPolicy` and match conditions.

// DESIGN.md, 122: CEL is an engine of our own

#[cfg(feature = "eval")]
pub mod admission;
pub mod check;
pub mod cost;
#[cfg(feature = "eval")]
pub mod eval;
#[cfg(feature = "eval")]
pub mod library;
#[cfg(feature = "eval")]
pub mod rules;
#[cfg(feature = "eval")]
pub mod schema;
pub mod syntax;
pub mod types;
