//! Selections: variables, fields, keys, indices, presence tests and optional selections.

use super::super::error::EvalError;
use super::super::list::List;
use super::super::patches::PolicyLiteral;
use super::super::plan::{Attribute, Qualifier, SelectionKey, SelectionRoot};
use super::super::program;
use super::super::value::{Opaque, Value};
use super::composed::Marker;
use super::{EvalResult, Evaluation};

/// The state of a chain of selections.
enum Chain<'a> {
    /// A value; with `true` a selection was optional.
    Value(Value<'a>, bool),
    /// An optional selection found nothing: the chain ends.
    Absent,
}

impl<'a> Evaluation<'_, 'a> {
    /// Value of a selection, with the cost of the root; a presence test has no cost for that.
    #[inline]
    pub(crate) fn attribute(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let result = match &attribute.root {
            // A name alone, the commonest selection, is the value, also if the value is an
            // optional.
            SelectionRoot::Slot(slot) if attribute.qualifiers.is_empty() => self.slot(*slot),
            _ => self.resolve(attribute),
        };
        if let Err(fatal) = &result
            && fatal.is_fatal()
        {
            return result;
        }
        self.charge(u64::from(has_cost(attribute)))?;
        result
    }

    /// Value of a selection without the cost of the root, as branches of `?:` and keys are
    /// resolved.
    pub(crate) fn resolve(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let value = match self.chain(attribute)? {
            Chain::Value(value, true) => Value::some(value),
            Chain::Value(value, false) => value,
            Chain::Absent => Value::Optional(None),
        };
        match value {
            Value::Optional(content) if attribute.is_test => Ok(Value::Bool(content.is_some())),
            value => Ok(value),
        }
    }

    fn chain(&mut self, attribute: &'a Attribute) -> Result<Chain<'a>, EvalError> {
        let root = match &attribute.root {
            SelectionRoot::Variable(name) => match program::find(self.values, name) {
                Some(value) => unwrapped(value.clone()),
                None => return Err(EvalError::new(format!("no such attribute(s): {name}"))),
            },
            SelectionRoot::Slot(slot) => unwrapped(self.slot(*slot)?),
            SelectionRoot::Operand(node) => unwrapped(self.eval(node)?),
            SelectionRoot::Conditional(parts) => {
                let (condition, truthy, falsy) = &**parts;
                match self.eval(condition)? {
                    Value::Bool(true) => self.branch(truthy)?,
                    Value::Bool(false) => self.branch(falsy)?,
                    _ => return Err(EvalError::no_such_overload()),
                }
            }
        };
        let Chain::Value(mut value, mut is_optional) = root else { return Ok(Chain::Absent) };
        for qualifier in &attribute.qualifiers {
            is_optional |= qualifier.is_optional;
            match self.qualify(value, qualifier, is_optional)? {
                Some(part) => value = part,
                None => return Ok(Chain::Absent),
            }
        }
        Ok(Chain::Value(value, is_optional))
    }

    fn branch(&mut self, attribute: &'a Attribute) -> Result<Chain<'a>, EvalError> {
        if attribute.is_test {
            return self.resolve(attribute).map(|value| Chain::Value(value, false));
        }
        self.chain(attribute)
    }

    /// A part of a value; a composed variable is computed here at the first use.
    fn select(
        &mut self,
        value: &Value<'a>,
        key: &Value<'a>,
    ) -> Result<SelectedPart<'a>, EvalError> {
        let name = match (value, key) {
            (Value::Opaque(opaque), Value::String(name)) if is_composed(opaque) => name,
            (_, Value::String(name)) => {
                // The key is in the error if there is no such part.
                self.work.scan(name.len())?;
                return self.decoded(select(value, key));
            }
            _ => return self.decoded(select(value, key)),
        };
        match self.composed.as_ref().and_then(|composed| composed.find(name)) {
            Some(index) => match self.composed.as_ref().and_then(|all| all.value(index)) {
                Some(value) => value.map(SelectedPart::Found),
                None => self.compute(index).map(SelectedPart::Found),
            },
            None => Ok(SelectedPart::Missing(missing("no such key", key))),
        }
    }

    /// A part; bytes are decoded anew each time that the data are read.
    fn decoded(
        &self,
        part: Result<SelectedPart<'a>, EvalError>,
    ) -> Result<SelectedPart<'a>, EvalError> {
        if let Ok(SelectedPart::Found(Value::Bytes(bytes))) = &part {
            self.work.copy(bytes.len())?;
        }
        part
    }

    /// Value of a part, or the error of reading the part; a fatal error ends the evaluation.
    pub(super) fn part(
        &mut self,
        value: &Value<'a>,
        key: &Value<'a>,
    ) -> Result<EvalResult<'a>, EvalError> {
        match self.select(value, key) {
            Ok(SelectedPart::Found(value)) => Ok(Ok(value)),
            Ok(SelectedPart::Missing(error)) => Ok(Err(error)),
            Err(fatal) if fatal.is_fatal() => Err(fatal),
            Err(error) => Ok(Err(error)),
        }
    }

    /// A part of a value, with the cost of 1; `None` for a part that an optional selection does not
    /// find.
    fn qualify(
        &mut self,
        value: Value<'a>,
        qualifier: &'a Qualifier,
        is_optional: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        if let (SelectionKey::Const(key), false, false) =
            (&qualifier.key, qualifier.is_test, is_optional)
        {
            let found = self.select(&value, key);
            self.charge(1)?;
            return match found? {
                SelectedPart::Found(value) => Ok(Some(value)),
                SelectedPart::Missing(error) => Err(error),
            };
        }
        let computed = match &qualifier.key {
            SelectionKey::Const(_) => Ok(None),
            SelectionKey::Attribute(attribute) => self.resolve(attribute).map(Some),
            SelectionKey::Node(node) => self.eval(node).map(Some),
        };
        let found = match (&computed, &qualifier.key) {
            (Ok(Some(key)), _) => check_key(key).and_then(|()| self.select(&value, key)),
            (Ok(None), SelectionKey::Const(key)) => self.select(&value, key),
            (Err(fatal), _) if fatal.is_fatal() => return Err(fatal.clone()),
            (Err(error), _) => Err(error.clone()),
            (Ok(None), _) => Ok(SelectedPart::Missing(EvalError::no_such_overload())),
        };
        if qualifier.is_test {
            self.charge(1)?;
            let is_present = matches!(found?, SelectedPart::Found(_));
            return Ok((is_present || !is_optional).then_some(Value::Bool(is_present)));
        }
        match found {
            Ok(SelectedPart::Missing(_)) if is_optional => Ok(None),
            // An optional selection that fails is not observed by cel-go's cost tracker.
            Err(error) if is_optional => Err(error),
            other => {
                self.charge(1)?;
                match other? {
                    SelectedPart::Found(value) => Ok(Some(value)),
                    SelectedPart::Missing(error) => Err(error),
                }
            }
        }
    }
}

/// Whether the root of a selection costs 1: not that of a presence test, and not the choice between
/// branches.
fn has_cost(attribute: &Attribute) -> bool {
    !attribute.is_test && !matches!(attribute.root, SelectionRoot::Conditional(_))
}

/// A root; an optional is opened and makes the chain optional.
///
/// cel-go opens the optional to the value of Go inside, which knows no schema:
/// `oldSelf.value().x__dot__y` finds nothing where `oldSelf` is an optional, and a field with
/// `format: duration` is a text there.
#[inline]
fn unwrapped(value: Value<'_>) -> Chain<'_> {
    match value {
        Value::Optional(Some(content)) => Chain::Value((*content).clone().without_shape(), true),
        Value::Optional(None) => Chain::Absent,
        value => Chain::Value(value, false),
    }
}

/// A part, or the error for an absent part.
enum SelectedPart<'a> {
    Found(Value<'a>),
    Missing(EvalError),
}

/// A computed key must be a scalar.
pub(crate) fn check_key(key: &Value<'_>) -> Result<(), EvalError> {
    match key {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_) => {
            Ok(())
        }
        other => Err(EvalError::new(format!("invalid qualifier type: {}", other.go_type_name()))),
    }
}

/// Whether a value is the object whose fields are the composed variables.
pub(super) fn is_composed(value: &std::sync::Arc<dyn Opaque>) -> bool {
    value.as_any().is::<Marker>()
}

fn select<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<SelectedPart<'a>, EvalError> {
    match value {
        Value::Map(map) => Ok(map.find(key)?.map_or_else(
            || SelectedPart::Missing(missing("no such key", key)),
            SelectedPart::Found,
        )),
        Value::List(list) => element(list, key),
        Value::Opaque(_) => {
            let literal = PolicyLiteral::of(value);
            let found = match key {
                Value::String(name) => literal.and_then(|literal| literal.field(name)),
                _ => None,
            };
            let found = found.cloned().map(SelectedPart::Found);
            Ok(found.unwrap_or_else(|| SelectedPart::Missing(missing("no such key", key))))
        }
        _ => Ok(SelectedPart::Missing(missing("no such key", key))),
    }
}

fn element<'a>(list: &List<'a>, key: &Value<'a>) -> Result<SelectedPart<'a>, EvalError> {
    let index = list_index(key)?;
    let Some(item) = usize::try_from(index).ok().and_then(|index| list.get(index)) else {
        return Ok(SelectedPart::Missing(missing("index out of bounds", key)));
    };
    // An array of the data takes an index of type int only.
    if matches!(list, List::Json(..)) && !matches!(key, Value::Int(_)) {
        return Err(missing("unsupported index", key));
    }
    item.map(SelectedPart::Found)
}

/// An index of a list; a double or uint without a fraction is an index.
pub(crate) fn list_index(key: &Value<'_>) -> Result<i64, EvalError> {
    let converted = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) if *index >= -9.2e18 && *index < 9.2e18 => {
            (index.trunc() == *index).then_some(*index as i64)
        }
        Value::Double(_) => None,
        other => {
            return Err(EvalError::new(format!(
                "unsupported index type '{}' in list",
                other.type_name()
            )));
        }
    };
    let text = || {
        EvalError::new(format!(
            "unsupported index value {} in list",
            super::super::functions::display(key)
        ))
    };
    converted.ok_or_else(text)
}

fn missing(what: &str, key: &Value<'_>) -> EvalError {
    EvalError::new(format!("{what}: {}", super::super::functions::display(key)))
}
