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
