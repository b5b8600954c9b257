//! Lists: arrays of JSON under their shape, values of an expression, and sums of both.

use std::sync::Arc;

use serde_json::Value as Json;

use super::error::EvalError;
use super::value::Value;
use crate::types::shape::{ListKind, ListShape, Shape};

/// Longest sum that is copied into one piece; a longer sum refers to both sides, so that a chain of
/// doublings does not use memory that no cost pays for.
const MAX_COPIED: usize = 32;

/// A list.
#[derive(Debug, Clone)]
pub enum List<'a> {
    /// An array with a shape, read element by element.
    Json(&'a [Json], &'a ListShape),
    /// An array without a shape.
    Dyn(&'a [Json]),
    /// Values.
    Values(Arc<Vec<Value<'a>>>),
    /// Values of a set or of a list with keys.
    Keyed(Arc<Vec<Value<'a>>>, &'a ListShape),
    /// The sum of two lists.
    Concat(Arc<Concat<'a>>),
}

/// Two lists, joined.
#[derive(Debug)]
pub struct Concat<'a> {
    left: List<'a>,
    right: List<'a>,
    len: usize,
    /// Shape of the left list.
    shape: Option<&'a ListShape>,
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(values: Vec<Value<'a>>) -> Self {
        List::Values(Arc::new(values))
    }
}

impl<'a> List<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Json(items, _) | List::Dyn(items) => items.len(),
            List::Values(values) | List::Keyed(values, _) => values.len(),
            List::Concat(concat) => concat.len,
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element; `None` behind the end.
    pub fn get(&self, mut index: usize) -> Option<Result<Value<'a>, EvalError>> {
        let mut list = self;
        loop {
            match list {
                List::Json(items, shape) => {
                    return items.get(index).map(|item| Value::json(item, &shape.items));
                }
                List::Dyn(items) => {
                    return items.get(index).map(|item| Value::json(item, &Shape::Dyn));
                }
                List::Values(values) | List::Keyed(values, _) => {
                    return values.get(index).cloned().map(Ok);
                }
                List::Concat(concat) => {
                    let left = concat.left.len();
                    (list, index) = if index < left {
                        (&concat.left, index)
                    } else {
                        (&concat.right, index - left)
                    };
                }
            }
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// The shape of a set or of a list with keys.
    pub(crate) fn keyed_shape(&self) -> Option<&'a ListShape> {
        match self {
            List::Json(_, shape) | List::Keyed(_, shape) if shape.kind != ListKind::Atomic => {
                Some(shape)
            }
            _ => None,
        }
    }

    /// The shape under which the elements of a sum are read that begins with this list.
    pub(crate) fn shape(&self) -> Option<&'a ListShape> {
        match self {
            List::Json(_, shape) | List::Keyed(_, shape) => Some(shape),
            List::Concat(concat) => concat.shape,
            List::Dyn(_) | List::Values(_) => None,
        }
    }

    /// The list with the elements of another behind its own.
    pub fn concat(self, other: List<'a>) -> Result<List<'a>, EvalError> {
        let len = self
            .len()
            .checked_add(other.len())
            .filter(|len| i64::try_from(*len).is_ok())
            .ok_or(EvalError::Static("integer overflow"))?;
        match self {
            _ if other.is_empty() => Ok(self),
            _ if self.is_empty() => Ok(other),
            // An accumulator of a fold is the only owner of the list and grows in place. A long
            // list that is appended is not copied: a sum costs 1, whatever the length.
            List::Values(mut values)
                if len <= MAX_COPIED
                    || (Arc::strong_count(&values) == 1 && other.len() <= MAX_COPIED) =>
            {
                let target = Arc::make_mut(&mut values);
                for value in other.iter() {
                    target.push(value?);
                }
                Ok(List::Values(values))
            }
            left => {
                let shape = left.shape();
                Ok(List::Concat(Arc::new(Concat { left, right: other, len, shape })))
            }
        }
    }
}
