//! The shape of JSON data under a structural schema: the data with which evaluation reads a value
//! as its declared type.

use std::sync::Arc;

use super::ObjectType;

/// The shape of a JSON value, compiled from a structural schema.
#[derive(Debug, Clone)]
pub enum Shape {
    /// No schema: numbers, texts, lists and maps as they are; an object is a map with `dyn` values.
    Dyn,
    /// `type: boolean`
    Bool,
    /// `type: integer`
    Int,
    /// `type: number`: an integral JSON number, too, reads as a double.
    Double,
    /// `type: string`
    String,
    /// `type: string, format: byte`: base64 in JSON.
    Bytes,
    /// `type: string, format: date-time`, or `date`
    Timestamp,
    /// `type: string, format: duration`
    Duration,
    /// `x-kubernetes-int-or-string: true`
    IntOrString,
    /// `type: array`
    List(Arc<ListShape>),
    /// `type: object` with `additionalProperties`
    Map(Arc<Shape>),
    /// `type: object` with `properties`
    Object(Arc<ObjectShape>),
}

/// The shape of an array.
#[derive(Debug)]
pub struct ListShape {
    /// Shape of the elements.
    pub items: Shape,
    /// Equality and concatenation of the list.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`: how lists are compared and added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    /// Element by element.
    Atomic,
    /// Without order; the sum is the union.
    Set,
    /// By the values of these keys, without order; in a sum the right element replaces the left one
    /// in place.
    Map(Vec<Arc<str>>),
}

/// The shape of an object with declared properties.
#[derive(Debug)]
pub struct ObjectShape {
    /// Type that the checker knows the object by.
    pub ty: Arc<ObjectType>,
    /// The properties, sorted by their names in expressions; one that is not among them cannot be
    /// selected.
    pub properties: Vec<Property>,
}

#[cfg(feature = "eval")]
impl ObjectShape {
    /// Whether there is a property with this name in JSON.
    pub(crate) fn has(&self, json_name: &str) -> bool {
        self.properties.iter().any(|property| *property.json_name == *json_name)
    }
}

/// A property of an object shape.
#[derive(Debug)]
pub struct Property {
    /// Name in JSON: `min-size`.
    pub json_name: Arc<str>,
    /// Name in expressions: `min__dash__size`.
    pub name: Arc<str>,
    /// Its shape.
    pub shape: Shape,
    /// `nullable: true`: null in JSON is a value of the property. Expressions see null as an absent
    /// property, as they do without this keyword.
    pub is_nullable: bool,
}
