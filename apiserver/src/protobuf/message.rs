//! The messages of the built-in types: which field has which number and form.
//!
//! They are read once per process from the marks of `typed/builtin.types`, which
//! `tests/kube-apiserver/record-wire` wrote there from the tags of the Go types:
//!
//! ```text
//! MARK    PATH[-][*|[|{]LETTER
//! PATH    number of the field; with the number of an embedded type before it: 2.19
//! -       JSON omits the zero value; *: pointer; [: list; {: map with text as keys
//! LETTER  s b i l d y    text, boolean, int32, int64, double, bytes (base64 in JSON)
//!         m              a message, the type of the field
//!         t u q x        Time, MicroTime, Quantity, IntOrString
//!         r f            a message with JSON in field 1: RawExtension or JSON, FieldsV1
//!         e              a message with texts in field 1
//!         B A S          JSONSchemaProps or a boolean, a list of them, a list of texts
//! ```

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::typed::{Id, ObjectType, TypeSchema, TypeShape, TypeTable, TypedField};

/// Last part of the name of the type that schemas are made of.
const SCHEMA: &str = ".apiextensions.v1.JSONSchemaProps";

/// Prefix of the names of shared types.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Prefix of the names of types of aggregated discovery.
const DISCOVERY: &str = "io.k8s.api.apidiscovery.v2.";

/// All messages.
#[derive(Debug)]
pub(super) struct Messages {
    /// The message of each type by number in the table; `None` for types that are no messages.
    all: Vec<Option<Message>>,
    /// Types by name, as far as looked up by name.
    names: BTreeMap<&'static str, Id>,
}

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    /// Name of the Go type, for errors.
    pub(super) name: &'static str,
    /// The fields, sorted by number.
    pub(super) parts: Vec<(u32, MessageField)>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) enum MessageField {
    /// An embedded type, whose fields are fields of the same JSON object.
    Embedded(Message),
    /// A field of the JSON object.
    Field(FieldForm),
}

/// Form of a field.
#[derive(Debug)]
pub(super) struct FieldForm {
    /// Name in JSON.
    pub(super) name: &'static str,
    /// Whether JSON omits the zero value.
    pub(super) omits_zero: bool,
    /// The number of values.
    pub(super) count: Count,
    /// Form of a value.
    pub(super) form: ProtobufType,
}

/// Number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// A value, which is always written.
    Plain,
    /// A value or none.
    Pointer,
    /// A list.
    List,
    /// A map with texts as keys.
    Map,
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtobufType {
    Text,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Message(Id),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Json,
    Fields,
    Texts,
    SchemaOrBool,
    SchemaOrList,
    SchemaOrTexts,
}

/// Returns the messages; made once per process.
pub(super) fn messages() -> &'static Messages {
    static MESSAGES: OnceLock<Messages> = OnceLock::new();
    MESSAGES.get_or_init(|| Messages::of(TypeSchema::builtin_table()))
}

impl Messages {
    /// Reads the marks of a table.
    fn of(table: &'static TypeTable) -> Self {
        let mut messages = Self { all: Vec::with_capacity(table.len()), names: BTreeMap::new() };
        for id in 0..table.len() {
            let name = table.node(id).name.as_deref().unwrap_or_default();
            let looked_up = name.starts_with(META) || name.starts_with(DISCOVERY);
            if looked_up || name.ends_with(SCHEMA) {
                messages.names.entry(name.rsplit('.').next().unwrap_or(name)).or_insert(id);
            }
            let message = match table.shape(id) {
                TypeShape::Object(object) => Message::of(table, name, object),
                _ => None,
            };
            messages.all.push(message);
        }
        messages
    }

    /// Returns the message of a type.
    pub(super) fn get(&self, id: Id) -> Option<&Message> {
        self.all.get(id).and_then(Option::as_ref)
    }

    /// Returns the message of a shared type, of a type of discovery, or that of schemas.
    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.names.get(name).and_then(|id| self.get(*id))
    }

    /// Returns the message of a kind; `None` if there is none, as for custom resources.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        match (api_version, kind) {
            // Every group has a separate name for the same type.
            (_, "DeleteOptions") => self.named(kind),
            ("" | "v1", "APIGroup" | "APIGroupList" | "APIResourceList" | "APIVersions")
            | ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList") => self.named(kind),
            (
                "meta.k8s.io/v1" | "meta.k8s.io/v1beta1",
                "PartialObjectMetadata" | "PartialObjectMetadataList",
            ) => self.named(kind),
            _ => TypeSchema::builtin(api_version, kind).and_then(|found| self.get(found.root())),
        }
    }
}

impl Message {
    /// Reads the marks of a type; `None` without marks.
    fn of(table: &TypeTable, name: &'static str, object: &'static ObjectType) -> Option<Self> {
        let short = name.rsplit('.').next().unwrap_or(name);
        let mut message = Self { name: short, parts: Vec::new() };
        for (name, field) in &object.fields {
            message.add(table, name, field);
        }
        message.sort();
        (!message.parts.is_empty()).then_some(message)
    }

    /// Adds a field, if marked.
    fn add(&mut self, table: &TypeTable, name: &'static str, field: &TypedField) -> Option<()> {
        let split = field.wire.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (path, rest) = field.wire.split_at(split);
        let (omits_zero, rest) = match rest.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (count, letter) = match rest.split_at(rest.len().saturating_sub(1)) {
            ("*", letter) => (Count::Pointer, letter),
            ("[", letter) => (Count::List, letter),
            ("{", letter) => (Count::Map, letter),
            (_, letter) => (Count::Plain, letter),
        };
        let form = form(letter, value_type(table, field.node, count))?;
        let numbers: Vec<u32> = path.split('.').filter_map(|number| number.parse().ok()).collect();
        let (first, rest) = numbers.split_first()?;
        self.place(*first, rest, FieldForm { name, omits_zero, count, form });
        Some(())
    }

    /// Puts a field at its place, within embedded types if more numbers follow.
    fn place(&mut self, number: u32, rest: &[u32], form: FieldForm) {
        let Some((inner, rest)) = rest.split_first() else {
            self.parts.push((number, MessageField::Field(form)));
            return;
        };
        let held = self.parts.iter_mut().find_map(|(held, part)| match part {
            MessageField::Embedded(message) if *held == number => Some(message),
            _ => None,
        });
        if let Some(message) = held {
            message.place(*inner, rest, form);
        } else {
            let mut message = Self { name: self.name, parts: Vec::new() };
            message.place(*inner, rest, form);
            self.parts.push((number, MessageField::Embedded(message)));
        }
    }

    /// Sorts the fields by number.
    fn sort(&mut self) {
        self.parts.sort_by_key(|(number, _)| *number);
        for (_, part) in &mut self.parts {
            if let MessageField::Embedded(message) = part {
                message.sort();
            }
        }
    }

    /// Returns a field by number.
    pub(super) fn part(&self, number: u32) -> Option<&MessageField> {
        let at = self.parts.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.parts.get(at).map(|(_, part)| part)
    }
}

/// Returns the type of a field's values, for a list or a map of the items.
fn value_type(table: &TypeTable, node: Id, count: Count) -> Id {
    match (count, table.shape(node)) {
        (Count::List, TypeShape::List(_, items)) => *items,
        (Count::Map, TypeShape::Object(object)) => object.element.unwrap_or(TypeTable::ANY),
        _ => node,
    }
}

/// Returns the form that a letter stands for.
fn form(letter: &str, node: Id) -> Option<ProtobufType> {
    Some(match letter {
        "s" => ProtobufType::Text,
        "b" => ProtobufType::Bool,
        "i" => ProtobufType::Int32,
        "l" => ProtobufType::Int64,
        "d" => ProtobufType::Double,
        "y" => ProtobufType::Bytes,
        "m" => ProtobufType::Message(node),
        "t" => ProtobufType::Time,
        "u" => ProtobufType::MicroTime,
        "q" => ProtobufType::Quantity,
        "x" => ProtobufType::IntOrString,
        "r" => ProtobufType::Json,
        "f" => ProtobufType::Fields,
        "e" => ProtobufType::Texts,
        "B" => ProtobufType::SchemaOrBool,
        "A" => ProtobufType::SchemaOrList,
        "S" => ProtobufType::SchemaOrTexts,
        _ => return None,
    })
}
