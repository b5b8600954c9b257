//! Questions to serde: may a field of this type be absent, may it be null?
//!
//! `Option` in any spelling says yes to both, and so do a `Box` around it and a type that is
//! `transparent`. A macro sees the spelling only; the type's own `Deserialize` is certain.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Whether serde accepts an object without the field.
pub(super) fn may_be_absent<T: DeserializeOwned>() -> bool {
    T::deserialize(Nothing { is_null: false }).is_ok()
}

/// Whether serde accepts null as the value.
pub(super) fn may_be_null<T: DeserializeOwned>() -> bool {
    T::deserialize(Nothing { is_null: true }).is_ok()
}

/// The value of an absent field, as serde's derive passes it to the field's type; or null.
struct Nothing {
    is_null: bool,
}

impl<'de> Deserializer<'de> for Nothing {
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

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
