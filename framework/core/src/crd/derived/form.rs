//! The form in JSON of a type's values: object, list, map, or any.
//!
//! A macro sees the spelling only. A deserializer records the first method that the type's
//! `Deserialize` calls, and then fails.

// DESIGN.md, 272: The form of a kept value is asked of `Deserialize`

use std::cell::RefCell;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// Most lists, maps and options, one inside of another, that are looked into: a type may contain
/// itself.
const DEPTH: usize = 4;

/// The form of a type's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum JsonForm {
    /// A value of another form, or of several.
    #[default]
    Any,
    /// Fields with these names.
    Object(&'static [&'static str]),
    List(Box<Self>),
    Map(Box<Self>),
    /// A value of that form, or null.
    Nullable(Box<Self>),
}

impl JsonForm {
    /// Whether nothing is known of a value that is not null.
    pub(super) fn is_any(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Nullable(form) => form.is_any(),
            Self::Object(_) | Self::List(_) | Self::Map(_) => false,
        }
    }
}

/// Returns the form of the values that serde reads as `T`.
pub(super) fn of<T: DeserializeOwned>() -> JsonForm {
    let form = RefCell::new(JsonForm::Any);
    let _ = T::deserialize(FormRecorder { form: &form, depth: DEPTH });
    form.into_inner()
}

/// The value whose form is recorded.
struct FormRecorder<'a> {
    form: &'a RefCell<JsonForm>,
    /// Lists, maps and options that may still be looked into.
    depth: usize,
}

fn no_value<T>() -> Result<T, Error> {
    Err(Error::custom("there is no value: the form was asked for"))
}

impl FormRecorder<'_> {
    /// Records a list or a map around the form that `read` finds.
    fn record<T>(
        &self,
        around: fn(Box<JsonForm>) -> JsonForm,
        read: impl FnOnce(SingleElement<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let inside = RefCell::new(JsonForm::Any);
        let outcome = match self.depth.checked_sub(1) {
            Some(depth) => read(SingleElement { form: &inside, depth, is_read: false }),
            None => no_value(),
        };
        *self.form.borrow_mut() = around(Box::new(inside.into_inner()));
        outcome
    }
}

impl<'de> Deserializer<'de> for FormRecorder<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        no_value()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let form = self.form;
        let outcome = match self.depth.checked_sub(1) {
            Some(depth) => visitor.visit_some(FormRecorder { form, depth }),
            None => no_value(),
        };
        let inner = form.take();
        *form.borrow_mut() = JsonForm::Nullable(Box::new(inner));
        outcome
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.record(JsonForm::List, |inside| visitor.visit_seq(inside))
    }

    // The values of a tuple may differ in their forms.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        self.record(JsonForm::List, |_| no_value())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Error> {
        self.record(JsonForm::List, |_| no_value())
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.record(JsonForm::Map, |inside| visitor.visit_map(inside))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.form.borrow_mut() = JsonForm::Object(names);
        no_value()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct enum identifier ignored_any
    }
}

/// The only value of a list or map.
struct SingleElement<'a> {
    form: &'a RefCell<JsonForm>,
    depth: usize,
    is_read: bool,
}

impl SingleElement<'_> {
    fn value<'de, T: DeserializeSeed<'de>>(&self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(FormRecorder { form: self.form, depth: self.depth })
    }
}

impl<'de> SeqAccess<'de> for SingleElement<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        self.value(seed).map(Some)
    }
}

impl<'de> MapAccess<'de> for SingleElement<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        seed.deserialize(AnyKey).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        self.value(seed)
    }
}

/// A key that most types of keys read.
struct AnyKey;

/// Methods for keys that `serde_json` reads from the text of a key.
macro_rules! keys {
    ($($method:ident)*: $visit:ident($value:expr)) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit($value)
        }
    )* };
}

impl<'de> Deserializer<'de> for AnyKey {
    type Error = Error;

    keys! { deserialize_any: visit_str("x") }
    keys! { deserialize_bool: visit_bool(true) }
    keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128: visit_u8(1)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        enum identifier ignored_any
    }
}
