//! From bytes to JSON: the value that Go's types would write after reading the bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::message::{Count, FieldForm, Message, MessageField, ProtobufType, messages};
use super::wire::{Reader, WireValue};
use super::{DEEPEST, MAGIC, bare, special};

/// An envelope whose object has not been read.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    /// apiVersion of the object; may be empty.
    pub(super) api_version: String,
    /// Kind of the object; may be empty.
    pub(super) kind: String,
    /// The object.
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads an envelope.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("empty data".to_owned());
        }
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let text = "provided data does not appear to be a protobuf message, expected prefix";
            return Err(format!("{text} [107 56 115 0]"));
        };
        if rest.is_empty() {
            return Err("empty body".to_owned());
        }
        let mut envelope = Self::default();
        let mut reader = Reader::new(rest);
        while let Some((number, piece)) = reader.next("Unknown")? {
            match number {
                1 => envelope.read_type(piece.bytes("TypeMeta")?)?,
                2 => envelope.raw = piece.bytes("Raw")?,
                // The object is read as protobuf, whatever these fields say, as upstream does.
                3 => drop(piece.bytes("ContentEncoding")?),
                4 => drop(piece.bytes("ContentType")?),
                _ => piece.skip()?,
            }
        }
        Ok(envelope)
    }

    /// Reads kind and version.
    fn read_type(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut reader = Reader::new(bytes);
        while let Some((number, piece)) = reader.next("TypeMeta")? {
            match number {
                1 => self.api_version = piece.text("APIVersion")?,
                2 => self.kind = piece.text("Kind")?,
                _ => piece.skip()?,
            }
        }
        Ok(())
    }

    /// Reads the object.
    pub(super) fn open(&self, depth: usize) -> Result<Value, String> {
        let mut object = bare(&self.api_version, &self.kind);
        let message = messages().of_kind(&self.api_version, &self.kind);
        if let (Some(message), Value::Object(fields)) = (message, &mut object) {
            read(message, self.raw, fields, depth)?;
        }
        Ok(object)
    }
}

/// Reads a message into the fields of an object, which may have some already.
pub(super) fn read(
    message: &Message,
    bytes: &[u8],
    fields: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err("proto: exceeded max nesting depth".to_owned());
    }
    let mut reader = Reader::new(bytes);
    while let Some((number, piece)) = reader.next(message.name)? {
        match message.part(number) {
            Some(MessageField::Embedded(inner)) => {
                read(inner, piece.bytes(message.name)?, fields, depth + 1)?;
            }
            Some(MessageField::Field(field)) => read_field(field, piece, fields, depth)?,
            None => piece.skip()?,
        }
    }
    Ok(())
}

/// Reads an occurrence of a field.
fn read_field(
    field: &FieldForm,
    piece: WireValue<'_>,
    fields: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    match field.count {
        Count::Plain | Count::Pointer => {
            // A message that comes twice is merged, any other value replaced.
            let held = fields.remove(field.name);
            let value = read_value(field, piece, held, depth)?;
            let zero = field.count == Count::Plain && field.omits_zero && is_zero(&value);
            if !value.is_null() && !zero {
                fields.insert(field.name.to_owned(), value);
            }
        }
        Count::List => {
            let list = fields.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                read_items(field, piece, list, depth)?;
            }
        }
        Count::Map => {
            let (key, value) = read_entry(field, piece, depth)?;
            let map = fields.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

/// Reads an item of a list, or many numbers in a single piece.
fn read_items(
    field: &FieldForm,
    piece: WireValue<'_>,
    list: &mut Vec<Value>,
    depth: usize,
) -> Result<(), String> {
    let numeric =
        matches!(field.form, ProtobufType::Int32 | ProtobufType::Int64 | ProtobufType::Bool);
    if let (true, WireValue::Bytes(bytes)) = (numeric, &piece) {
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let number = WireValue::Varint(reader.varint()?);
            list.push(read_value(field, number, None, depth)?);
        }
        return Ok(());
    }
    list.push(read_value(field, piece, None, depth)?);
    Ok(())
}

/// Reads an entry of a map; without a value it has the zero value.
fn read_entry(
    field: &FieldForm,
    piece: WireValue<'_>,
    depth: usize,
) -> Result<(String, Value), String> {
    let mut key = String::new();
    let mut value = None;
    let mut reader = Reader::new(piece.bytes(field.name)?);
    while let Some((number, piece)) = reader.next_of_entry()? {
        match number {
            1 => key = piece.text(field.name)?,
            2 => value = Some(read_value(field, piece, None, depth)?),
            _ => piece.skip()?,
        }
    }
    let value = match value {
        Some(value) => value,
        // All values of maps are texts, bytes or messages.
        None => read_value(field, WireValue::Bytes(b""), None, depth)?,
    };
    Ok((key, value))
}

/// Reads a value; `held` is that of an earlier occurrence.
fn read_value(
    field: &FieldForm,
    piece: WireValue<'_>,
    held: Option<Value>,
    depth: usize,
) -> Result<Value, String> {
    let name = field.name;
    #[expect(clippy::cast_possible_truncation, reason = "Go keeps the lower bits, too")]
    Ok(match field.form {
        ProtobufType::Text => piece.text(name)?.into(),
        ProtobufType::Bool => (piece.varint(name)? != 0).into(),
        ProtobufType::Int32 => (piece.varint(name)? as i32).into(),
        ProtobufType::Int64 => piece.varint(name)?.cast_signed().into(),
        ProtobufType::Double => piece.double(name)?.into(),
        ProtobufType::Bytes => STANDARD.encode(piece.bytes(name)?).into(),
        ProtobufType::Message(id) => {
            let mut fields = match held {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            let bytes = piece.bytes(name)?;
            if let Some(message) = messages().get(id) {
                read(message, bytes, &mut fields, depth + 1)?;
            }
            Value::Object(fields)
        }
        form => special::read(form, piece.bytes(name)?, depth)?,
    })
}

/// Whether JSON omits a value that is not a pointer.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Object(_) => false,
    }
}
