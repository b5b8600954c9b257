//! Selectors of devices: expressions of classes and claims, checked as by kube-apiserver.
//!
//! ```
//! use windlass_cel::devices::{SelectorError, check_selector};
//!
//! let memory = r#"device.capacity["gpu.example"].memory.isGreaterThan(quantity("8Gi"))"#;
//! assert_eq!(check_selector(memory), None);
//! let Some(SelectorError::Invalid(why)) = check_selector("device.driver") else { panic!() };
//! assert_eq!(why, "must evaluate to bool or the unknown type, not string");
//! ```

// DESIGN.md, 301: Selectors of devices are checked, and not evaluated

use std::sync::{Arc, LazyLock};

use crate::check::Environment;
use crate::cost::{self, SizeEstimator};
use crate::eval::{LITERALS, Program};
use crate::types::{FieldType, ObjectType, Type};

/// Largest estimated cost of a selector.
const MOST_COST: u64 = 1_000_000;
/// Most attributes, and most amounts, of a device.
const MOST_ENTRIES: u64 = 32;
/// Longest name of a driver, and longest domain of an attribute.
const LONGEST_DOMAIN: u64 = 63;
/// Longest name of an attribute behind the domain.
const LONGEST_ID: u64 = 32;
/// Longest text of an attribute.
const LONGEST_VALUE: u64 = 64;

/// The reason why a selector is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorError {
    /// The expression does not compile, or gives no truth value; with the text of the server.
    Invalid(String),
    /// A constant part of the expression cannot be computed; with the text of the server.
    Internal(String),
    /// The expression may cost too much.
    TooCostly,
}

/// The environment of selectors: `device`, and `cel.bind` beside the functions of Kubernetes.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let entries = |value: Type| Type::map(Type::String, Type::map(Type::String, value));
    let quantity = Type::opaque("kubernetes.Quantity");
    let fields = [
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", entries(Type::Any)),
        ("capacity", entries(quantity)),
        ("driver", Type::String),
    ];
    let field = |(name, ty): (&str, Type)| (Arc::from(name), FieldType { ty, max_size: None });
    let fields = fields.into_iter().map(field).collect();
    let device = Arc::new(ObjectType { name: "kubernetes.DRADevice".into(), fields });
    Environment::kubernetes()
        .with_literal_validators(LITERALS)
        .with_bindings()
        .with_type(device.clone())
        .with_variable("device", Type::Object(device))
});

/// Checks the expression of a selector; `None` if the server takes the expression.
pub fn check_selector(text: &str) -> Option<SelectorError> {
    let checked = match ENVIRONMENT.compile(text) {
        Ok(checked) => checked,
        Err(issues) => {
            return Some(SelectorError::Invalid(format!("compilation failed: {issues}")));
        }
    };
    let ty = checked.output_type();
    if !matches!(ty, Type::Bool | Type::Any) {
        let why = format!("must evaluate to bool or the unknown type, not {}", ty.declared());
        return Some(SelectorError::Invalid(why));
    }
    if let Err(error) = Program::new(&checked) {
        return Some(SelectorError::Internal(format!("program instantiation failed: {error}")));
    }
    (cost::estimate(&checked, &Sizes).max > MOST_COST).then_some(SelectorError::TooCostly)
}

/// The sizes of parts of a device.
#[derive(Debug)]
struct Sizes;

impl SizeEstimator for Sizes {
    fn max_size(&self, path: &[&str]) -> Option<u64> {
        let (root, path) = path.split_first()?;
        if *root != "device" {
            return None;
        }
        Some(match path {
            // No bound: 0, as in the estimate of kube-apiserver.
            [] | ["capacity", "@values", "@values"] => 0,
            ["allowMultipleAllocations"] => 1,
            ["driver"] | ["attributes" | "capacity", "@keys"] => LONGEST_DOMAIN,
            ["attributes" | "capacity"] | ["attributes" | "capacity", "@values"] => MOST_ENTRIES,
            ["attributes" | "capacity", "@values", "@keys"] => LONGEST_ID,
            ["attributes", "@values", name] if *name != "@items" => LONGEST_VALUE,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        match check_selector(text) {
            Some(SelectorError::Invalid(why)) => why,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_selector_reads_driver_attributes_and_capacity_of_a_device() {
        for text in [
            "device.driver == 'a.example'",
            "device.attributes['a'].model == 'x' && device.attributes['a'].count > 5",
            "device.attributes['a'].healthy",
            "'model' in device.attributes['a'] && device.allowMultipleAllocations",
            "device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0",
            "cel.bind(a, device.attributes['a'], a.one || a.two == 5)",
        ] {
            assert_eq!(check_selector(text), None, "{text}");
        }
    }

    #[test]
    fn a_selector_of_another_type_or_about_other_fields_is_refused() {
        assert_eq!(why("5"), "must evaluate to bool or the unknown type, not int");
        assert!(why("device.nope").contains("undefined field 'nope'"));
        let text = why("device.attributes['a'].list.exists(x, x == 'a')");
        assert!(text.contains("expression of type 'any' cannot be range"), "{text}");
        let text = why("cel.bind(a.b, 1, true)");
        assert!(text.contains("cel.bind() variable names must be simple identifiers"), "{text}");
    }

    #[test]
    fn a_constant_that_cannot_be_computed_is_an_internal_error() {
        let why = "program instantiation failed: type conversion error from 'string' to 'int'";
        assert_eq!(check_selector("int('x') == 1"), Some(SelectorError::Internal(why.to_owned())));
    }

    #[test]
    fn a_selector_that_may_cost_too_much_is_refused() {
        let mut text = "true".to_owned();
        for name in ["a", "b", "c", "d"] {
            text = format!("device.attributes.all({name}, {text})");
        }
        assert_eq!(check_selector(&text), Some(SelectorError::TooCostly));
    }
}
