//! The schema of a field's type, found by method resolution.
//!
//! A type parameter of a function cannot ask "is it a Kubernetes type, else does it implement
//! `JsonSchema`?"; an expression about a concrete type can. Among the impls below, the impl with
//! the most references in front of `Of<T>` that applies is taken.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask;
use super::erased::{self, Current};
use super::kept;
use super::merge::of_option;
use crate::crd::kubernetes::KubernetesSchema;
use crate::crd::schema::mark_key_type;

/// The schema of a field's type, and whether serde lets the field be absent or null.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema {
    /// The schema where the field has a separate name.
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema without references at the top.
    pub(super) inline: fn(&mut SchemaGenerator) -> Schema,
    /// Whether the field may be absent.
    pub(super) absent: fn() -> bool,
    /// Whether the field may be null.
    pub(super) null: fn() -> bool,
}

impl FieldSchema {
    /// Replaces the schema by that of another type.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { absent: self.absent, null: self.null, ..other }
    }

    /// Replaces the schema by the schema that a function returns.
    #[must_use]
    pub fn by(self, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        Self { schema, inline: schema, ..self }
    }

    /// A field that serde reads by a function: absent means missing, regardless of the field's
    /// type.
    #[must_use]
    pub fn never_absent(self) -> Self {
        Self { absent: || false, ..self }
    }

    fn of_json<T: JsonSchema>(absent: fn() -> bool, null: fn() -> bool) -> Self {
        Self { schema: erased::subschema::<T>, inline: T::json_schema, absent, null }
    }
}

// The answer of schemars itself to the question which schema a flattened field has. No doc comment:
// a doc comment would become the description.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Flattened<T: JsonSchema> {
    #[schemars(flatten)]
    inner: T,
}

/// A type as a value. `L` is the type that an error names: the innermost type that the derive sees.
pub struct Of<T: ?Sized, L: ?Sized = Leaf<T>>(PhantomData<T>, PhantomData<L>);

/// A type without type parameters.
#[derive(Debug)]
pub struct Leaf<L: ?Sized>(PhantomData<L>);

/// A type of a field of a kind, without type parameters.
#[derive(Debug)]
pub struct RootLeaf<L: ?Sized>(PhantomData<L>);

/// A type with a type parameter, each of which may lack a schema.
#[derive(Debug)]
pub struct Generic<L: ?Sized, A: ?Sized>(PhantomData<L>, PhantomData<A>);

impl<T: ?Sized, L: ?Sized> Of<T, L> {
    /// The only value.
    pub const NEW: Self = Self(PhantomData, PhantomData);
}

impl<T: ?Sized, L: ?Sized> Clone for Of<T, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized, L: ?Sized> Copy for Of<T, L> {}

impl<T: ?Sized, L: ?Sized> fmt::Debug for Of<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Of")
    }
}

/// The schema of a type that has one.
pub trait Probe {
    /// Returns the schema.
    fn shape(self) -> FieldSchema;

    /// Returns the schema as part of the object around the field. A separate function: most fields
    /// do not need the flat schema, and are compiled faster without this function.
    fn flat(self) -> Flat;
}

/// The schema of a flattened field.
pub type Flat = fn(&mut SchemaGenerator) -> Schema;

/// First: Kubernetes types, also when the feature `schemars` of `k8s-openapi` is on, whose schemas
/// are too large and lack the list types.
impl<T: KubernetesSchema + DeserializeOwned, L> Probe for &&&&&Of<T, L> {
    fn shape(self) -> FieldSchema {
        FieldSchema {
            schema: T::kubernetes_schema,
            inline: T::kubernetes_schema,
            absent: ask::may_be_absent::<T>,
            null: ask::may_be_null::<T>,
        }
    }

    fn flat(self) -> Flat {
        T::kubernetes_schema
    }
}

/// Types of std of which serde's answers are known. Asking serde is unnecessary and would compile
/// the `Deserialize` of each of them once more.
pub trait Std {
    /// Whether the field may be absent, or null.
    const ABSENT: fn() -> bool;
    /// The schema, which schemars never puts behind a name.
    const SCHEMA: fn(&mut SchemaGenerator) -> Schema;
}

macro_rules! scalars {
    ($($ty:ty)*) => { $(
        impl Std for $ty {
            const ABSENT: fn() -> bool = || false;
            const SCHEMA: fn(&mut SchemaGenerator) -> Schema = <$ty>::json_schema;
        }
    )* };
}
scalars! { bool char String f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! containers_of_std {
    ($([$($key:ident)?] [$($hash:ident)?] $name:ident: $absent:literal;)*) => { $(
        impl<$($key: JsonSchema,)? T: JsonSchema $(, $hash)?> Std for $name<$($key,)? T $(, $hash)?> {
            const ABSENT: fn() -> bool = || $absent;
            const SCHEMA: fn(&mut SchemaGenerator) -> Schema =
                |generator| {
                    #[allow(unused_mut)]
                    let mut schema =
                        erased::around::<T>(generator, $name::<$($key,)? Current $(, $hash)?>::json_schema);
                    $(mark_key_type::<$key>(schema.ensure_object());)?
                    schema
                };
        }
    )* };
}
containers_of_std! {
    [] [] Option: true;
    [] [] Vec: false;
    [] [] VecDeque: false;
    [] [] BTreeSet: false;
    [] [S] HashSet: false;
    [K] [] BTreeMap: false;
    [K] [S] HashMap: false;
}

/// Second: types of std, also those of a type parameter: whether a list may be absent does not
/// depend on the items.
impl<T: JsonSchema + Std, L> Probe for &&&&Of<T, L> {
    fn shape(self) -> FieldSchema {
        FieldSchema { schema: T::SCHEMA, inline: T::SCHEMA, absent: T::ABSENT, null: T::ABSENT }
    }

    fn flat(self) -> Flat {
        // Among the types of std, an option alone may be absent.
        if (T::ABSENT)() {
            |generator| of_option(Flattened::<T>::json_schema(generator))
        } else {
            Flattened::<T>::json_schema
        }
    }
}

/// Third: every type that schemars knows and serde reads.
impl<T: JsonSchema + DeserializeOwned, L> Probe for &&&Of<T, L> {
    fn shape(self) -> FieldSchema {
        FieldSchema::of_json::<T>(ask::may_be_absent::<T>, ask::may_be_null::<T>)
    }

    fn flat(self) -> Flat {
        Flattened::<T>::json_schema
    }
}

/// Fourth: other types of a type parameter, and types that serde only writes. Serde cannot be asked
/// about these; the compiler's name of the type shows an option.
impl<T: JsonSchema, L> Probe for &&Of<T, L> {
    fn shape(self) -> FieldSchema {
        FieldSchema::of_json::<T>(ask::is_named_option::<T>, ask::is_named_option::<T>)
    }

    fn flat(self) -> Flat {
        Flattened::<T>::json_schema
    }
}

/// A Kubernetes type whose schema has all its fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema with all of its fields",
    label = "`#[schema(full)]` is for Kubernetes types",
    note = "for a type of `k8s-openapi`: enable the feature `full-schemas` of `windlass`"
)]
pub trait FullSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> FullSchema for T {}

/// Returns the shape of a Kubernetes type with all fields.
#[must_use]
pub fn full<T: FullSchema + DeserializeOwned>() -> FieldSchema {
    FieldSchema::of_json::<T>(ask::may_be_absent::<T>, ask::may_be_null::<T>)
}

/// Whether serde lets a field be absent or null, and the shapes of kept values, for a field whose
/// schema is not that of its type.
pub trait ProbeAbsence: Sized {
    /// Returns a shape without a schema.
    fn absence(self) -> FieldSchema;

    /// Returns the shape of a value that is kept and not checked.
    fn opaque(self) -> FieldSchema;

    /// Returns the shape of whole objects.
    fn embedded(self) -> FieldSchema;

    /// Returns the shape of numbers or texts.
    fn int_or_string(self) -> FieldSchema;
}

impl<T: DeserializeOwned> ProbeAbsence for &Of<T> {
    fn absence(self) -> FieldSchema {
        FieldSchema {
            absent: ask::may_be_absent::<T>,
            null: ask::may_be_null::<T>,
            ..unsupported()
        }
    }

    fn opaque(self) -> FieldSchema {
        self.absence().by(kept::opaque_of::<T>)
    }

    fn embedded(self) -> FieldSchema {
        self.absence().by(kept::embedded_of::<T>)
    }

    fn int_or_string(self) -> FieldSchema {
        self.absence().by(kept::int_or_string_of::<T>)
    }
}

/// Holds if `T` has a schema. The type of the trait is the one that an error names: `T` itself, or
/// the type inside of `T` that lacks a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no schema",
    label = "the schema of this field is unknown",
    note = "derive `windlass::Schema` for it and for the types inside of it, beside serde's derives",
    note = "a type of another crate: in a struct that derives `Schema`, `#[schema(with = Type)]` gives the field the schema of another type \
            (of a time in RFC 3339 `with = Time`, which is that of k8s-openapi), `#[schema(opaque)]` keeps its value unchecked"
)]
pub trait HasSchema<T: ?Sized = Self> {}

#[diagnostic::do_not_recommend]
impl<L: ?Sized, T: ?Sized + JsonSchema> HasSchema<T> for L {}

/// Fifth: a container under another name, whose content has no schema, so that the compiler names
/// the content.
pub trait NoSchemaInside {
    /// The content.
    type Inside;
    /// Never called.
    fn shape(self) -> FieldSchema
    where
        Self::Inside: HasSchema;
    /// Never called.
    fn flat(self) -> Flat
    where
        Self::Inside: HasSchema;
}

macro_rules! containers {
    ($($container:ty: $inside:ident),* $(,)?) => {$(
        impl<$inside> NoSchemaInside for &Of<$container> {
            type Inside = $inside;

            fn shape(self) -> FieldSchema
            where
                $inside: HasSchema,
            {
                unsupported()
            }

            fn flat(self) -> Flat
            where
                $inside: HasSchema,
            {
                unsupported().schema
            }
        }
    )*};
}

containers! {
    Option<T>: T, Box<T>: T, Vec<T>: T, BTreeSet<T>: T, HashSet<T>: T,
    BTreeMap<String, T>: T, HashMap<String, T>: T,
}

/// Fifth: a type without a schema although the type of the parameter has one.
pub trait NoSchemaItself {
    /// The type.
    type Itself;
    /// The type around it.
    type Whole;
    /// Never called.
    fn shape(self) -> FieldSchema
    where
        Self::Itself: HasSchema<Self::Whole>;
    /// Never called.
    fn flat(self) -> Flat
    where
        Self::Itself: HasSchema<Self::Whole>;
}

impl<T, L, A: JsonSchema> NoSchemaItself for &Of<T, Generic<L, A>> {
    type Itself = L;
    type Whole = T;

    fn shape(self) -> FieldSchema
    where
        L: HasSchema<T>,
    {
        unsupported()
    }

    fn flat(self) -> Flat
    where
        L: HasSchema<T>,
    {
        unsupported().schema
    }
}

impl<T, L: Serialize> NoSchemaItself for &Of<T, RootLeaf<L>> {
    type Itself = L;
    type Whole = T;

    fn shape(self) -> FieldSchema
    where
        L: HasSchema<T>,
    {
        unsupported()
    }

    fn flat(self) -> Flat
    where
        L: HasSchema<T>,
    {
        unsupported().schema
    }
}

/// Last: a type that serde does not write has an error of its own.
impl<T: ?Sized, L: ?Sized> Of<T, RootLeaf<L>> {
    /// As the methods of the traits.
    #[must_use]
    pub fn shape(self) -> FieldSchema {
        unsupported()
    }
}

impl<T: ?Sized, L: ?Sized> Of<T, L> {
    /// Returns the shape of a type that serde does not read.
    #[must_use]
    pub fn absence(self) -> FieldSchema {
        unsupported()
    }

    /// As [`absence`](Self::absence), of a value that is kept and not checked.
    #[must_use]
    pub fn opaque(self) -> FieldSchema {
        unsupported().by(kept::unknown)
    }

    /// As [`absence`](Self::absence), of a whole object.
    #[must_use]
    pub fn embedded(self) -> FieldSchema {
        unsupported().by(kept::embedded)
    }

    /// As [`absence`](Self::absence), of a number or a text.
    #[must_use]
    pub fn int_or_string(self) -> FieldSchema {
        unsupported().by(kept::int_or_string)
    }
}

/// Last: the compiler says that the innermost type has no schema.
impl<T: ?Sized, L: ?Sized> Of<T, Leaf<L>> {
    /// As the methods of the traits, of a flattened field.
    #[must_use]
    pub fn flat(self) -> Flat
    where
        L: HasSchema<T>,
    {
        unsupported().schema
    }

    /// As the methods of the traits.
    #[must_use]
    pub fn shape(self) -> FieldSchema
    where
        L: HasSchema<T>,
    {
        unsupported()
    }
}

/// Last: the compiler says that the type of the parameter has no schema.
impl<T: ?Sized, L: ?Sized, A: ?Sized> Of<T, Generic<L, A>> {
    /// As the methods of the traits, of a flattened field.
    #[must_use]
    pub fn flat(self) -> Flat
    where
        A: HasSchema<T>,
    {
        unsupported().schema
    }

    /// As the methods of the traits.
    #[must_use]
    pub fn shape(self) -> FieldSchema
    where
        A: HasSchema<T>,
    {
        unsupported()
    }
}

/// The shape of a type for which an earlier impl would have been taken if the type had a schema.
fn unsupported() -> FieldSchema {
    FieldSchema {
        schema: |_| Schema::from(false),
        inline: |_| Schema::from(false),
        absent: || false,
        null: || false,
    }
}
