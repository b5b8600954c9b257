//! From JSON to bytes: the same bytes that Go would write after reading the JSON into Go types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::{Count, FieldForm, Message, MessageField, ProtobufType, messages};
use super::special;
use super::wire::{put_bytes, put_double, put_inner, put_number};

/// Appends the fields of a message, in the order of their numbers.
pub(super) fn message(out: &mut Vec<u8>, message: &Message, object: &Value) {
    for (number, part) in &message.parts {
        match part {
            // Always written, even without a field.
            MessageField::Embedded(inner) => {
                put_inner(out, *number, |out| self::message(out, inner, object))
            }
            MessageField::Field(field) => write_field(out, *number, field, &object[field.name]),
        }
    }
}

/// Appends a field; `value` is null if the object lacks it.
fn write_field(out: &mut Vec<u8>, number: u32, field: &FieldForm, value: &Value) {
    // Lists that are messages, and bytes, are unset without a value, although they are no pointers.
    let unset = matches!(field.form, ProtobufType::Bytes | ProtobufType::Texts) && value.is_null();
    match (field.count, value) {
        (Count::Plain, _) if !unset => write_value(out, number, field.form, value),
        (Count::Pointer, Value::Null) => {}
        (Count::Pointer, _) => write_value(out, number, field.form, value),
        (Count::List, Value::Array(items)) => {
            items.iter().for_each(|item| write_value(out, number, field.form, item));
        }
        (Count::Map, Value::Object(map)) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            for (key, value) in entries {
                put_inner(out, number, |out| {
                    put_bytes(out, 1, key.as_bytes());
                    write_value(out, 2, field.form, value);
                });
            }
        }
        _ => {}
    }
}

/// Appends a value; one of another type is written as zero.
fn write_value(out: &mut Vec<u8>, number: u32, form: ProtobufType, value: &Value) {
    match form {
        ProtobufType::Text => put_bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        ProtobufType::Bool => put_number(out, number, value.as_bool().unwrap_or_default().into()),
        ProtobufType::Int32 | ProtobufType::Int64 => put_number(out, number, integer(value)),
        ProtobufType::Double => put_double(out, number, value.as_f64().unwrap_or_default()),
        ProtobufType::Bytes => {
            let text = value.as_str().unwrap_or_default();
            put_bytes(out, number, &STANDARD.decode(text).unwrap_or_default());
        }
        ProtobufType::Message(id) => put_inner(out, number, |out| {
            if let Some(message) = messages().get(id) {
                self::message(out, message, value);
            }
        }),
        form => put_inner(out, number, |out| special::write(out, form, value)),
    }
}

/// Returns an integer as bits, which are 64 even for a negative number.
pub(super) fn integer(value: &Value) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "checked: it has no fraction to lose")]
    let whole = value.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
    value.as_i64().or(whole).unwrap_or_default().cast_unsigned()
}
