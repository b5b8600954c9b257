//! The table of functions, with their dispatch by the types of the arguments.

pub(super) mod authorizer;
mod convert;
mod formats;
mod lists;
mod net;
mod operators;
mod optionals;
mod order;
mod quantity;
mod semver;
mod text;
mod times;
mod url;

pub use convert::display;
pub(crate) use convert::display_within;

use super::error::EvalError;
use super::list::List;
use super::value::{Text, Value};
use super::work::WorkBudget;
use crate::library::regex::{Pattern, Regex, SyntaxError};

/// Steps of compiling a regular expression, whatever the pattern.
const REGEX_STEPS: u64 = 100;
/// Steps of compiling a range of characters of a pattern.
const RANGE_STEPS: u64 = 10;

/// The body of a function.
pub type Function = for<'a> fn(&mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError>;

/// A call with its arguments, the receiver first.
#[derive(Debug)]
pub struct CallArgs<'c, 'a> {
    /// Name of the function.
    pub function: &'c str,
    /// The overload, if the types decide.
    pub overload: Option<&'static str>,
    /// The regular expression of a constant pattern.
    pub regex: Option<&'c Regex>,
    /// Cost that is left: no function makes more elements than that.
    pub remaining: u64,
    /// Steps that are left, for work that the cost does not count.
    pub work: &'c WorkBudget,
    /// The arguments.
    pub args: &'c mut [Value<'a>],
}

impl<'a> CallArgs<'_, 'a> {
    /// Takes an argument out.
    pub fn take(&mut self, index: usize) -> Value<'a> {
        self.args.get_mut(index).map_or(Value::Null, |arg| std::mem::replace(arg, Value::Null))
    }

    /// The error for arguments that no overload takes: `no such overload: size(int)`.
    pub fn no_such_overload(&self) -> EvalError {
        let types: Vec<&str> = self.args.iter().map(Value::type_name).collect();
        EvalError::new(format!("no such overload: {}({})", self.function, types.join(", ")))
    }

    /// A text argument.
    pub fn text(&self, index: usize) -> Result<Text<'a>, EvalError> {
        match self.args.get(index) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(self.no_such_overload()),
        }
    }

    /// An integer argument.
    pub fn int(&self, index: usize) -> Result<i64, EvalError> {
        match self.args.get(index) {
            Some(Value::Int(value)) => Ok(*value),
            _ => Err(self.no_such_overload()),
        }
    }

    /// A value as a text of an error, with the steps for making the text.
    pub(crate) fn display(&self, value: &Value<'_>) -> Result<String, EvalError> {
        display_within(value, self.work)
    }

    /// A list argument.
    pub fn list(&self, index: usize) -> Result<List<'a>, EvalError> {
        match self.args.get(index) {
            Some(Value::List(list)) => Ok(list.clone()),
            _ => Err(self.no_such_overload()),
        }
    }
}

/// Returns the body of the function with this name.
pub fn lookup(name: &str) -> Option<Function> {
    operators::lookup(name)
        .or_else(|| authorizer::lookup(name))
        .or_else(|| convert::lookup(name))
        .or_else(|| formats::lookup(name))
        .or_else(|| lists::lookup(name))
        .or_else(|| net::lookup(name))
        .or_else(|| optionals::lookup(name))
        .or_else(|| order::lookup(name))
        .or_else(|| quantity::lookup(name))
        .or_else(|| semver::lookup(name))
        .or_else(|| text::lookup(name))
        .or_else(|| times::lookup(name))
        .or_else(|| url::lookup(name))
        .or_else(|| super::patches::lookup(name))
}

/// A regular expression of a pattern of Go.
pub(crate) fn compile_regex(pattern: &str) -> Result<Regex, EvalError> {
    Regex::compile(pattern).map_err(|error| EvalError::new(error.to_string()))
}

/// The regular expression of a computed pattern, with the steps that the compilation takes: the
/// cost counts the pattern's characters, and `.{1000}` has few.
pub(crate) fn computed_regex(pattern: &str, work: &WorkBudget) -> Result<Regex, EvalError> {
    let failed = |error: SyntaxError| EvalError::new(error.to_string());
    let pattern = Pattern::parse(pattern).map_err(failed)?;
    work.take(REGEX_STEPS.saturating_add(pattern.ranges().saturating_mul(RANGE_STEPS)))?;
    pattern.compile().map_err(failed)
}
