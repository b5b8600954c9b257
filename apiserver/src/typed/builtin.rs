//! Types of built-in kinds, read from `builtin.types`.
//!
//! The file was written by `tests/kube-apiserver/record-types.py` from the OpenAPI documents of a
//! running kube-apiserver, and by `tests/kube-apiserver/record-wire` from the Go types. Each line
//! is a type:
//!
//! ```text
//! NAME[^] [=apiVersion,kind] FIELD…      a map; ^: atomic
//! NAME :TYPE                             a name for another type
//! FIELD  name[!?]:TYPE[=default][|strategy[:merge key]][#mark]
//!        !: required; ?: not written when unset, whatever the default
//!        mark: form in protobuf, see `protobuf/message.rs`
//! TYPE   s i n b [<format>]   string, integer, number, boolean
//!        x q * o              int-or-string, quantity, anything, object without known fields
//!        [.]T [=]T [a,b]T []T list: atomic, set, map by a and b, unsaid (atomic)
//!        {}T {.}T             map with values of T; atomic
//!        @NAME ^@NAME ~@NAME  another type; as atomic; as mergeable
//! ```
//!
//! The default `null` means no default: the field is written, as null, even if unset.
//!
//! In names `&`, `+` and `%` stand for the prefixes in [`PREFIXES`].

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::TypeSchema;
use super::table::{
    Id, ListMerge, ObjectType, ScalarType, Strategy, TypeShape, TypeTable, TypedField, UnsetValue,
};

/// The file.
static TEXT: &str = include_str!("builtin.types");

/// Prefixes of type names, by the character that stands for them.
const PREFIXES: [(char, &str); 3] = [
    ('&', "io.k8s.apimachinery.pkg.apis.meta."),
    ('+', "io.k8s.apimachinery.pkg."),
    ('%', "io.k8s.api."),
];

/// Name of the type of metadata.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All built-in types, with the kinds among them.
struct Builtin {
    table: Arc<TypeTable>,
    kinds: BTreeMap<(&'static str, &'static str), Arc<TypeSchema>>,
    object_meta: Id,
}

/// Returns the type of a built-in kind.
pub(super) fn find(api_version: &str, kind: &str) -> Option<Arc<TypeSchema>> {
    builtin().kinds.get(&(api_version, kind)).cloned()
}

/// Returns all built-in kinds, sorted.
pub(super) fn kinds() -> Vec<(String, String)> {
    builtin().kinds.keys().map(|(v, k)| ((*v).to_owned(), (*k).to_owned())).collect()
}

/// Returns the table of all built-in types and the type of metadata in it.
pub(super) fn object_meta() -> (&'static TypeTable, Id) {
    let all = builtin();
    (&all.table, all.object_meta)
}

/// Returns the table of all built-in types.
pub(super) fn table() -> &'static TypeTable {
    &builtin().table
}

/// Returns the built-in types; parsed once per process.
fn builtin() -> &'static Builtin {
    static BUILTIN: OnceLock<Builtin> = OnceLock::new();
    BUILTIN.get_or_init(|| parse(TEXT))
}

/// Parses the file.
fn parse(text: &'static str) -> Builtin {
    let mut reader =
        TypeParser { table: TypeTable::new(), names: BTreeMap::new(), overrides: Vec::new() };
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    // Names first: a type may refer to one that comes later in the file.
    for (name, _) in &lines {
        let name = name.trim_end_matches('^');
        let id = reader.table.add(Some(full_name(name)), TypeShape::Any);
        reader.names.insert(name, id);
    }
    let mut found = Vec::new();
    for (name, rest) in &lines {
        if let Some((api_version, kind, id)) = reader.line(name, rest) {
            found.push((api_version, kind, id));
        }
    }
    // After all lines: an override copies the shape of the target.
    reader.apply_overrides();
    let meta = PREFIXES[0].1.len();
    // In the file names are abbreviated.
    let object_meta = reader.names.get(format!("&{}", &OBJECT_META[meta..]).as_str()).copied();
    let table = Arc::new(reader.table);
    let kinds = found
        .into_iter()
        .map(|(api_version, kind, id)| {
            let schema = TypeSchema::new(Arc::clone(&table), id, Some(kind.to_owned()), true);
            ((api_version, kind), Arc::new(schema))
        })
        .collect();
    Builtin { table, kinds, object_meta: object_meta.unwrap_or(TypeTable::ANY) }
}

/// Returns a type's name with the prefix spelled out.
fn full_name(name: &str) -> Box<str> {
    for (sign, prefix) in PREFIXES {
        if let Some(rest) = name.strip_prefix(sign) {
            return format!("{prefix}{rest}").into();
        }
    }
    name.into()
}

/// State of the parser.
struct TypeParser {
    table: TypeTable,
    names: BTreeMap<&'static str, Id>,
    /// Uses of a type that differ from it in being atomic or not.
    overrides: Vec<(Id, Id, bool)>,
}

impl TypeParser {
    /// Reads a type; returns its apiVersion and kind if present.
    fn line(
        &mut self,
        name: &'static str,
        rest: &'static str,
    ) -> Option<(&'static str, &'static str, Id)> {
        let (name, atomic) = match name.strip_suffix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let id = *self.names.get(name)?;
        if let Some(alias) = rest.strip_prefix(':') {
            let shape = self.shape(alias).0;
            self.table.set(id, shape);
            return None;
        }
        let mut object = ObjectType { atomic, ..ObjectType::default() };
        let mut kind = None;
        for word in rest.split(' ') {
            if let Some(gvk) = word.strip_prefix('=') {
                kind = gvk.split_once(',');
            } else if let Some((name, field)) = self.field(word) {
                object.fields.insert(name.into(), field);
            }
        }
        self.table.set(id, TypeShape::Object(object));
        kind.map(|(api_version, kind)| (api_version, kind, id))
    }

    /// Reads a field.
    fn field(&mut self, word: &'static str) -> Option<(&'static str, TypedField)> {
        let (name, rest) = word.split_once(':')?;
        let required = name.ends_with('!');
        let omitted = name.ends_with('?');
        let name = name.trim_end_matches(['!', '?']);
        let map_type = match rest.chars().next() {
            Some('^') => Some("atomic"),
            Some('~') => Some("granular"),
            _ => None,
        };
        let (rest, wire) = rest.rsplit_once('#').unwrap_or((rest, ""));
        let (node, rest) = self.type_of(rest);
        let (default, strategy) = match rest.split_once('|') {
            Some((default, strategy)) => (default, read_strategy(strategy)),
            None => (rest, Strategy::default()),
        };
        let default: Option<Value> =
            default.strip_prefix('=').and_then(|text| serde_json::from_str(text).ok());
        let written = match &default {
            Some(Value::Null) => UnsetValue::Null,
            _ if omitted => UnsetValue::Never,
            _ => UnsetValue::Default,
        };
        // Null only says how an unset field is written.
        let default = default.filter(|default| !default.is_null());
        Some((name, TypedField { node, required, default, written, strategy, map_type, wire }))
    }

    /// Returns the number of the type at the beginning of `text`, and the text behind that type.
    fn type_of(&mut self, text: &'static str) -> (Id, &'static str) {
        for (sign, atomic) in [("^@", true), ("~@", false)] {
            if let Some(name) = text.strip_prefix(sign) {
                let (name, rest) = split_name(name);
                let Some(target) = self.names.get(name).copied() else {
                    return (TypeTable::ANY, rest);
                };
                // Filled in by `apply_overrides`, when the target has a shape.
                let id = self.table.add(Some(full_name(name)), TypeShape::Any);
                self.overrides.push((id, target, atomic));
                return (id, rest);
            }
        }
        if let Some(name) = text.strip_prefix('@') {
            let (name, rest) = split_name(name);
            return (self.names.get(name).copied().unwrap_or(TypeTable::ANY), rest);
        }
        if let Some(rest) = text.strip_prefix('*') {
            return (TypeTable::ANY, rest);
        }
        let (shape, rest) = self.shape(text);
        (self.table.add(None, shape), rest)
    }

    /// Reads a shape, and returns the text behind it.
    fn shape(&mut self, text: &'static str) -> (TypeShape, &'static str) {
        let (sign, rest) = text.split_at(text.len().min(1));
        match sign {
            "[" => {
                let (kind, rest) = rest.split_once(']').unwrap_or((rest, ""));
                let kind = match kind {
                    "" => ListMerge::Atomic(false),
                    "." => ListMerge::Atomic(true),
                    "=" => ListMerge::Set,
                    keys => ListMerge::Map(keys.split(',').map(str::to_owned).collect()),
                };
                let (items, rest) = self.type_of(rest);
                (TypeShape::List(kind, items), rest)
            }
            "{" => {
                let (atomic, rest) = rest.split_once('}').unwrap_or((rest, ""));
                let (element, rest) = self.type_of(rest);
                let object = ObjectType {
                    element: Some(element),
                    atomic: atomic == ".",
                    ..ObjectType::default()
                };
                (TypeShape::Object(object), rest)
            }
            "o" => {
                let object = ObjectType { element: Some(TypeTable::ANY), ..ObjectType::default() };
                (TypeShape::Object(object), rest)
            }
            sign => scalar(sign, rest),
        }
    }

    /// Resolves the overrides, once all types have their shape.
    fn apply_overrides(&mut self) {
        for (id, target, atomic) in std::mem::take(&mut self.overrides) {
            if let TypeShape::Object(object) = self.table.shape(target) {
                let object = ObjectType { atomic, ..object.clone() };
                self.table.set(id, TypeShape::Object(object));
            }
        }
    }
}

/// Reads a scalar with the format.
fn scalar(sign: &str, rest: &'static str) -> (TypeShape, &'static str) {
    let scalar = match sign {
        "s" => ScalarType::String,
        "i" => ScalarType::Integer,
        "n" => ScalarType::Number,
        "b" => ScalarType::Boolean,
        "x" => ScalarType::IntOrString,
        "q" => ScalarType::Quantity,
        _ => return (TypeShape::Any, rest),
    };
    match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((format, rest)) => (TypeShape::Scalar(scalar, Some(format.into())), rest),
        None => (TypeShape::Scalar(scalar, None), rest),
    }
}

/// Splits behind a type's name, which ends at a default or a strategy.
fn split_name(text: &'static str) -> (&'static str, &'static str) {
    text.split_at(text.find(['=', '|']).unwrap_or(text.len()))
}

/// Reads a merge strategy with the key.
fn read_strategy(text: &str) -> Strategy {
    let (names, key) = text.split_once(':').unwrap_or((text, ""));
    let mut strategy =
        Strategy { key: (!key.is_empty()).then(|| key.into()), ..Strategy::default() };
    for name in names.split(',') {
        match name {
            "merge" => strategy.merge = true,
            "retainKeys" => strategy.retain_keys = true,
            "replace" => strategy.replace = true,
            _ => {}
        }
    }
    strategy
}
