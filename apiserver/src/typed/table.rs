//! Types in a table that refer to each other by number, so that types can be recursive.

use std::collections::BTreeMap;

use serde_json::Value;

/// Number of a type in a [`TypeTable`].
pub(crate) type Id = usize;

/// A set of types that refer to each other.
#[derive(Debug)]
pub(crate) struct TypeTable {
    nodes: Vec<TypeNode>,
}

/// A type, with the name in OpenAPI documents, if named.
#[derive(Clone, Debug)]
pub(crate) struct TypeNode {
    /// Name in OpenAPI documents.
    pub(crate) name: Option<Box<str>>,
    pub(crate) shape: TypeShape,
}

/// Shape of a type's values.
#[derive(Clone, Debug)]
pub(crate) enum TypeShape {
    /// Any value: maps merge key by key, lists are atomic.
    Any,
    /// A scalar, with the OpenAPI format.
    Scalar(ScalarType, Option<Box<str>>),
    /// A list of a type.
    List(ListMerge, Id),
    /// A map.
    Object(ObjectType),
}

/// Kinds of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarType {
    String,
    Integer,
    Number,
    Boolean,
    /// An integer or a string.
    IntOrString,
    /// `x-kubernetes-int-or-string`: an integer or a string, but apply lets any value pass.
    IntOrStringExtension,
    /// `resource.Quantity`: a string or a number.
    Quantity,
}

/// Merge behaviour of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListMerge {
    /// Merges as a whole; `false` if the schema does not say so.
    Atomic(bool),
    /// A set of scalars.
    Set,
    /// A map, by the values of these fields.
    Map(Vec<String>),
}

impl ListMerge {
    /// Whether the list merges as a whole.
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self, ListMerge::Atomic(_))
    }
}

/// A map with known fields, other keys, or both.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectType {
    /// Known fields by name.
    pub(crate) fields: BTreeMap<Box<str>, TypedField>,
    /// Type of the values of other keys; `None` if there must be none.
    pub(crate) element: Option<Id>,
    /// Whether other keys are tolerated only because the schema does not mention them; pruning
    /// removes them.
    pub(crate) implied: bool,
    /// Whether the map merges as a whole.
    pub(crate) atomic: bool,
}

/// A field of an [`ObjectType`].
#[derive(Clone, Debug)]
pub(crate) struct TypedField {
    /// Type of the field.
    pub(crate) node: Id,
    /// Whether the schema requires the field.
    pub(crate) required: bool,
    /// Default in the schema.
    pub(crate) default: Option<Value>,
    /// Value that is written for the unset field.
    pub(crate) written: UnsetValue,
    /// Treatment by a strategic merge patch.
    pub(crate) strategy: Strategy,
    /// Merge behaviour of the field's map, if the field gives that instead of the type.
    pub(crate) map_type: Option<&'static str>,
    /// Mark of the field's protobuf form, which `protobuf/message.rs` reads; empty without a mark.
    pub(crate) wire: &'static str,
}

/// Value that is written for an unset field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsetValue {
    /// The default, if that is zero; null if the field is required.
    Default,
    /// Always null.
    Null,
    /// No value.
    Never,
}

/// Treatment of a field by a strategic merge patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strategy {
    /// Lists merge item by item.
    pub(crate) merge: bool,
    /// The patch lists the keys to keep.
    pub(crate) retain_keys: bool,
    /// The patch replaces the value.
    pub(crate) replace: bool,
    /// Field by which the items of a list merge.
    pub(crate) key: Option<Box<str>>,
}

/// Treatment of a value of a type; deduced from the value where the type allows several treatments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueTreatment<'a> {
    Map(&'a ObjectType),
    /// A list and the type of the items.
    List(&'a ListMerge, Id),
    Scalar(Option<ScalarType>),
}

impl ValueTreatment<'_> {
    /// Whether both are maps, both are lists or both are scalars.
    pub(crate) fn same(&self, other: &ValueTreatment<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Map of a value without a type.
static FREE: ObjectType = ObjectType {
    fields: BTreeMap::new(),
    element: Some(TypeTable::ANY),
    implied: false,
    atomic: false,
};
/// List of a value without a type.
static ATOMIC: ListMerge = ListMerge::Atomic(true);

impl TypeTable {
    /// The type of any value; every table starts with it.
    pub(crate) const ANY: Id = 0;

    /// Returns a table that holds only the type of any value.
    pub(crate) fn new() -> TypeTable {
        TypeTable { nodes: vec![TypeNode { name: None, shape: TypeShape::Any }] }
    }

    /// Returns a type by number.
    pub(crate) fn node(&self, id: Id) -> &TypeNode {
        // Numbers come from the table itself; an unknown number is read as "anything".
        self.nodes.get(id).unwrap_or(&self.nodes[Self::ANY])
    }

    /// Returns the shape of a type.
    pub(crate) fn shape(&self, id: Id) -> &TypeShape {
        &self.node(id).shape
    }

    /// Adds a type and returns its number.
    pub(crate) fn add(&mut self, name: Option<Box<str>>, shape: TypeShape) -> Id {
        self.nodes.push(TypeNode { name, shape });
        self.nodes.len() - 1
    }

    /// Sets the shape of a type that was added before it was known.
    pub(crate) fn set(&mut self, id: Id, shape: TypeShape) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.shape = shape;
        }
    }

    /// Returns the number of types.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the fields of a map; `None` if the type is no map.
    pub(crate) fn object(&self, id: Id) -> Option<&ObjectType> {
        match self.shape(id) {
            TypeShape::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the treatment of `value`; without a value that of the type alone.
    pub(crate) fn kind(&self, id: Id, value: Option<&Value>) -> ValueTreatment<'_> {
        match self.shape(id) {
            TypeShape::Object(object) => match value {
                Some(Value::Array(_)) if self.is_raw(id) => {
                    ValueTreatment::List(&ATOMIC, Self::ANY)
                }
                None | Some(Value::Object(_) | Value::Null) => ValueTreatment::Map(object),
                Some(_) if self.is_raw(id) => ValueTreatment::Scalar(None),
                Some(_) => ValueTreatment::Map(object),
            },
            TypeShape::List(kind, items) => ValueTreatment::List(kind, *items),
            TypeShape::Scalar(scalar, _) => ValueTreatment::Scalar(Some(*scalar)),
            TypeShape::Any => match value {
                Some(Value::Array(_)) => ValueTreatment::List(&ATOMIC, Self::ANY),
                None | Some(Value::Object(_) | Value::Null) => ValueTreatment::Map(&FREE),
                Some(_) => ValueTreatment::Scalar(None),
            },
        }
    }

    /// Whether a type is that of objects of any kind, which Go keeps as any text of JSON.
    pub(crate) fn is_raw(&self, id: Id) -> bool {
        self.node(id).name.as_deref() == Some("io.k8s.apimachinery.pkg.runtime.RawExtension")
    }

    /// Returns the type of a map's key; `None` if the map must not have the key.
    pub(crate) fn child(object: &ObjectType, key: &str) -> Option<Id> {
        object.fields.get(key).map(|field| field.node).or(object.element)
    }

    /// Copies a type from another table, with all types that it needs.
    pub(crate) fn import(&mut self, from: &TypeTable, id: Id, seen: &mut BTreeMap<Id, Id>) -> Id {
        if id == Self::ANY {
            return Self::ANY;
        }
        if let Some(known) = seen.get(&id) {
            return *known;
        }
        let node = from.node(id).clone();
        let new = self.add(node.name, TypeShape::Any);
        // Entered before the copy of parts: a recursive type refers to itself.
        seen.insert(id, new);
        let shape = match node.shape {
            TypeShape::List(kind, items) => TypeShape::List(kind, self.import(from, items, seen)),
            TypeShape::Object(mut object) => {
                for field in object.fields.values_mut() {
                    field.node = self.import(from, field.node, seen);
                }
                object.element = object.element.map(|id| self.import(from, id, seen));
                TypeShape::Object(object)
            }
            other => other,
        };
        self.set(new, shape);
        new
    }
}
