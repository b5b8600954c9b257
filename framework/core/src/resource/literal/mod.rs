//! The conversions of `object!`: from the values that users have to the types that fields have.
//!
//! A conversion never loses anything and never fails. Options do not concern this trait: the macro
//! accepts a value for each field that is an option of the value's type.

mod collections;
mod kubernetes;
mod numbers;
mod texts;

/// A value that `object!` accepts for a field of type `T`.
///
/// Implemented for `T` and for `&T`; for the texts that become a `String`; for numbers that fit
/// without loss; for texts and numbers that become an `IntOrString` or a `Quantity`; for arrays,
/// slices and maps of such values. Each of these types, and an `Option` of the type, is also
/// accepted where a field is an `Option<T>`.
///
/// Implement the trait for a type of your own to write values in a shorter form:
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::FieldValue;
///
/// struct Host(String);
///
/// impl FieldValue<Host> for &str {
///     fn into_field(self) -> Host {
///         Host(self.to_lowercase())
///     }
/// }
///
/// let host: Host = "A.example".into_field();
/// assert_eq!(host.0, "a.example");
/// ```
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` takes no `{Self}`",
    label = "expected a value for `{T}`"
)]
pub trait FieldValue<T> {
    /// Converts the value.
    fn into_field(self) -> T;
}

#[diagnostic::do_not_recommend]
impl<T> FieldValue<T> for T {
    fn into_field(self) -> T {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Clone> FieldValue<T> for &T {
    fn into_field(self) -> T {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<T> FieldValue<Box<T>> for T {
    fn into_field(self) -> Box<T> {
        Box::new(self)
    }
}

/// Implements [`FieldValue`] for pairs of types: `from => to: conversion`.
macro_rules! values {
    ($($from:ty => $to:ty: $convert:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl crate::resource::FieldValue<$to> for $from {
            fn into_field(self) -> $to {
                let convert: fn($from) -> $to = $convert;
                convert(self)
            }
        }
    )*};
}
use values;

#[cfg(test)]
mod tests;
