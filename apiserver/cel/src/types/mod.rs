//! Types of expressions and variables. No dependencies.

mod display;
mod relation;
pub mod shape;

use std::sync::Arc;

/// The type of an expression, as the checker knows it.
///
/// Cheap to clone. The display of a type is the one that messages of cel-go's checker print:
/// `list(string)`, `map(string, int)`, `optional_type(int)`, `timestamp`, `null`, `wrapper(int)`;
/// [`Type::declared`] prints the names of declarations instead, [`Type::name`] is the name at run
/// time.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Any value; the check is left to evaluation.
    Dyn,
    /// `google.protobuf.Any`: as [`Type::Dyn`], but nothing that a macro can go through
    Any,
    /// The type of an expression that has an issue already; agrees with every type.
    Error,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`, 64 bits
    Int,
    /// `uint`, 64 bits
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `list(T)`
    List(Arc<Type>),
    /// `map(K, V)`
    Map(Arc<Type>, Arc<Type>),
    /// A primitive or null: `wrapper(int)`; a nullable field of a schema has one.
    Wrapper(Arc<Type>),
    /// An object with declared fields; two are the same type if their names are.
    Object(Arc<ObjectType>),
    /// A type of a library with its parameters: `optional_type(T)`, `kubernetes.Quantity`,
    /// `net.IP`.
    Opaque(Arc<str>, Arc<[Type]>),
    /// A parameter of a declaration, or a variable of inference.
    Param(Arc<str>),
    /// The type of a type: `type(int)`; without content the type of an unknown type.
    Type(Option<Arc<Type>>),
}

/// An object type: a name and its fields.
#[derive(Debug)]
pub struct ObjectType {
    /// Name in messages and of `type(x)`; for the root of a resource `Object`, below it
    /// `Object.spec`.
    pub name: Arc<str>,
    /// The fields by the name an expression uses (escaped: `__dot__`), sorted by name.
    pub fields: Vec<(Arc<str>, FieldType)>,
}

/// A field of an object type.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldType {
    /// Its type.
    pub ty: Type,
    /// Largest number of elements or characters, for the cost estimate; `None` without a bound.
    pub max_size: Option<u64>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &ObjectType) -> bool {
        self.name == other.name
    }
}
