//! The Common Expression Language as Kubernetes 1.36 speaks it.
//!
//! The layers, each of which uses only the layers before:
//!
//! 1. [`syntax`]: source text with positions, issues with caret lines, the syntax tree, lexer,
//!    parser and macros.
//! 2. [`types`]: the types of expressions and variables.
//! 3. [`check`]: declarations of functions and variables, the type checker, the checked tree.
//! 4. [`cost`]: the static estimate of an expression's cost.
//! 5. `schema` (feature `eval`): structural schemas as types, shapes and sizes.
//! 6. `library` (feature `eval`): quantities, addresses, URLs, versions, times and texts with Go's
//!    semantics.
//! 7. `eval` (feature `eval`): values over JSON, functions, evaluation with a budget.
//! 8. `rules` (feature `eval`): `x-kubernetes-validations` of definitions and objects.
//! 9. `devices` (feature `eval`): selectors of devices.
//! 10. `admission` (feature `eval`): `ValidatingAdmissionPolicy` and match conditions.
//!
//! Rules and policies are compiled and judged as a whole by `rules` and `admission`. A single
//! expression goes through the layers below them:
//!
//! ```
//! # #[cfg(feature = "eval")] {
//! use windlass_cel::check::Environment;
//! use windlass_cel::cost::{DefaultEstimator, estimate};
//! use windlass_cel::eval::{Limits, Program, Value, Variables};
//! use windlass_cel::schema::Declaration;
//!
//! let schema = serde_json::json!({"type": "object", "properties": {
//!     "min": {"type": "integer"}, "max": {"type": "integer"}}});
//! let (ty, shape) =
//!     Declaration::of_schema(&schema, false).expect("a type").to_type_and_shape("Range");
//!
//! let environment = Environment::kubernetes().with_variable("self", ty);
//! let checked = environment.compile("self.min <= self.max").expect("a rule");
//! assert_eq!(checked.output_type().to_string(), "bool");
//! assert_eq!(estimate(&checked, &DefaultEstimator).max, 5);
//!
//! let program = Program::new(&checked).expect("a program");
//! let data = serde_json::json!({"min": 2, "max": 1});
//! let variables = Variables::new().bind("self", Value::json(&data, &shape).expect("a value"));
//! let outcome = program.evaluate(&variables, Limits::new(1_000));
//! assert!(matches!(outcome.result, Ok(Value::Bool(false))));
//!
//! let issues = environment.compile("self.mim <= 3").unwrap_err();
//! assert!(issues.to_string().starts_with("ERROR: <input>:1:5: undefined field 'mim'"));
//! # }
//! ```

// DESIGN.md, 122: CEL is an engine of our own

#[cfg(feature = "eval")]
pub mod admission;
pub mod check;
pub mod cost;
#[cfg(feature = "eval")]
pub mod devices;
#[cfg(feature = "eval")]
pub mod eval;
pub mod library;
#[cfg(feature = "eval")]
pub mod rules;
#[cfg(feature = "eval")]
pub mod schema;
pub mod syntax;
pub mod types;
