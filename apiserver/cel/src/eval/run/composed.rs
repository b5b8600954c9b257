//! Composed variables: expressions that other expressions read by name, computed when they are
//! first read.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::program::Program;
use super::super::value::{Opaque, Value};

/// The expressions of composed variables by name; a later expression of the same name replaces an
/// earlier expression.
#[derive(Debug, Default)]
pub struct Definitions {
    names: HashMap<String, usize>,
    programs: Vec<(String, Result<Program, String>)>,
}

impl Definitions {
    /// Adds a variable with the program, or with the reason why there is no program, which is an
    /// error where it is read.
    pub fn insert(&mut self, name: impl Into<String>, program: Result<Program, String>) {
        let name = name.into();
        self.names.insert(name.clone(), self.programs.len());
        self.programs.push((name, program));
    }
}

/// A variable in an evaluation.
#[derive(Debug, Clone, Default)]
enum State<'a> {
    /// Not read yet.
    #[default]
    Unset,
    /// Read, and waiting for the variables that are read by this variable.
    Begun,
    /// Computed.
    Done(Result<Value<'a>, EvalError>),
}

/// The values of composed variables in an evaluation, or in several.
#[derive(Debug, Clone)]
pub(crate) struct Composed<'a> {
    definitions: &'a Definitions,
    states: Vec<State<'a>>,
    cost: u64,
}

impl<'a> Composed<'a> {
    pub(in crate::eval) fn new(definitions: &'a Definitions) -> Composed<'a> {
        let states = definitions.programs.iter().map(|_| State::Unset).collect();
        Composed { definitions, states, cost: 0 }
    }

    /// The object whose fields the variables are.
    pub(in crate::eval) fn object() -> Value<'a> {
        Value::Opaque(Arc::new(Marker))
    }

    /// The names of the variables in the order of their definitions.
    pub(in crate::eval) fn names(&self) -> Vec<&'a str> {
        let Definitions { names, programs } = self.definitions;
        let named = programs.iter().enumerate();
        let is_last = |(index, (name, _)): (usize, &'a (String, _))| {
            (names.get(name) == Some(&index)).then_some(name.as_str())
        };
        named.filter_map(is_last).collect()
    }

    /// The index of a variable.
    pub(in crate::eval) fn find(&self, name: &str) -> Option<usize> {
        self.definitions.names.get(name).filter(|_| !has_escape(name)).copied()
    }

    /// The value of a variable, if computed.
    pub(in crate::eval) fn value(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match self.states.get(index)? {
            State::Done(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// The levels of a variable's expression.
    pub(in crate::eval) fn depth(&self, index: usize) -> usize {
        match self.definitions.programs.get(index) {
            Some((_, Ok(program))) => program.depth(),
            _ => 0,
        }
    }

    /// Forgets that the computation of a variable was begun.
    pub(in crate::eval) fn abandon(&mut self, index: usize) {
        if let Some(state) = self.states.get_mut(index) {
            *state = State::Unset;
        }
    }

    /// The program of a variable that is read first; `None` if there is no program, or if the
    /// variable waits for itself: then the value is an error.
    pub(in crate::eval) fn begin(&mut self, index: usize) -> Option<&'a Program> {
        let (name, program) = self.definitions.programs.get(index)?;
        let state = self.states.get_mut(index)?;
        let error = match (program, &state) {
            (Ok(program), State::Unset) => {
                *state = State::Begun;
                return Some(program);
            }
            // kube-apiserver ends here with an overflow of the stack; only a variable that replaces
            // another can read itself.
            (Ok(_), _) => format!("composited variable {name:?} reads itself"),
            (Err(error), _) => format!("composited variable {name:?} fails to compile: {error}"),
        };
        *state = State::Done(Err(EvalError::new(error)));
        None
    }

    /// Stores the value of a variable.
    pub(in crate::eval) fn finish(
        &mut self,
        index: usize,
        value: Result<Value<'a>, EvalError>,
        cost: u64,
    ) {
        self.cost = self.cost.saturating_add(cost);
        let name = self.definitions.programs.get(index).map_or("", |(name, _)| name);
        let failed = |error| {
            EvalError::new(format!("composited variable {name:?} fails to evaluate: {error}"))
        };
        if let Some(state) = self.states.get_mut(index) {
            *state = State::Done(value.map_err(failed));
        }
    }

    pub(in crate::eval) fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }
}

/// Whether a name has an escape as names of properties have it (`a__dash__b`): no expression finds
/// such a variable, because the server reads the name as the property `a-b`.
fn has_escape(name: &str) -> bool {
    let is_escape = |part: &str| !part.is_empty() && !part.contains('_');
    let parts: Vec<&str> = name.split("__").collect();
    parts.len() > 2 && parts.iter().skip(1).take(parts.len() - 2).any(|part| is_escape(part))
}

/// The object whose fields are the composed variables.
#[derive(Debug)]
pub(crate) struct Marker;

impl Opaque for Marker {
    fn type_name(&self) -> &str {
        "kubernetes.variables"
    }

    fn equals(&self, _other: &dyn Opaque) -> bool {
        // There is a single such object in an evaluation.
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
