//! Steps from an object to the values of a field.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::Segment;
use super::names::{FieldSource, JsonName, TypeOf};

/// The values that a path has reached, or only their type.
pub struct Walk<'a, T> {
    found: FoundValues<'a, T>,
    /// The names on the way, or the reason for a missing name; `None` unless the caller wants
    /// names.
    names: Option<Box<Result<Vec<Segment>, String>>>,
}

/// References to values; a list only if the path passes one.
enum FoundValues<'a, T> {
    Nothing,
    One(&'a T),
    Many(Vec<&'a T>),
}

impl<T> fmt::Debug for Walk<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("names", &self.names).finish_non_exhaustive()
    }
}

impl<'a, T> Walk<'a, T> {
    /// Begins at an object.
    pub fn of(object: &'a T) -> Self {
        Self { found: FoundValues::One(object), names: None }
    }

    /// Begins without an object, and collects names.
    pub fn types() -> Self {
        Self { found: FoundValues::Nothing, names: Some(Box::new(Ok(Vec::new()))) }
    }

    /// The type at which the walk is.
    pub fn container(&self) -> TypeOf<T> {
        TypeOf::new()
    }

    /// Goes to a field.
    pub fn field<R: FieldRef<'a>>(
        self,
        source: FieldSource,
        rust: &'static str,
        get: impl Fn(&'a T) -> R,
    ) -> R::Walk {
        let name = || {
            source(rust).map(|name| match name {
                JsonName::Named(name) => Some(Segment::Field(name.to_owned())),
                JsonName::Flattened => None,
            })
        };
        R::walk(self.named(name).mapped(|value| get(value).reference()))
    }

    /// Goes to a field whose name does not matter.
    pub fn step<R: FieldRef<'a>>(self, get: impl Fn(&'a T) -> R) -> R::Walk {
        R::walk(self.mapped(|value| get(value).reference()))
    }

    /// Stays at an option behind which a path has a `?`.
    #[must_use]
    pub fn marked<C: Marked + 'a>(self) -> Self
    where
        Self: SameAs<Walk<'a, C>>,
    {
        self
    }

    /// Goes to each element of a list or value of a map.
    pub fn each<C: Items + 'a>(self) -> C::Each<'a>
    where
        Self: SameAs<Walk<'a, C>>,
    {
        C::each(self.same())
    }

    /// Goes to an element of a list.
    pub fn item<C: ListItems + 'a>(self, place: usize) -> C::Item<'a>
    where
        Self: SameAs<Walk<'a, C>>,
    {
        C::item(self.same(), place)
    }

    /// Goes to a value of a map.
    pub fn key<C: MapEntries + 'a>(self, name: &'static str) -> C::Value<'a>
    where
        Self: SameAs<Walk<'a, C>>,
    {
        C::key(self.same(), name)
    }

    /// Goes to each key of a map.
    pub fn keys<C: Keys + 'a>(self) -> C::Key<'a>
    where
        Self: SameAs<Walk<'a, C>>,
    {
        C::keys(self.same())
    }

    /// Goes to each value of a map.
    pub fn values<C: Keys + 'a>(self) -> C::Value<'a>
    where
        Self: SameAs<Walk<'a, C>>,
    {
        C::values(self.same())
    }

    /// Returns the values.
    pub fn into_values(self) -> Vec<&'a T> {
        match self.found {
            FoundValues::Nothing => Vec::new(),
            FoundValues::One(value) => vec![value],
            FoundValues::Many(values) => values,
        }
    }

    /// Whether the walk has reached the same values as the other walk.
    pub fn has_values_of(&self, other: &Self) -> bool
    where
        T: PartialEq,
    {
        match (&self.found, &other.found) {
            (FoundValues::Nothing, FoundValues::Nothing) => true,
            (FoundValues::One(one), FoundValues::One(other)) => one == other,
            (FoundValues::Many(these), FoundValues::Many(others)) => these == others,
            _ => false,
        }
    }

    /// Calls `each` with the values.
    pub fn for_each(self, mut each: impl FnMut(&'a T)) {
        match self.found {
            FoundValues::Nothing => {}
            FoundValues::One(value) => each(value),
            FoundValues::Many(values) => values.into_iter().for_each(each),
        }
    }

    /// Returns the names on the way.
    ///
    /// # Errors
    /// The field whose name is not known.
    pub fn segments(self) -> Result<Vec<Segment>, String> {
        self.names.map_or_else(|| Ok(Vec::new()), |names| *names)
    }

    fn named(mut self, name: impl FnOnce() -> Result<Option<Segment>, String>) -> Self {
        if let Some(names) = self.names.as_deref_mut()
            && let Ok(segments) = names
        {
            match name() {
                Ok(segment) => segments.extend(segment),
                // The first fault counts.
                Err(why) => *names = Err(why),
            }
        }
        self
    }

    fn mapped<U>(self, get: impl Fn(&'a T) -> &'a U) -> Walk<'a, U> {
        let found = match self.found {
            FoundValues::Nothing => FoundValues::Nothing,
            FoundValues::One(value) => FoundValues::One(get(value)),
            FoundValues::Many(values) => FoundValues::Many(values.into_iter().map(get).collect()),
        };
        Walk { found, names: self.names }
    }

    fn optional<U>(self, get: impl Fn(&'a T) -> Option<&'a U>) -> Walk<'a, U> {
        let found = match self.found {
            FoundValues::Nothing => FoundValues::Nothing,
            FoundValues::One(value) => get(value).map_or(FoundValues::Nothing, FoundValues::One),
            FoundValues::Many(values) => {
                FoundValues::Many(values.into_iter().filter_map(get).collect())
            }
        };
        Walk { found, names: self.names }
    }

    fn several<U>(self, get: impl Fn(&'a T) -> Vec<&'a U>) -> Walk<'a, U> {
        let found = match self.found {
            FoundValues::Nothing => FoundValues::Nothing,
            FoundValues::One(value) => FoundValues::Many(get(value)),
            FoundValues::Many(values) => {
                FoundValues::Many(values.into_iter().flat_map(get).collect())
            }
        };
        Walk { found, names: self.names }
    }
}

// The methods `inner` of these types come before the method of the trait, which leaves all others
// as they are. Generated code calls `inner` several times: an option may hold a box.

impl<'a, T> Walk<'a, Option<T>> {
    /// Goes into the option.
    pub fn inner(self) -> Walk<'a, T> {
        self.optional(Option::as_ref)
    }
}

impl<'a, T> Walk<'a, Box<T>> {
    /// Goes into the box.
    pub fn inner(self) -> Walk<'a, T> {
        self.mapped(|value| &**value)
    }
}

impl<'a, T> Walk<'a, Arc<T>> {
    /// Goes to the shared value.
    pub fn inner(self) -> Walk<'a, T> {
        self.mapped(|value| &**value)
    }
}

impl<'a, T> Walk<'a, Rc<T>> {
    /// Goes to the shared value.
    pub fn inner(self) -> Walk<'a, T> {
        self.mapped(|value| &**value)
    }
}

/// Types that are no option and no box.
pub trait Inner: Sized {
    /// Stays at the value.
    #[must_use]
    fn inner(self) -> Self {
        self
    }
}

impl<T> Inner for Walk<'_, T> {}

// Steps return an associated type instead of `Walk<'a, …>`. Behind a field that does not exist the
// compiler then has no type of the next receiver, and reports the field alone; of a `Walk` of an
// unknown type it would report every method `inner` as well.

/// Holds only for two equal types. A method with a bound on a separate parameter, which
/// this trait makes the same as the parameter of the type, reports the bound with the trait's text
/// (E0277); with a bound on the parameter of the type the method would not exist (E0599).
pub trait SameAs<T> {
    /// The same value.
    fn same(self) -> T;
}

impl<T> SameAs<T> for T {
    fn same(self) -> T {
        self
    }
}

/// References to fields.
pub trait FieldRef<'a> {
    /// Type of the field.
    type Field: 'a;
    /// Walk at the field.
    type Walk;
    /// The reference.
    fn reference(self) -> &'a Self::Field;
    /// The walk.
    fn walk(walk: Walk<'a, Self::Field>) -> Self::Walk;
}

impl<'a, U> FieldRef<'a> for &'a U {
    type Field = U;
    type Walk = Walk<'a, U>;

    fn reference(self) -> &'a U {
        self
    }

    fn walk(walk: Walk<'a, U>) -> Walk<'a, U> {
        walk
    }
}

/// Options, and pointers to options: a path may have a `?` behind them.
#[diagnostic::on_unimplemented(
    message = "`?` stands behind an option, and this field is a `{Self}`",
    label = "leave it out",
    note = "a path goes through options by itself"
)]
pub trait Marked {}

#[diagnostic::do_not_recommend]
impl<T> Marked for Option<T> {}
#[diagnostic::do_not_recommend]
impl<T: Marked> Marked for Box<T> {}
#[diagnostic::do_not_recommend]
impl<T: Marked> Marked for Arc<T> {}
#[diagnostic::do_not_recommend]
impl<T: Marked> Marked for Rc<T> {}

/// Lists, sets and maps: `[]` leads to each element or value.
#[diagnostic::on_unimplemented(
    message = "`[]` stands behind a list, a set or a map, and this field is a `{Self}`",
    label = "this field is a `{Self}`"
)]
pub trait Items: Sized {
    /// Walk at an element, or at a value of a map.
    type Each<'a>
    where
        Self: 'a;
    /// Goes to each element or value.
    fn each(walk: Walk<'_, Self>) -> Self::Each<'_>;
}

/// Lists: `[0]` leads to a single element.
#[diagnostic::on_unimplemented(
    message = "`[0]` stands behind a list, and this field is a `{Self}`",
    label = "this field is a `{Self}`"
)]
pub trait ListItems: Sized {
    /// Walk at an element.
    type Item<'a>
    where
        Self: 'a;
    /// Goes to the element at this position.
    fn item(walk: Walk<'_, Self>, place: usize) -> Self::Item<'_>;
}

/// Maps by texts: `["name"]` leads to a single value.
#[diagnostic::on_unimplemented(
    message = "`[\"…\"]` stands behind a map of texts, and this field is a `{Self}`",
    label = "this field is a `{Self}`"
)]
pub trait MapEntries: Sized {
    /// Walk at a value.
    type Value<'a>
    where
        Self: 'a;
    /// Goes to the value under this name.
    fn key<'a>(walk: Walk<'a, Self>, name: &'static str) -> Self::Value<'a>;
}

/// Maps: `.keys()` and `.values()` lead to each of them.
#[diagnostic::on_unimplemented(
    message = "`.keys()` and `.values()` stand behind a map, and this field is a `{Self}`",
    label = "this field is a `{Self}`"
)]
pub trait Keys: Sized {
    /// Walk at a key.
    type Key<'a>
    where
        Self: 'a;
    /// Walk at a value.
    type Value<'a>
    where
        Self: 'a;
    /// Goes to each key.
    fn keys(walk: Walk<'_, Self>) -> Self::Key<'_>;
    /// Goes to each value.
    fn values(walk: Walk<'_, Self>) -> Self::Value<'_>;
}

macro_rules! items {
    ($([$($parameters:tt)*] $collection:ty, $item:ty, $get:ident;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($parameters)*> Items for $collection {
            type Each<'a> = Walk<'a, $item> where Self: 'a;

            fn each(walk: Walk<'_, Self>) -> Walk<'_, $item> {
                walk.named(|| Ok(Some(Segment::Each))).several(|all| all.$get().collect())
            }
        }
    )*};
}
items! {
    [T] Vec<T>, T, iter;
    [T] VecDeque<T>, T, iter;
    [T] BTreeSet<T>, T, iter;
    [T, S] HashSet<T, S>, T, iter;
    [T, const N: usize] [T; N], T, iter;
    [K, V] BTreeMap<K, V>, V, values;
    [K, V, S] HashMap<K, V, S>, V, values;
}

macro_rules! list_items {
    ($([$($parameters:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($parameters)*> ListItems for $list {
            type Item<'a> = Walk<'a, T> where Self: 'a;

            fn item(walk: Walk<'_, Self>, place: usize) -> Walk<'_, T> {
                walk.named(|| Ok(Some(Segment::Item(place)))).optional(|list| list.get(place))
            }
        }
    )*};
}
list_items! { [T] Vec<T>; [T] VecDeque<T>; [T, const N: usize] [T; N]; }

macro_rules! map_entries {
    ($([$($parameters:tt)*] $map:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($parameters)*> MapEntries for $map {
            type Value<'a> = Walk<'a, V> where Self: 'a;

            fn key<'a>(walk: Walk<'a, Self>, name: &'static str) -> Walk<'a, V> {
                let named = walk.named(|| Ok(Some(Segment::Field(name.to_owned()))));
                named.optional(|map| map.get(name))
            }
        }
    )*};
}
map_entries! { [V] BTreeMap<String, V>; [V, S: std::hash::BuildHasher] HashMap<String, V, S>; }

macro_rules! keys {
    ($([$($parameters:tt)*] $map:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($parameters)*> Keys for $map {
            type Key<'a> = Walk<'a, K> where Self: 'a;
            type Value<'a> = Walk<'a, V> where Self: 'a;

            fn keys(walk: Walk<'_, Self>) -> Walk<'_, K> {
                let named = walk.named(|| Err("`.keys()` has no place in JSON".to_owned()));
                named.several(|map| map.keys().collect())
            }

            fn values(walk: Walk<'_, Self>) -> Walk<'_, V> {
                walk.named(|| Ok(Some(Segment::Each))).several(|map| map.values().collect())
            }
        }
    )*};
}
keys! { [K, V] BTreeMap<K, V>; [K, V, S] HashMap<K, V, S>; }
