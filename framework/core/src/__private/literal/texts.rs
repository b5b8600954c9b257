//! Texts in the `data` of a type that is called `Secret`.
//!
//! The macro knows the name of the type alone. The methods for bytes are inherent and come first,
//! so that a type of a user's own with other values has the errors of its own type.

// DESIGN.md, 293: `object!` takes no text for bytes

use k8s_openapi::ByteString;

use super::{OptionMarker, Present, Put, Slot};
use crate::resource::FieldValue;

/// A text for bytes; there is none.
#[diagnostic::on_unimplemented(
    message = "a field of type `ByteString` takes no text",
    label = "the `data` of this type has bytes",
    note = "in a manifest such texts are base64: write bytes, `b\"…\"`; `stringData` of a Kubernetes Secret takes the text itself"
)]
pub trait TextForBytes {
    /// The bytes, which are never there.
    fn bytes(self) -> ByteString;
}

impl Slot<'_, Option<ByteString>> {
    /// An error that says how bytes are written.
    pub fn set_text<V: TextForBytes>(self, text: V) {
        *self.0 = Some(text.bytes());
    }
}

/// The entries of `data`.
#[allow(missing_debug_implementations, reason = "the map is known by its trait alone")]
pub struct Texts<'a, K, V>(pub &'a mut dyn Put<K, V>);

impl<K> Texts<'_, K, ByteString> {
    /// An error that says how bytes are written.
    pub fn put_text<V: TextForBytes>(self, key: K, text: V) {
        self.0.put_value(key, text.bytes());
    }
}

/// Entries that are no bytes.
pub trait AnyTexts<K, T> {
    /// Inserts a text.
    fn put_text<How>(self, key: K, text: &'static str)
    where
        T: TextOfData<How>;
}

impl<K, T> AnyTexts<K, T> for Texts<'_, K, T> {
    #[inline]
    fn put_text<How>(self, key: K, text: &'static str)
    where
        T: TextOfData<How>,
    {
        self.0.put_value(key, T::of_text(text));
    }
}

/// A type that a text becomes.
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` takes no text",
    label = "expected a value for `{Self}`"
)]
pub trait TextOfData<How> {
    /// Converts the text.
    fn of_text(text: &'static str) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T> TextOfData<Present> for T
where
    &'static str: FieldValue<T>,
{
    #[inline]
    fn of_text(text: &'static str) -> Self {
        text.into_field()
    }
}

#[diagnostic::do_not_recommend]
impl<T> TextOfData<OptionMarker> for Option<T>
where
    &'static str: FieldValue<T>,
{
    #[inline]
    fn of_text(text: &'static str) -> Self {
        Some(text.into_field())
    }
}
