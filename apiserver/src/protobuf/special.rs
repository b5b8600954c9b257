//! Types whose message looks other than their JSON: times, quantities, raw JSON, alternatives.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::message::{Message, ProtobufType, messages};
use super::wire::{Reader, WireValue, put_bytes, put_inner, put_number};
use super::{MAGIC, read as reading, write as writing};

/// Seconds since 1970 at the beginning of year 1, Go's zero time.
const ZERO_TIME: i64 = -62_135_596_800;

/// Name of the type of schemas.
const SCHEMA: &str = "JSONSchemaProps";

/// Reads a value of a special form.
pub(super) fn read(form: ProtobufType, bytes: &[u8], depth: usize) -> Result<Value, String> {
    match form {
        ProtobufType::Time => read_time(bytes, false),
        ProtobufType::MicroTime => read_time(bytes, true),
        ProtobufType::Quantity => {
            let fields = UpToFourFields::read("Quantity", 1, bytes)?;
            let text = fields.bytes(1, "String_")?;
            Ok(text.map_or_else(|| "0".into(), |text| String::from_utf8_lossy(text).into()))
        }
        ProtobufType::IntOrString => read_int_or_string(bytes),
        // Owners of fields that cannot be read are no owners.
        ProtobufType::Fields => {
            let raw = UpToFourFields::read("FieldsV1", 1, bytes)?.bytes(1, "Raw")?;
            Ok(serde_json::from_slice(raw.unwrap_or_default()).unwrap_or_default())
        }
        ProtobufType::Json => {
            let raw = UpToFourFields::read("RawExtension", 1, bytes)?.bytes(1, "Raw")?;
            read_json(raw.unwrap_or_default(), depth)
        }
        ProtobufType::Texts => {
            let mut texts = Vec::new();
            let mut reader = Reader::new(bytes);
            while let Some((number, piece)) = reader.next("Items")? {
                if number == 1 { texts.push(piece.text("Items")?.into()) } else { piece.skip()? }
            }
            Ok(Value::Array(texts))
        }
        _ => read_alternative(form, bytes, depth),
    }
}

/// Reads a time; null for Go's zero time.
fn read_time(bytes: &[u8], micro: bool) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let fields = UpToFourFields::read("Timestamp", 2, bytes)?;
    let seconds = fields.number(1, "Seconds")?.cast_signed();
    #[expect(clippy::cast_possible_truncation, reason = "Go keeps the lower bits, too")]
    let nanos = fields.number(2, "Nanos")? as i32;
    // JSON holds whole seconds, or microseconds.
    let nanos = if micro { nanos / 1000 * 1000 } else { 0 };
    if seconds == ZERO_TIME && nanos == 0 {
        return Ok(Value::Null);
    }
    let fault = || "Time.MarshalJSON: year outside of range [0,9999]".to_owned();
    let time = Timestamp::new(seconds, nanos).map_err(|_| fault())?;
    Ok(if micro { format!("{time:.6}") } else { time.to_string() }.into())
}

/// Reads an integer or a text.
fn read_int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let fields = UpToFourFields::read("IntOrString", 3, bytes)?;
    let text = fields.bytes(3, "StrVal")?.unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "Go keeps the lower bits, too")]
    let number = fields.number(2, "IntVal")? as i32;
    Ok(match fields.number(1, "Type")? {
        0 => number.into(),
        _ => String::from_utf8_lossy(text).into(),
    })
}

/// Reads raw JSON, or an object in a separate envelope; null if there are no bytes.
fn read_json(bytes: &[u8], depth: usize) -> Result<Value, String> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    if bytes.starts_with(MAGIC) {
        return reading::Envelope::of(bytes)?.open(depth + 1);
    }
    serde_json::from_slice(bytes).map_err(|why| crate::go::json_error(&why, bytes))
}

/// Reads a schema or the value in its place.
fn read_alternative(form: ProtobufType, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let (mut schema, mut others, mut allows) = (None, Vec::new(), false);
    let mut reader = Reader::new(bytes);
    while let Some((number, piece)) = reader.next("JSONSchemaPropsOr")? {
        match (form, number) {
            (ProtobufType::SchemaOrBool, 1) => allows = piece.varint("Allows")? != 0,
            (ProtobufType::SchemaOrBool, 2) | (_, 1) => schema = Some(read_schema(piece, depth)?),
            (ProtobufType::SchemaOrList, 2) => others.push(read_schema(piece, depth)?),
            (ProtobufType::SchemaOrTexts, 2) => others.push(piece.text("Property")?.into()),
            _ => piece.skip()?,
        }
    }
    Ok(match (form, schema) {
        // Go writes the list if present, and the texts likewise.
        (ProtobufType::SchemaOrBool, None) => allows.into(),
        (_, Some(schema)) if others.is_empty() => schema,
        (_, None) if others.is_empty() => Value::Null,
        _ => Value::Array(others),
    })
}

/// Reads a schema.
fn read_schema(piece: WireValue<'_>, depth: usize) -> Result<Value, String> {
    let mut fields = Map::new();
    if let Some(message) = schema_message() {
        reading::read(message, piece.bytes("Schema")?, &mut fields, depth + 1)?;
    }
    Ok(Value::Object(fields))
}

/// Returns the message of schemas.
fn schema_message() -> Option<&'static Message> {
    messages().named(SCHEMA)
}

/// Appends the message of a value of a special form; null is written as Go's zero value.
pub(super) fn write(out: &mut Vec<u8>, form: ProtobufType, value: &Value) {
    match form {
        ProtobufType::Time | ProtobufType::MicroTime => {
            write_time(out, value, form == ProtobufType::MicroTime)
        }
        ProtobufType::Quantity => {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => "0".to_owned(),
            };
            put_bytes(out, 1, text.as_bytes());
        }
        ProtobufType::IntOrString => {
            let text = value.as_str();
            put_number(out, 1, text.is_some().into());
            put_number(out, 2, writing::integer(value));
            put_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }
        ProtobufType::Json | ProtobufType::Fields => {
            if !value.is_null() {
                put_bytes(out, 1, value.to_string().as_bytes());
            }
        }
        ProtobufType::Texts => {
            for text in value.as_array().into_iter().flatten() {
                put_bytes(out, 1, text.as_str().unwrap_or_default().as_bytes());
            }
        }
        _ => write_alternative(out, form, value),
    }
}

/// Appends a time; nothing for null.
fn write_time(out: &mut Vec<u8>, value: &Value, micro: bool) {
    let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { return };
    let nanos = time.subsec_nanosecond();
    // Times before 1970: the nanoseconds count forward from the whole second.
    let (seconds, nanos) = if nanos < 0 {
        (time.as_second() - 1, nanos + 1_000_000_000)
    } else {
        (time.as_second(), nanos)
    };
    if seconds == ZERO_TIME {
        return;
    }
    let nanos = if micro { nanos / 1000 * 1000 } else { 0 };
    put_number(out, 1, seconds.cast_unsigned());
    put_number(out, 2, i64::from(nanos).cast_unsigned());
}

/// Appends a schema or the value in its place.
fn write_alternative(out: &mut Vec<u8>, form: ProtobufType, value: &Value) {
    let schema = |out: &mut Vec<u8>, number: u32, value: &Value| {
        if let Some(message) = schema_message() {
            put_inner(out, number, |out| writing::message(out, message, value));
        }
    };
    match (form, value) {
        (ProtobufType::SchemaOrBool, Value::Object(_)) => {
            put_number(out, 1, 1);
            schema(out, 2, value);
        }
        (ProtobufType::SchemaOrBool, _) => put_number(out, 1, (*value == Value::Bool(true)).into()),
        (_, Value::Object(_)) => schema(out, 1, value),
        (ProtobufType::SchemaOrList, Value::Array(list)) => {
            list.iter().for_each(|item| schema(out, 2, item));
        }
        (_, Value::Array(list)) => {
            for text in list {
                put_bytes(out, 2, text.as_str().unwrap_or_default().as_bytes());
            }
        }
        _ => {}
    }
}

/// The fields of a message that has few, each at most once.
struct UpToFourFields<'a> {
    pieces: [Option<WireValue<'a>>; 4],
}

impl<'a> UpToFourFields<'a> {
    /// Reads a message whose fields have numbers up to `last`; of a field that comes twice the last
    /// value counts.
    fn read(name: &str, last: usize, bytes: &'a [u8]) -> Result<Self, String> {
        let mut fields = Self { pieces: [const { None }; 4] };
        let mut reader = Reader::new(bytes);
        while let Some((number, piece)) = reader.next(name)? {
            let number = number as usize;
            match fields.pieces.get_mut(number).filter(|_| number <= last) {
                Some(place) => *place = Some(piece),
                None => piece.skip()?,
            }
        }
        Ok(fields)
    }

    /// Returns a number; 0 if the field is absent.
    fn number(&self, number: usize, name: &str) -> Result<u64, String> {
        let piece = self.pieces.get(number).cloned().flatten();
        piece.map_or(Ok(0), |piece| piece.varint(name))
    }

    /// Returns bytes; `None` if the field is absent.
    fn bytes(&self, number: usize, name: &str) -> Result<Option<&'a [u8]>, String> {
        let piece = self.pieces.get(number).cloned().flatten();
        piece.map(|piece| piece.bytes(name)).transpose()
    }
}
