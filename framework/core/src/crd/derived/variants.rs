//! The schema of an enum, variant by variant, in each of serde's forms.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::keys::{Keys, SchemaNode, object_of};
use super::shape::FieldSchema;

/// The place of a variant's name in JSON.
#[derive(Clone, Copy, Debug)]
pub enum Tagging {
    /// `{"Name": content}`, or `"Name"`.
    External,
    /// `{"tag": "Name", …content}`
    Internal(&'static str),
    /// `{"tag": "Name", "content": content}`
    Adjacent(&'static str, &'static str),
    /// `content`
    Untagged,
}

/// An enum schema under construction.
#[derive(Debug)]
pub struct Variants<'g> {
    generator: &'g mut SchemaGenerator,
    tagging: Tagging,
    closed: bool,
    /// Names of external variants without content and remarks, which become one `enum`.
    names: Vec<Value>,
    branches: Vec<SchemaNode>,
    /// Whether several branches may match.
    overlap: bool,
}

impl<'g> Variants<'g> {
    /// Begins an enum; with `closed`, serde refuses fields that a variant does not have.
    pub fn new(generator: &'g mut SchemaGenerator, tagging: Tagging, closed: bool) -> Self {
        let overlap = matches!(tagging, Tagging::Untagged);
        Self { generator, tagging, closed, names: Vec::new(), branches: Vec::new(), overlap }
    }

    /// Adds a variant without content and without keys.
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        match self.tagging {
            Tagging::External => {
                self.names.push(name.into());
                self
            }
            _ => self.unit(name),
        }
    }

    /// Adds a variant without content.
    #[must_use]
    pub fn unit(mut self, name: &'static str) -> Self {
        let null = object_of(self.generator.subschema_for::<()>());
        let node = match self.tagging {
            Tagging::External => object_of(json_schema!({ "type": "string", "const": name })),
            Tagging::Internal(tag) => internal(null, tag, name, self.closed),
            Tagging::Adjacent(tag, _) => adjacent(None, tag, name, self.closed),
            Tagging::Untagged => null,
        };
        self.branches.push(SchemaNode(node));
        self
    }

    /// Adds a variant.
    #[must_use]
    pub fn variant(
        mut self,
        name: &'static str,
        content: impl FnOnce(Content<'_>) -> Schema,
    ) -> Self {
        let is_internal = matches!(self.tagging, Tagging::Internal(_));
        let content = self.content(content, is_internal);
        let node = match self.tagging {
            Tagging::External => object_of(json_schema!({
                "type": "object",
                "properties": { name: content },
                "required": [name],
                "additionalProperties": false,
            })),
            Tagging::Internal(tag) => internal(object_of(content), tag, name, self.closed),
            Tagging::Adjacent(tag, key) => adjacent(Some((key, content)), tag, name, self.closed),
            Tagging::Untagged => object_of(content),
        };
        self.branches.push(SchemaNode(node));
        self
    }

    /// Adds a variant that serde tries without a tag.
    #[must_use]
    pub fn untagged(mut self, content: impl FnOnce(Content<'_>) -> Schema) -> Self {
        self.overlap = true;
        let content = self.content(content, false);
        self.branches.push(SchemaNode(object_of(content)));
        self
    }

    /// The schema of a content.
    fn content(
        &mut self,
        content: impl FnOnce(Content<'_>) -> Schema,
        is_internal: bool,
    ) -> Schema {
        content(Content { generator: self.generator, closed: self.closed, is_internal })
    }

    /// Returns the finished schema.
    #[must_use]
    pub fn finish(self) -> Schema {
        let Self { names, branches, overlap, .. } = self;
        let names = (!names.is_empty()).then(|| json!({ "type": "string", "enum": names }));
        if branches.is_empty() {
            return names.and_then(|names| names.try_into().ok()).unwrap_or(false.into());
        }
        let branches = branches.into_iter().map(|branch| Value::Object(branch.0));
        let branches: Vec<Value> = names.into_iter().chain(branches).collect();
        let key = if overlap { "anyOf" } else { "oneOf" };
        json_schema!({ key: branches })
    }

    /// Ends the variants: further keys apply to the enum.
    #[must_use]
    pub fn whole(self) -> SchemaNode {
        SchemaNode(object_of(self.finish()))
    }
}

impl Keys for Variants<'_> {
    fn node(&mut self) -> &mut Map<String, Value> {
        if self.branches.is_empty() {
            self.branches.push(SchemaNode::default());
        }
        let last = self.branches.len() - 1;
        &mut self.branches[last].0
    }
}

/// The content of a variant, or of a tuple struct.
#[derive(Debug)]
pub struct Content<'g> {
    generator: &'g mut SchemaGenerator,
    closed: bool,
    is_internal: bool,
}

impl<'g> Content<'g> {
    /// The content of a struct that is no enum's variant.
    pub fn of_struct(generator: &'g mut SchemaGenerator) -> Self {
        Self { generator, closed: false, is_internal: false }
    }

    /// No value: null.
    #[must_use]
    pub fn unit(self) -> Schema {
        self.generator.subschema_for::<()>()
    }

    /// One value.
    #[must_use]
    pub fn newtype(self, shape: FieldSchema) -> SchemaNode {
        let schema = if self.is_internal { shape.inline } else { shape.schema };
        SchemaNode(object_of(schema(self.generator)))
    }

    /// Several values without names.
    #[must_use]
    pub fn tuple(self) -> TupleItems<'g> {
        TupleItems { generator: self.generator, items: Vec::new(), least: None }
    }

    /// Values with names.
    #[must_use]
    pub fn fields(self) -> Fields<'g> {
        Fields::new(self.generator, self.closed)
    }
}

/// A tuple schema under construction.
#[derive(Debug)]
pub struct TupleItems<'g> {
    generator: &'g mut SchemaGenerator,
    items: Vec<SchemaNode>,
    /// Number of values without which serde refuses a list, if they are not all.
    least: Option<usize>,
}

impl TupleItems<'_> {
    /// Serde reads a list that ends here: the values behind have defaults.
    #[must_use]
    pub fn may_end(mut self) -> Self {
        if !self.generator.contract().is_serialize() {
            self.least = Some(self.items.len());
        }
        self
    }

    /// Adds a value.
    #[must_use]
    pub fn value(mut self, shape: FieldSchema) -> Self {
        self.items.push(SchemaNode(object_of((shape.schema)(self.generator))));
        self
    }

    /// Ends the values: further keys apply to the tuple.
    #[must_use]
    pub fn whole(self) -> SchemaNode {
        let mut node = Map::new();
        node.insert("type".to_owned(), "array".into());
        let count = self.items.len();
        if count > 0 {
            let items: Vec<Value> = self.items.into_iter().map(|item| item.0.into()).collect();
            node.insert("prefixItems".to_owned(), items.into());
            node.insert("minItems".to_owned(), self.least.unwrap_or(count).into());
        }
        node.insert("maxItems".to_owned(), count.into());
        SchemaNode(node)
    }

    /// Returns the finished schema.
    #[must_use]
    pub fn finish(self) -> Schema {
        self.whole().finish()
    }
}

impl Keys for TupleItems<'_> {
    fn node(&mut self) -> &mut Map<String, Value> {
        if self.items.is_empty() {
            self.items.push(SchemaNode::default());
        }
        let last = self.items.len() - 1;
        &mut self.items[last].0
    }
}

/// Puts the tag among the fields of the content.
fn internal(
    mut node: Map<String, Value>,
    tag: &str,
    name: &str,
    closed: bool,
) -> Map<String, Value> {
    let is_unit = node.get("type").is_some_and(|name| name == "null");
    node.insert("type".to_owned(), "object".into());
    let mut properties = Map::new();
    properties.insert(tag.to_owned(), json!({ "type": "string", "const": name }));
    if let Some(Value::Object(fields)) = node.remove("properties") {
        properties.extend(fields.into_iter().filter(|(key, _)| key != tag));
    }
    node.insert("properties".to_owned(), properties.into());
    if let Value::Array(required) = node.entry("required").or_insert_with(|| json!([])) {
        required.insert(0, tag.into());
    }
    if closed && is_unit {
        node.entry("additionalProperties").or_insert(false.into());
    }
    node
}

/// Puts tag and content side by side; a unit variant has no content.
fn adjacent(
    content: Option<(&str, Schema)>,
    tag: &str,
    name: &str,
    closed: bool,
) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert(tag.to_owned(), json!({ "type": "string", "const": name }));
    let mut required = vec![Value::from(tag)];
    if let Some((key, content)) = content {
        properties.insert(key.to_owned(), content.to_value());
        required.push(key.into());
    }
    let mut node = Map::new();
    node.insert("type".to_owned(), "object".into());
    node.insert("properties".to_owned(), properties.into());
    node.insert("required".to_owned(), required.into());
    if closed {
        node.insert("additionalProperties".to_owned(), false.into());
    }
    node
}
