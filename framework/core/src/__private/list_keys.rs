//! JSON names of the keys of a list of kind `map`, from the names of the item's fields in Rust.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::FieldNames;
use crate::crd::derived::Of;

/// A list of which the server can keep items apart by some of their fields.
#[diagnostic::on_unimplemented(
    message = "`list(map, keys(…))` is for lists: `{Self}` is not a list",
    label = "not a list"
)]
pub trait ListField {
    /// Type of the items.
    type Item;
}

impl<T> ListField for Vec<T> {
    type Item = T;
}

impl<T> ListField for VecDeque<T> {
    type Item = T;
}

impl<T> ListField for BTreeSet<T> {
    type Item = T;
}

impl<T, S> ListField for HashSet<T, S> {
    type Item = T;
}

/// Returns the type of the items of a list.
///
/// Generated code names the list once, in this call, so that a type that is no list causes a single
/// error.
pub const fn item_of<L: ListField<Item = T>, T>() -> Of<T> {
    Of::NEW
}

impl<T> Of<T> {
    /// Gives the type of a value to a closure, which names fields of the value and is not called.
    pub const fn has(self, _: fn(&T)) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<L: ListField> ListField for Option<L> {
    type Item = L::Item;
}

#[diagnostic::do_not_recommend]
impl<L: ListField> ListField for Box<L> {
    type Item = L::Item;
}

/// Names of a type that derives `Schema`.
pub trait KeyNames {
    /// Returns the name in JSON of a field.
    fn json_name(self, rust: &'static str) -> String;
}

impl<T: FieldNames> KeyNames for &Of<T> {
    fn json_name(self, rust: &'static str) -> String {
        let known = T::FIELDS.iter().find(|field| field.rust == rust);
        known.map_or(rust, |field| field.json).to_owned()
    }
}

/// Names of any other type: those of Kubernetes' own, in camelCase. The schema of the item decides
/// whether they are right.
pub trait GuessedNames {
    /// Returns the name in JSON of a field.
    fn json_name(self, rust: &'static str) -> String;
}

impl<T> GuessedNames for Of<T> {
    fn json_name(self, rust: &'static str) -> String {
        let mut name = String::new();
        for part in rust.split('_').filter(|part| !part.is_empty()) {
            let mut letters = part.chars();
            match letters.next() {
                Some(first) if !name.is_empty() => name.extend(first.to_uppercase()),
                Some(first) => name.push(first),
                None => {}
            }
            name.push_str(letters.as_str());
        }
        name
    }
}
