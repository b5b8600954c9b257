//! Types in one table, referring to each other by number, so that types can be recursive.

use std::collections::BTreeMap;

use serde_json::Value;

/// Number of a type in its [`Table`].
pub(crate) type Id = usize;

/// Types that refer to each other.
#[derive(Debug)]
pub(crate) struct Table {
    nodes: Vec<Node>,
}

/// One type, with its name in OpenAPI documents when it has one.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Option<Box<str>>,
    pub(crate) shape: Shape,
}

/// What values of a type look like.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Anything: maps merge key by key, lists are atomic.
    Any,
    /// A scalar, with the OpenAPI format.
    Scalar(Scalar, Option<Box<str>>),
    /// A list of a type.
    List(ListKind, Id),
    /// A map.
    Object(Object),
}

/// Kinds of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Integer,
    Number,
    Boolean,
    /// An integer or a string.
    IntOrString,
    /// `x-kubernetes-int-or-string`: the same, but apply lets anything pass.
    IntOrStringExtension,
    /// `resource.Quantity`: a string or a number.
    Quantity,
}

/// How a list merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// As a whole; `false` when the schema does not say so.
    Atomic(bool),
    /// A set of scalars.
    Set,
    /// A map, by the values of these fields.
    Map(Vec<String>),
}

impl ListKind {
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self, ListKind::Atomic(_))
    }
}

/// A map with known fields, other keys, or both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// Type of the values of other keys; `None`: there must be none.
    pub(crate) element: Option<Id>,
    /// Other keys are only tolerated because nothing is said about them; pruning removes them.
    pub(crate) implied: bool,
    /// Merges as a whole.
    pub(crate) atomic: bool,
}

/// A field of an [`Object`].
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) node: Id,
    pub(crate) required: bool,
    pub(crate) default: Option<Value>,
    pub(crate) written: Written,
    pub(crate) strategy: Strategy,
    /// The field says how its map merges, unlike its type.
    pub(crate) map_type: Option<&'static str>,
}

/// What is written for a field that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Its default, if that is zero; null when it is required.
    Default,
    /// Null.
    Null,
    /// Nothing.
    Never,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) replace: bool,
    pub(crate) key: Option<Box<str>>,
}

/// How to treat one value of a type: deduced from the value where the type allows several.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    Map(&'a Object),
    /// A list and the type of its items.
    List(&'a ListKind, Id),
    Scalar(Option<Scalar>),
}

impl Kind<'_> {
    /// Are both maps, both lists or both scalars?
    pub(crate) fn same(&self, other: &Kind<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

static FREE: Object =
    Object { fields: BTreeMap::new(), element: Some(Table::ANY), implied: false, atomic: false };
static ATOMIC: ListKind = ListKind::Atomic(true);

impl Table {
    /// The type of anything; every table starts with it.
    pub(crate) const ANY: Id = 0;

    pub(crate) fn new() -> Table {
        Table { nodes: vec![Node { name: None, shape: Shape::Any }] }
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        // Ids come from the table itself; an unknown one reads as "anything".
        self.nodes.get(id).unwrap_or(&self.nodes[Self::ANY])
    }

    pub(crate) fn shape(&self, id: Id) -> &Shape {
        &self.node(id).shape
    }

    pub(crate) fn add(&mut self, name: Option<Box<str>>, shape: Shape) -> Id {
        self.nodes.push(Node { name, shape });
        self.nodes.len() - 1
    }

    pub(crate) fn set(&mut self, id: Id, shape: Shape) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.shape = shape;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The map's fields when the type is a map.
    pub(crate) fn object(&self, id: Id) -> Option<&Object> {
        match self.shape(id) {
            Shape::Object(object) => Some(object),
            _ => None,
        }
    }

    /// How to treat `value` (absent: by the type alone).
    pub(crate) fn kind(&self, id: Id, value: Option<&Value>) -> Kind<'_> {
        match self.shape(id) {
            Shape::Object(object) => Kind::Map(object),
            Shape::List(kind, items) => Kind::List(kind, *items),
            Shape::Scalar(scalar, _) => Kind::Scalar(Some(*scalar)),
            Shape::Any => match value {
                Some(Value::Array(_)) => Kind::List(&ATOMIC, Self::ANY),
                None | Some(Value::Object(_) | Value::Null) => Kind::Map(&FREE),
                Some(_) => Kind::Scalar(None),
            },
        }
    }

    /// The type of a map's key; `None` when the map must not have it.
    pub(crate) fn child(object: &Object, key: &str) -> Option<Id> {
        object.fields.get(key).map(|field| field.node).or(object.element)
    }

    /// Copies a type and what it needs from another table.
    pub(crate) fn import(&mut self, from: &Table, id: Id, seen: &mut BTreeMap<Id, Id>) -> Id {
        if id == Self::ANY {
            return Self::ANY;
        }
        if let Some(known) = seen.get(&id) {
            return *known;
        }
        let node = from.node(id).clone();
        let new = self.add(node.name, Shape::Any);
        seen.insert(id, new);
        let shape = match node.shape {
            Shape::List(kind, items) => Shape::List(kind, self.import(from, items, seen)),
            Shape::Object(mut object) => {
                for field in object.fields.values_mut() {
                    field.node = self.import(from, field.node, seen);
                }
                object.element = object.element.map(|id| self.import(from, id, seen));
                Shape::Object(object)
            }
            other => other,
        };
        self.set(new, shape);
        new
    }
}
