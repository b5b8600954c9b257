//! Questions to serde: may a field of this type be absent, may the field be null?
//!
//! `Option` in any spelling says yes to both, and so do a `Box` around it and a type that is
//! `transparent`. A macro sees the spelling only; the type's own `Deserialize` is certain.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Whether serde accepts an object without the field.
pub(super) fn may_be_absent<T: DeserializeOwned>() -> bool {
    T::deserialize(AbsentValue { is_null: false }).is_ok()
}

/// Whether serde accepts null as the value.
pub(super) fn may_be_null<T: DeserializeOwned>() -> bool {
    T::deserialize(AbsentValue { is_null: true }).is_ok()
}

/// Whether a type is an option, or an option in a box, by its name.
pub(super) fn is_named_option<T>() -> bool {
    let name = std::any::type_name::<T>();
    name.trim_start_matches("alloc::boxed::Box<").starts_with("core::option::Option<")
}

/// Methods for values of a certain type: as in `serde_json`, null is no such value, whatever the
/// visitor says of `visit_unit` (that of `serde_json::Map` returns an empty map).
macro_rules! refuse {
    ($($method:ident)*) => { $(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom("neither absent nor null is a value of this type"))
        }
    )* };
}

/// The value of an absent field, as serde's derive passes it to the field's type; or null.
struct AbsentValue {
    is_null: bool,
}

impl<'de> Deserializer<'de> for AbsentValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null { visitor.visit_unit() } else { Err(Error::custom("absent")) }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.is_null {
            visitor.visit_newtype_struct(self)
        } else {
            self.deserialize_any(visitor)
        }
    }

    forward_to_deserialize_any! { unit unit_struct ignored_any }

    refuse! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_seq deserialize_map
        deserialize_identifier
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }
}
