//! Types that the last field of a path can have, by the use of the path.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::names::TypeOf;
use super::walk::Walk;

/// Whole numbers.
#[diagnostic::on_unimplemented(
    message = "`scale` counts replicas by a whole number, and this field is a `{Self}`",
    label = "this field is a `{Self}`",
    note = "a number of replicas is an `i32`, or another integer type"
)]
pub trait Replicas {}

macro_rules! replicas {
    ($($number:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Replicas for $number {}
    )*};
}
replicas!(i8 i16 i32 i64 u8 u16 u32 u64 isize usize);

/// Checks that a field counts replicas.
pub fn replicas<T: Replicas>(_: &Walk<'_, T>) {}

/// Texts.
#[diagnostic::on_unimplemented(
    message = "the selector of `scale` is a text, and this field is a `{Self}`",
    label = "this field is a `{Self}`",
    note = "a label selector in its text form: a `String` such as `app=web,tier in (a,b)`"
)]
pub trait SelectorText {}

#[diagnostic::do_not_recommend]
impl SelectorText for String {}

/// Checks that a field holds a selector.
pub fn selector_text<T: SelectorText>(_: &Walk<'_, T>) {}

/// A class of types, found by method resolution on [`TypeOf`]: maybe a scalar, or none.
#[diagnostic::on_unimplemented(
    message = "API servers select by texts, whole numbers and booleans, and this field is a `{T}`",
    label = "this field is a `{T}`"
)]
pub trait ScalarClass<T> {}

/// The class of types that cannot be a scalar in JSON.
#[derive(Clone, Copy, Debug)]
pub struct NoScalar;

/// The class of all others: whether the schema has a scalar is checked by `crd()`.
#[derive(Clone, Copy, Debug)]
pub struct MayBeScalar;

#[diagnostic::do_not_recommend]
impl<T> ScalarClass<T> for MayBeScalar {}

macro_rules! no_scalars {
    ($([$($parameters:tt)*] $type:ty;)*) => {$(
        impl<$($parameters)*> TypeOf<$type> {
            /// The class of this type.
            pub fn scalar_class(&self) -> NoScalar {
                NoScalar
            }
        }
    )*};
}
no_scalars! {
    [T] Vec<T>;
    [T] VecDeque<T>;
    [T] BTreeSet<T>;
    [T, S] HashSet<T, S>;
    [K, V] BTreeMap<K, V>;
    [K, V, S] HashMap<K, V, S>;
    [] f32;
    [] f64;
}

/// The class of types that are not known to be no scalars.
pub trait AnyClass {
    /// The class of this type.
    fn scalar_class(&self) -> MayBeScalar {
        MayBeScalar
    }
}

impl<T> AnyClass for TypeOf<T> {}

/// Checks that a field may be a scalar.
pub fn scalar<T, C: ScalarClass<T>>(_: &Walk<'_, T>, _: C) {}

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident: $([$($parameters:tt)*] $type:ty;)*)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $class;

        #[diagnostic::do_not_recommend]
        impl<D, L> ReadsAs<$class, D, L> for $class {}
        #[diagnostic::do_not_recommend]
        impl<D, L> ReadsAs<AnyJson, D, L> for $class {}

        $(
            impl<$($parameters)*> TypeOf<$type> {
                /// The class of this type in JSON.
                pub fn json_class(&self) -> $class {
                    $class
                }
            }
        )*
    )*};
}

classes! {
    /// Types that are texts in JSON.
    JsonText: [] String; [] std::borrow::Cow<'static, str>;
    /// Types that are numbers in JSON.
    JsonNumber:
        [] i8; [] i16; [] i32; [] i64; [] u8; [] u16; [] u32; [] u64; [] isize; [] usize;
        [] f32; [] f64;
    /// Types that are booleans in JSON.
    JsonBoolean: [] bool;
    /// Types that are lists in JSON.
    JsonList: [T] Vec<T>; [T] VecDeque<T>; [T] BTreeSet<T>; [T, S] HashSet<T, S>;
    /// Types that are maps in JSON.
    JsonMap: [K, V] BTreeMap<K, V>; [K, V, S] HashMap<K, V, S>;
}

/// Types whose JSON is not known from the type alone.
#[derive(Clone, Copy, Debug)]
pub struct AnyJson;

/// The class of all types that have no other.
pub trait OfAnyClass {
    /// The class of this type in JSON.
    fn json_class(&self) -> AnyJson {
        AnyJson
    }
}

impl<T> OfAnyClass for TypeOf<T> {}

/// Classes that can be read from a value of another class.
#[diagnostic::on_unimplemented(
    message = "a `{D}` cannot be read from this path, which leads to a `{L}`",
    label = "the path leads to a `{L}`"
)]
pub trait ReadsAs<Class, D, L> {}

#[diagnostic::do_not_recommend]
impl<Class, D, L> ReadsAs<Class, D, L> for AnyJson {}

/// Checks that a `D` can be read from a field of type `L`.
pub fn reads<D, L, C: ReadsAs<F, D, L>, F>(_: &Walk<'_, D>, _: &Walk<'_, L>, _: C, _: F) {}
