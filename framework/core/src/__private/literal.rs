//! Functions for `object!`: from the name of a field to the place of the field's value.
//!
//! The macro knows names and not types. The macro writes `this.spec` unchanged, so that the
//! compiler checks the name at the user's token, and asks [`Slot`] for the value behind an option.
//! The methods of `Slot` for certain types are inherent; for every other type the method of the
//! same name in [`AnySlot`] is found, because inherent methods come first.

// DESIGN.md, 209: `apiVersion` and `kind` in a literal are places of the type, or an error with a
// text

mod keys;
mod texts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::resource::FieldValue;

pub use keys::{CommonKeys, EntriesFn, Finish, MapFields};
pub use texts::{AnyTexts, TextForBytes, TextOfData, Texts};

/// [`Default`], with an error text of this crate for the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `Default` to start from",
    note = "derive `Default` for `{Self}`, or start from a value: `{{ …, ..value }}`"
)]
pub trait Fillable {
    /// Returns the value before any field is set.
    fn empty() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> Fillable for T {
    fn empty() -> Self {
        T::default()
    }
}

/// Returns a new object without a value.
#[inline]
pub fn start<T: Fillable>() -> T {
    T::empty()
}

/// Returns a new object that starts from a value.
#[inline]
pub fn start_from<T>(value: impl FieldValue<T>) -> T {
    value.into_field()
}

/// The value of `name?: value`, of which the compiler expects an option.
#[inline]
pub fn option<T>(value: Option<T>) -> Option<T> {
    value
}

/// The place of a field's value.
#[derive(Debug)]
pub struct Slot<'a, T>(pub &'a mut T);

impl<'a, T> Slot<'a, Option<T>> {
    /// The place behind the option, whose value is made if there is none.
    #[inline]
    pub fn some(self) -> Slot<'a, T>
    where
        T: Fillable,
    {
        Slot(self.0.get_or_insert_with(T::empty))
    }

    /// Sets the field.
    #[inline]
    pub fn set<How, V: OptionValue<T, How>>(self, value: V) {
        *self.0 = value.into_option();
    }

    /// Sets the field to a literal with a fraction.
    #[inline]
    pub fn set_fraction<V: Fraction<T>>(self, value: V) {
        *self.0 = Some(value.into_number());
    }
}

/// `apiVersion` and `kind` where a manifest has them. A kind has no such fields: both follow from
/// its type.
#[derive(Debug)]
pub struct Head {
    #[allow(missing_docs)]
    pub api_version: String,
    #[allow(missing_docs)]
    pub kind: String,
}

/// A kind with a [`Head`] that is set by hand; there is none.
#[diagnostic::on_unimplemented(
    message = "`object!` writes `apiVersion` and `kind` by itself",
    label = "leave it out",
    note = "both follow from the type: `{Self}`"
)]
pub trait HeadByHand {
    /// The field, which is never there.
    fn part<'a>() -> &'a mut String;
}

impl<'a, T: k8s_openapi::Resource> Slot<'a, T> {
    /// The place of `apiVersion` or `kind`: an error that says why a kind has none.
    pub fn part(self, _: impl FnOnce(&'a mut Head) -> &'a mut String) -> &'a mut String
    where
        T: HeadByHand,
    {
        T::part()
    }
}

/// The methods of [`Slot`] for types that need no treatment of their own.
pub trait AnySlot<'a, T: 'a>: Sized {
    /// The place of `apiVersion` or `kind` in a type that has the field, such as `OwnerReference`.
    fn part<P: 'a>(self, part: impl FnOnce(&'a mut T) -> &'a mut P) -> &'a mut P;

    /// The place of the slot.
    fn some(self) -> Slot<'a, T>;

    /// The place of the value that braces fill.
    fn braces(self) -> Slot<'a, T>;

    /// As [`braces`](Self::braces), of words that may be keys.
    fn flat(self) -> Slot<'a, T>;

    /// Sets the field.
    fn set<V: FieldValue<T>>(self, value: V);

    /// Sets the field to a literal with a fraction.
    fn set_fraction<V: Fraction<T>>(self, value: V);

    /// Sets the field to a text in the `data` of a type that is called `Secret`.
    fn set_text<How>(self, text: &'static str)
    where
        T: TextOfData<How>;

    /// The value, whose fields have the names that `keys` has.
    fn enter<K, const N: usize>(self, keys: K, entries: EntriesFn<K, (), N>) -> &'a mut T;

    /// As [`enter`](Self::enter), for keys that are common.
    fn enter_common(self) -> &'a mut T;
}

impl<'a, T: 'a> AnySlot<'a, T> for Slot<'a, T> {
    #[inline]
    fn part<P: 'a>(self, part: impl FnOnce(&'a mut T) -> &'a mut P) -> &'a mut P {
        part(self.0)
    }

    #[inline]
    fn some(self) -> Slot<'a, T> {
        self
    }

    #[inline]
    fn braces(self) -> Slot<'a, T> {
        self
    }

    #[inline]
    fn flat(self) -> Slot<'a, T> {
        self
    }

    #[inline]
    fn set<V: FieldValue<T>>(self, value: V) {
        *self.0 = value.into_field();
    }

    #[inline]
    fn set_fraction<V: Fraction<T>>(self, value: V) {
        *self.0 = value.into_number();
    }

    #[inline]
    fn set_text<How>(self, text: &'static str)
    where
        T: TextOfData<How>,
    {
        *self.0 = T::of_text(text);
    }

    #[inline]
    fn enter<K, const N: usize>(self, _: K, _: EntriesFn<K, (), N>) -> &'a mut T {
        self.0
    }

    #[inline]
    fn enter_common(self) -> &'a mut T {
        self.0
    }
}

/// A value for a field that is an `Option<T>`. `How` separates values from options of values: the
/// compiler finds the matching implementation.
#[diagnostic::on_unimplemented(
    message = "a field of type `Option<{T}>` takes no `{Self}`",
    label = "expected a value for `{T}`, or an `Option` of one"
)]
pub trait OptionValue<T, How> {
    /// Converts the value.
    fn into_option(self) -> Option<T>;
}

/// Marks a value that is always there.
#[derive(Debug)]
pub enum Present {}

/// Marks an option.
#[derive(Debug)]
pub enum OptionMarker {}

#[diagnostic::do_not_recommend]
impl<T, V: FieldValue<T>> OptionValue<T, Present> for V {
    #[inline]
    fn into_option(self) -> Option<T> {
        Some(self.into_field())
    }
}

#[diagnostic::do_not_recommend]
impl<T, V: FieldValue<T>> OptionValue<T, OptionMarker> for Option<V> {
    #[inline]
    fn into_option(self) -> Option<T> {
        self.map(V::into_field)
    }
}

/// An item of a list that stands in the braces of the list; there is none. A bound of the item and
/// not of the list: behind a name that does not exist, the item is unknown, and there is no error.
#[diagnostic::on_unimplemented(
    message = "a field of type `Vec<{Self}>` is a list",
    label = "the items stand in brackets: `[{{ name: value }}]`"
)]
pub trait ItemWithoutBrackets {
    /// The item, which is never there.
    fn only_item<'a>() -> &'a mut Self;
}

impl<'a, T> Slot<'a, Vec<T>> {
    /// An error that says how a list is written. The fields are those of the items: the brackets
    /// are missing, and no name is wrong.
    pub fn braces(self) -> Slot<'a, T>
    where
        T: ItemWithoutBrackets,
    {
        Slot(T::only_item())
    }

    /// As [`braces`](Self::braces), of words that may be keys.
    pub fn flat(self) -> OnlyItem<'a, T>
    where
        T: ItemWithoutBrackets,
    {
        OnlyItem(T::only_item())
    }
}

/// The place of an item without brackets. No [`Slot`]: behind a name that does not exist the item
/// is unknown, and the methods for maps would make it a map, with an error of its own.
#[derive(Debug)]
pub struct OnlyItem<'a, T>(&'a mut T);

impl<'a, T> OnlyItem<'a, T> {
    /// The item, whose fields have the names that `keys` has.
    pub fn enter<K, const N: usize>(self, _: K, _: EntriesFn<K, (), N>) -> &'a mut T {
        self.0
    }

    /// As [`enter`](Self::enter), for keys that are common.
    pub fn enter_common(self) -> &'a mut T {
        self.0
    }
}

/// A type that an integer literal becomes.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` takes no integer",
    label = "expected a value for `{Self}`",
    note = "a struct is written in braces, `{{ name: value }}`, and a text in quotes"
)]
pub trait Integer {
    /// The type of the literal.
    type Literal;
    /// Converts the literal.
    fn of(literal: Self::Literal) -> Self;
}

/// The value of an integer literal.
#[inline]
pub fn integer<T: Integer>(literal: T::Literal) -> T {
    T::of(literal)
}

/// Implements [`Integer`]: `type(literal): conversion`.
macro_rules! integers {
    ($($to:ty, $literal:ty: $convert:expr;)*) => {$(
        impl Integer for $to {
            type Literal = $literal;

            #[inline]
            fn of(literal: $literal) -> Self {
                let convert: fn($literal) -> $to = $convert;
                convert(literal)
            }
        }
    )*};
}

integers! {
    i8, i8: |n| n;
    i16, i16: |n| n;
    i32, i32: |n| n;
    i64, i64: |n| n;
    isize, isize: |n| n;
    u8, u8: |n| n;
    u16, u16: |n| n;
    u32, u32: |n| n;
    u64, u64: |n| n;
    usize, usize: |n| n;
    f64, i32: f64::from;
    IntOrString, i32: IntOrString::Int;
    Quantity, i64: |n| Quantity(n.to_string());
    serde_json::Value, i64: serde_json::Value::from;
}

impl<T: Integer> Integer for Option<T> {
    type Literal = T::Literal;

    #[inline]
    fn of(literal: T::Literal) -> Self {
        Some(T::of(literal))
    }
}

/// A literal with a fraction, for a field of type `T`.
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` takes no fraction",
    label = "expected a value for `{T}`",
    note = "a `Quantity` is written as a text: `\"500m\"`, `\"0.5\"`, `\"1.5Gi\"`"
)]
pub trait Fraction<T> {
    /// Converts the literal.
    fn into_number(self) -> T;
}

#[diagnostic::do_not_recommend]
impl<T, V: FieldValue<T>> Fraction<T> for V {
    #[inline]
    fn into_number(self) -> T {
        self.into_field()
    }
}

/// A list.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` is not a list",
    label = "`[…]` is for lists"
)]
pub trait List: Push<Self::Item> {
    /// The items of the list.
    type Item;
    /// Returns an empty list.
    fn with_capacity(capacity: usize) -> Self;
}

/// The items of a list. Literals know only the items, so that the compiler reports a field that is
/// no list once and not for each item.
pub trait Push<T> {
    /// Appends an item.
    fn push_item(&mut self, item: T);
}

impl<T> List for Vec<T> {
    type Item = T;

    fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }
}

impl<T> Push<T> for Vec<T> {
    fn push_item(&mut self, item: T) {
        self.push(item);
    }
}

impl<T: Ord> List for BTreeSet<T> {
    type Item = T;

    fn with_capacity(_: usize) -> Self {
        Self::new()
    }
}

impl<T: Ord> Push<T> for BTreeSet<T> {
    fn push_item(&mut self, item: T) {
        self.insert(item);
    }
}

/// Empties a list, for the literal to fill.
#[inline]
pub fn list<'a, L: List>(list: &'a mut L, capacity: usize) -> &'a mut (dyn Push<L::Item> + 'a) {
    *list = L::with_capacity(capacity);
    list
}

/// Returns a new item of the list, to fill.
#[inline]
pub fn item<T: Fillable>(_: &mut dyn Push<T>) -> T {
    T::empty()
}

/// Returns a new item of the list that starts from a value.
#[inline]
pub fn item_from<T>(_: &mut dyn Push<T>, value: impl FieldValue<T>) -> T {
    value.into_field()
}

/// Appends a value.
#[inline]
pub fn add<T, V: FieldValue<T>>(list: &mut dyn Push<T>, value: V) {
    list.push_item(value.into_field());
}

/// Appends an integer literal.
#[inline]
pub fn add_integer<T: Integer<Literal = V>, V>(list: &mut dyn Push<T>, value: V) {
    list.push_item(integer(value));
}

/// Appends a literal with a fraction.
#[inline]
pub fn add_fraction<T, V: Fraction<T>>(list: &mut dyn Push<T>, value: V) {
    list.push_item(value.into_number());
}

/// Appends an item that was filled.
#[inline]
pub fn add_item<T>(list: &mut dyn Push<T>, item: T) {
    list.push_item(item);
}

/// Appends each value.
#[inline]
pub fn extend<T, I: IntoIterator<Item: FieldValue<T>>>(list: &mut dyn Push<T>, values: I) {
    values.into_iter().for_each(|value| list.push_item(value.into_field()));
}

/// A map.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a map",
    label = "keys in quotes or parentheses are for maps"
)]
pub trait Map: Put<Self::Key, Self::Value> {
    /// The keys of the map.
    type Key;
    /// The values of the map.
    type Value;
}

/// The entries of a map, as [`Push`] of a list.
pub trait Put<K, V> {
    /// Inserts or replaces a value.
    fn put_value(&mut self, key: K, value: V);
    /// Removes a value.
    fn take_value(&mut self, key: &K) -> Option<V>;
}

impl<K: Ord, V> Map for BTreeMap<K, V> {
    type Key = K;
    type Value = V;
}

impl<K: Ord, V> Put<K, V> for BTreeMap<K, V> {
    fn put_value(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take_value(&mut self, key: &K) -> Option<V> {
        self.remove(key)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Map for HashMap<K, V, S> {
    type Key = K;
    type Value = V;
}

impl<K: Hash + Eq, V, S: BuildHasher> Put<K, V> for HashMap<K, V, S> {
    fn put_value(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take_value(&mut self, key: &K) -> Option<V> {
        self.remove(key)
    }
}

/// Returns a map, for the literal to fill.
#[inline]
pub fn map<'a, M: Map>(map: &'a mut M) -> &'a mut (dyn Put<M::Key, M::Value> + 'a) {
    map
}

/// Returns the key of a map.
#[inline]
pub fn key<K, V>(_: &mut dyn Put<K, V>, key: impl FieldValue<K>) -> K {
    key.into_field()
}

/// Inserts a value.
#[inline]
pub fn put<K, T, V: FieldValue<T>>(map: &mut dyn Put<K, T>, key: K, value: V) {
    map.put_value(key, value.into_field());
}

/// Inserts an integer literal.
#[inline]
pub fn put_integer<K, T: Integer>(map: &mut dyn Put<K, T>, key: K, value: T::Literal) {
    map.put_value(key, integer(value));
}

/// Inserts a literal with a fraction.
#[inline]
pub fn put_fraction<K, T, V: Fraction<T>>(map: &mut dyn Put<K, T>, key: K, value: V) {
    map.put_value(key, value.into_number());
}

/// Removes the value of a key, for the literal to fill and put back; a new value if the key has
/// none.
#[inline]
pub fn take<K, T: Fillable>(map: &mut dyn Put<K, T>, key: &K) -> T {
    map.take_value(key).unwrap_or_else(T::empty)
}

/// Inserts a value that was filled.
#[inline]
pub fn put_back<K, T>(map: &mut dyn Put<K, T>, key: K, value: T) {
    map.put_value(key, value);
}
