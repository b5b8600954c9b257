use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::message::{Count, FieldForm, Message, MessageField, ProtobufType, messages};
use super::*;
use crate::typed::TypeSchema;

/// Objects as Go writes them; `tests/kube-apiserver/record-wire` wrote the file.
static SAMPLES: &str = include_str!("samples.txt");

/// An object in both forms.
struct Sample {
    /// Whether each field has a value other than zero.
    full: bool,
    kind: &'static str,
    bytes: Vec<u8>,
    object: Value,
}

/// Iterates over the samples.
fn samples() -> impl Iterator<Item = Sample> {
    SAMPLES.lines().map(|line| {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [form, kind, bytes, text] = words.try_into().unwrap();
        let bytes = STANDARD.decode(bytes).unwrap();
        Sample { full: form == "full", kind, bytes, object: serde_json::from_str(text).unwrap() }
    })
}

#[test]
fn gos_bytes_are_read_as_the_json_that_go_writes() {
    for Sample { kind, bytes, object, .. } in samples().filter(|sample| sample.full) {
        assert_eq!(decode(&bytes, "", "").unwrap(), object, "{kind}");
    }
}

#[test]
fn objects_are_written_as_the_bytes_that_go_writes() {
    for Sample { kind, bytes, object, .. } in samples() {
        let written = encode(&object).unwrap();
        assert!(written == bytes, "{kind}: {written:x?}\nand not\n{bytes:x?}");
    }
    assert!(samples().count() > 60);
}

#[test]
fn zero_values_are_read_so_that_they_are_written_again() {
    for Sample { kind, bytes, .. } in samples().filter(|sample| !sample.full) {
        let read = decode(&bytes, "", "").unwrap();
        let written = encode(&read).unwrap();
        assert!(written == bytes, "{kind}: {written:x?}\nand not\n{bytes:x?}");
    }
}

/// Makes values with something in each field.
struct Maker {
    /// Makes the values differ.
    count: i32,
    /// Whether the object is within a schema.
    in_schema: bool,
}

impl Maker {
    fn object(&mut self, message: &Message, depth: usize) -> Map<String, Value> {
        let mut fields = Map::new();
        self.fill(message, depth, &mut fields);
        fields
    }

    fn fill(&mut self, message: &Message, depth: usize, fields: &mut Map<String, Value>) {
        for (_, part) in &message.parts {
            match part {
                MessageField::Embedded(inner) => self.fill(inner, depth, fields),
                MessageField::Field(field) => {
                    if let Some(value) = self.field(field, depth) {
                        fields.insert(field.name.to_owned(), value);
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &FieldForm, depth: usize) -> Option<Value> {
        let deep = depth > 9
            && !matches!(field.form, ProtobufType::Text | ProtobufType::Int32 | ProtobufType::Time);
        let value = match field.count {
            // A message that is no pointer is always there.
            Count::Plain => return Some(self.value(field.form, depth)),
            _ if deep => return None,
            Count::Pointer => self.value(field.form, depth),
            Count::List => {
                let items = [self.value(field.form, depth), self.value(field.form, depth)];
                json!(items)
            }
            Count::Map => {
                json!({"b": self.value(field.form, depth), "a/ü": self.value(field.form, depth)})
            }
        };
        Some(value)
    }

    fn message(&mut self, message: Option<&Message>, depth: usize) -> Value {
        let schema = message.is_some_and(|message| message.name == "JSONSchemaProps");
        match message {
            // A schema within a schema would have fifteen schemas, and these likewise.
            Some(message) if !(schema && self.in_schema) => {
                self.in_schema |= schema;
                let object = self.object(message, depth + 1);
                self.in_schema &= !schema;
                object.into()
            }
            _ => json!({}),
        }
    }

    fn value(&mut self, form: ProtobufType, depth: usize) -> Value {
        self.count += 1;
        let count = self.count;
        match form {
            ProtobufType::Text => json!(format!("text {count} ü")),
            ProtobufType::Bool => json!(true),
            ProtobufType::Int32 => json!(if count % 2 == 0 { -count } else { count }),
            ProtobufType::Int64 => json!(i64::from(count) * -5_000_000_000),
            ProtobufType::Double => json!(f64::from(count) + 0.5),
            ProtobufType::Bytes => json!(STANDARD.encode(count.to_le_bytes())),
            ProtobufType::Message(id) => self.message(messages().get(id), depth),
            ProtobufType::Time => json!(format!("2026-01-02T03:04:{:02}Z", count % 60)),
            ProtobufType::MicroTime => {
                json!(format!("1969-12-31T23:59:59.{:06}Z", count % 1_000_000))
            }
            ProtobufType::Quantity => json!(format!("{count}m")),
            ProtobufType::IntOrString if count % 2 == 0 => json!(-count),
            ProtobufType::IntOrString => json!(format!("{count}%")),
            ProtobufType::Fields => json!({"f:a": {".": {}}}),
            ProtobufType::Json => json!({"deep": [count, null, {"x": 1.5}]}),
            ProtobufType::Texts => json!(["a", "", "ü"]),
            ProtobufType::SchemaOrBool if count % 2 == 0 => json!(count % 4 == 0),
            ProtobufType::SchemaOrList if count % 2 == 0 => json!([{"type": "string"}, {}]),
            ProtobufType::SchemaOrTexts if count % 2 == 0 => json!(["a", "b"]),
            ProtobufType::SchemaOrBool
            | ProtobufType::SchemaOrList
            | ProtobufType::SchemaOrTexts => {
                json!({"type": "array", "minLength": 0})
            }
        }
    }
}

#[test]
fn an_object_of_every_built_in_kind_survives_the_round_trip() {
    let mut without = Vec::new();
    for (api_version, kind) in TypeSchema::builtin_kinds() {
        let Some(message) = messages().of_kind(&api_version, &kind) else {
            without.push(kind);
            continue;
        };
        let mut object = Map::new();
        object.insert("kind".to_owned(), kind.clone().into());
        object.insert("apiVersion".to_owned(), api_version.into());
        object.extend(Maker { count: 0, in_schema: false }.object(message, 0));
        let object = Value::Object(object);
        assert_eq!(decode(&encode(&object).unwrap(), "", "").unwrap(), object, "{kind}");
    }
    assert_eq!(without, Vec::<String>::new());
}

#[test]
fn bytes_that_end_early_are_refused_and_never_panic() {
    for Sample { bytes, .. } in samples() {
        // All ends of short objects, some of long objects.
        let step = bytes.len() / 400 + 1;
        for end in (0..bytes.len()).step_by(step) {
            let _: Result<Value, DecodeError> = decode(&bytes[..end], "v1", "Pod");
        }
        let mut broken = bytes.clone();
        for at in (0..bytes.len()).step_by(step) {
            broken[at] ^= 0x55;
            let _: Result<Value, DecodeError> = decode(&broken, "v1", "Pod");
            broken[at] = bytes[at];
        }
    }
}

/// Returns an envelope with the bytes of an object.
fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    wire::put_inner(&mut out, 1, |out| {
        wire::put_bytes(out, 1, api_version.as_bytes());
        wire::put_bytes(out, 2, kind.as_bytes());
    });
    wire::put_bytes(&mut out, 2, raw);
    out
}

/// Returns a field of bytes.
fn inner(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_bytes(&mut out, number, bytes);
    out
}

#[test]
fn an_envelope_without_a_kind_has_the_kind_of_the_path() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(inner(2, &inner(1, &inner(1, b"z"))));
    let read = decode(&bytes, "v1", "ConfigMap").unwrap();
    assert_eq!(read, json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "z"}}));
}

#[test]
fn a_kind_without_messages_is_read_as_its_name() {
    let read = decode(&wrap("g.io/v1", "Widget", b"\x0a\xff"), "v1", "Pod").unwrap();
    assert_eq!(read, json!({"kind": "Widget", "apiVersion": "g.io/v1"}));
    assert_eq!(encode(&read), None);
}

#[test]
fn a_fault_within_the_object_names_the_kind_and_one_around_it_does_not() {
    let fault = decode(&wrap("apps/v1", "Deployment", b"\x0a\xff"), "", "").unwrap_err();
    let kind = Some(("v1".to_owned(), "Deployment".to_owned()));
    assert_eq!(fault, DecodeError { kind, why: "unexpected EOF".to_owned() });
    for (bytes, why) in [
        (&b""[..], "empty data"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\xff", "unexpected EOF"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
    ] {
        let fault = decode(bytes, "v1", "Pod").unwrap_err();
        assert_eq!(fault, DecodeError { kind: None, why: why.to_owned() });
    }
}

#[test]
fn a_message_that_comes_twice_is_merged_and_unknown_fields_are_skipped() {
    let mut raw = inner(1, &inner(1, b"a"));
    raw.extend(inner(1, &inner(3, b"ns")));
    raw.extend(inner(99, b"later"));
    wire::put_number(&mut raw, 98, u64::MAX);
    let read = decode(&wrap("v1", "ConfigMap", &raw), "", "").unwrap();
    assert_eq!(read["metadata"], json!({"name": "a", "namespace": "ns"}));
}

#[test]
fn numbers_of_a_list_may_come_in_one_piece() {
    let spec = inner(2, &inner(14, &inner(4, b"\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")));
    let read = decode(&wrap("v1", "Pod", &spec), "", "").unwrap();
    assert_eq!(read["spec"]["securityContext"]["supplementalGroups"], json!([1, 2, -1]));
}

#[test]
fn schemas_nested_without_end_are_refused() {
    let mut schema = Vec::new();
    for _ in 0..2000 {
        // `not`
        schema = inner(28, &schema);
    }
    // spec, versions, schema, openAPIV3Schema
    let raw = inner(2, &inner(7, &inner(4, &inner(1, &schema))));
    let kind = "CustomResourceDefinition";
    let fault = decode(&wrap("apiextensions.k8s.io/v1", kind, &raw), "", "").unwrap_err();
    assert_eq!(fault.why, "proto: exceeded max nesting depth");
}

#[test]
fn raw_json_may_be_an_envelope_and_must_not_be_junk() {
    let revision = |data: &[u8]| {
        decode(&wrap("apps/v1", "ControllerRevision", &inner(2, &inner(1, data))), "", "")
    };
    let nested = wrap("v1", "ConfigMap", &inner(2, &[inner(1, b"k"), inner(2, b"v")].concat()));
    assert_eq!(
        revision(&nested).unwrap()["data"],
        json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "v"}})
    );
    assert_eq!(revision(b"{\"a\":1}").unwrap()["data"], json!({"a": 1}));
    assert!(revision(b"{").unwrap_err().why.contains("unexpected end of JSON input"));
}

#[test]
fn an_event_of_a_watch_has_its_length_before_it() {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let frame = encode_event("ADDED", &object).unwrap();
    let (length, event) = frame.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, event.len());
    let expected = [inner(1, b"ADDED"), inner(2, &inner(1, &encode(&object).unwrap()))].concat();
    assert_eq!(event, expected);
}
