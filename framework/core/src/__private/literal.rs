//! Functions for `object!`: from the name of a field to the place of its value.
//!
//! The macro knows names and not types. It writes `this.spec` as it stands, so that the compiler
//! checks the name at its token, and asks [`Slot`] for the value behind an option. The methods of
//! `Slot` for certain types are inherent; for every other type the method of the same name in
//! [`AnySlot`] is found, because inherent ones come first.

mod keys;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::resource::FieldValue;

pub use keys::{CommonKeys, Entries, Finish, MapFields};

/// [`Default`], with an error text of its own for the compiler.
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

/// The place of a field's value.
#[derive(Debug)]
pub struct Slot<'a, T>(pub &'a mut T);

impl<'a, T> Slot<'a, Option<T>> {
    /// The value behind the option, which is made if there is none.
    #[inline]
    pub fn open(self) -> &'a mut T
    where
        T: Fillable,
    {
        self.0.get_or_insert_with(T::empty)
    }

    /// The place behind the option.
    #[inline]
    pub fn some(self) -> Slot<'a, T>
    where
        T: Fillable,
    {
        Slot(self.open())
    }

    /// Sets the field.
    #[inline]
    pub fn set<How, V: OptionValue<T, How>>(self, value: V) {
        *self.0 = value.into_option();
    }
}

/// The methods of [`Slot`] for types that need no treatment of their own.
pub trait AnySlot<'a, T>: Sized {
    /// The value itself.
    fn open(self) -> &'a mut T;

    /// The place itself.
    fn some(self) -> Slot<'a, T>;

    /// Sets the field.
    fn set<V: FieldValue<T>>(self, value: V);

    /// The value, whose fields have the names that `keys` has.
    fn enter<K, const N: usize>(self, keys: K, entries: Entries<K, (), N>) -> &'a mut T;

    /// As [`enter`](Self::enter), for keys that are common.
    fn enter_common(self) -> &'a mut T;

    /// Fails to compile, because the type is no list.
    fn list(self, capacity: usize) -> &'a mut T
    where
        T: List;

    /// Fails to compile, because the type is no map.
    fn map(self) -> &'a mut T
    where
        T: Map;
}

impl<'a, T> AnySlot<'a, T> for Slot<'a, T> {
    #[inline]
    fn open(self) -> &'a mut T {
        self.0
    }

    #[inline]
    fn some(self) -> Slot<'a, T> {
        self
    }

    #[inline]
    fn set<V: FieldValue<T>>(self, value: V) {
        *self.0 = value.into_field();
    }

    #[inline]
    fn enter<K, const N: usize>(self, _: K, _: Entries<K, (), N>) -> &'a mut T {
        self.0
    }

    #[inline]
    fn enter_common(self) -> &'a mut T {
        self.0
    }

    #[inline]
    fn list(self, capacity: usize) -> &'a mut T
    where
        T: List,
    {
        *self.0 = T::with_capacity(capacity);
        self.0
    }

    #[inline]
    fn map(self) -> &'a mut T
    where
        T: Map,
    {
        self.0
    }
}

/// A value for a field that is an `Option<T>`. `How` separates values from options of values: the
/// compiler finds the one that fits.
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
pub enum Perhaps {}

#[diagnostic::do_not_recommend]
impl<T, V: FieldValue<T>> OptionValue<T, Present> for V {
    #[inline]
    fn into_option(self) -> Option<T> {
        Some(self.into_field())
    }
}

#[diagnostic::do_not_recommend]
impl<T, V: FieldValue<T>> OptionValue<T, Perhaps> for Option<V> {
    #[inline]
    fn into_option(self) -> Option<T> {
        self.map(V::into_field)
    }
}

/// A type that an integer literal becomes.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` takes no integer",
    label = "expected a value for `{Self}`"
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

/// A list.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` is no list",
    label = "`[…]` is for lists"
)]
pub trait List {
    /// Its items.
    type Item;
    /// Returns an empty list.
    fn with_capacity(capacity: usize) -> Self;
    /// Appends an item.
    fn add(&mut self, item: Self::Item);
}

impl<T> List for Vec<T> {
    type Item = T;

    #[inline]
    fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }

    #[inline]
    fn add(&mut self, item: T) {
        self.push(item);
    }
}

impl<T: Ord> List for BTreeSet<T> {
    type Item = T;

    fn with_capacity(_: usize) -> Self {
        Self::new()
    }

    fn add(&mut self, item: T) {
        self.insert(item);
    }
}

/// Returns a new item of the list, to fill.
#[inline]
pub fn item<L: List<Item: Fillable>>(_: &L) -> L::Item {
    L::Item::empty()
}

/// Returns a new item of the list that starts from a value.
#[inline]
pub fn item_from<L: List>(_: &L, value: impl FieldValue<L::Item>) -> L::Item {
    value.into_field()
}

/// Appends a value.
#[inline]
pub fn add<L: List, V: FieldValue<L::Item>>(list: &mut L, value: V) {
    list.add(value.into_field());
}

/// Appends an item that was filled.
#[inline]
pub fn add_item<L: List>(list: &mut L, item: L::Item) {
    list.add(item);
}

/// Appends each value.
#[inline]
pub fn extend<L: List, I: IntoIterator<Item: FieldValue<L::Item>>>(list: &mut L, values: I) {
    values.into_iter().for_each(|value| list.add(value.into_field()));
}

/// A map.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no map",
    label = "keys in quotes or parentheses are for maps"
)]
pub trait Map {
    /// Its keys.
    type Key;
    /// Its values.
    type Value;
    /// Inserts or replaces a value.
    fn put(&mut self, key: Self::Key, value: Self::Value);
    /// Removes a value, or returns a new one.
    fn take(&mut self, key: &Self::Key) -> Self::Value
    where
        Self::Value: Fillable;
}

impl<K: Ord, V> Map for BTreeMap<K, V> {
    type Key = K;
    type Value = V;

    #[inline]
    fn put(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take(&mut self, key: &K) -> V
    where
        V: Fillable,
    {
        self.remove(key).unwrap_or_else(V::empty)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Map for HashMap<K, V, S> {
    type Key = K;
    type Value = V;

    #[inline]
    fn put(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take(&mut self, key: &K) -> V
    where
        V: Fillable,
    {
        self.remove(key).unwrap_or_else(V::empty)
    }
}

/// Returns the key of a map.
#[inline]
pub fn key<M: Map>(_: &M, key: impl FieldValue<M::Key>) -> M::Key {
    key.into_field()
}

/// Inserts a value.
#[inline]
pub fn put<M: Map, V: FieldValue<M::Value>>(map: &mut M, key: M::Key, value: V) {
    map.put(key, value.into_field());
}

/// Inserts an integer literal.
#[inline]
pub fn put_integer<M: Map>(map: &mut M, key: M::Key, value: <M::Value as Integer>::Literal)
where
    M::Value: Integer,
{
    map.put(key, integer(value));
}

/// Removes the value of a key, to fill it and put it back; a new value if there is none.
#[inline]
pub fn take<M: Map<Value: Fillable>>(map: &mut M, key: &M::Key) -> M::Value {
    map.take(key)
}

/// Inserts a value that was filled.
#[inline]
pub fn put_back<M: Map>(map: &mut M, key: M::Key, value: M::Value) {
    map.put(key, value);
}

/// Inserts each pair.
#[inline]
pub fn put_all<M, K, V>(map: &mut M, pairs: impl IntoIterator<Item = (K, V)>)
where
    M: Map,
    K: FieldValue<M::Key>,
    V: FieldValue<M::Value>,
{
    pairs.into_iter().for_each(|(key, value)| map.put(key.into_field(), value.into_field()));
}
