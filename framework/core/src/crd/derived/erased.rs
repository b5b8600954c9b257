//! Schemas of types without the type.
//!
//! `SchemaGenerator::subschema_for` is compiled once for each type, a third of the code that the
//! derives cause to be compiled. Here one type, [`Current`], stands for all types: the functions of
//! the type that is being described describe `Current`.

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::crd::schema::mark_keys;

/// The functions of [`JsonSchema`] of a type.
struct Functions {
    name: fn() -> Cow<'static, str>,
    id: fn() -> Cow<'static, str>,
    inline: fn() -> bool,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The functions of `T`.
struct TypeFunctions<T>(PhantomData<T>);

impl<T: JsonSchema> TypeFunctions<T> {
    const FUNCTIONS: &'static Functions = &Functions {
        name: T::schema_name,
        id: T::schema_id,
        inline: T::inline_schema,
        schema: T::json_schema,
    };
}

thread_local! {
    /// The type that [`Current`] stands for. Per thread, because the functions of `JsonSchema` have
    /// no argument that could carry the type.
    static CURRENT: Cell<Option<&'static Functions>> = const { Cell::new(None) };
}

/// Sets the current type, and restores the previous type when the guard is dropped, also by a
/// panic: the types of fields are described during the description of the struct.
struct CurrentTypeGuard(Option<&'static Functions>);

impl CurrentTypeGuard {
    fn of(functions: &'static Functions) -> Self {
        Self(CURRENT.replace(Some(functions)))
    }
}

impl Drop for CurrentTypeGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The current type.
pub(super) struct Current;

impl JsonSchema for Current {
    fn inline_schema() -> bool {
        CURRENT.get().is_some_and(|it| (it.inline)())
    }

    fn schema_name() -> Cow<'static, str> {
        CURRENT.get().map_or(Cow::Borrowed("Current"), |it| (it.name)())
    }

    fn schema_id() -> Cow<'static, str> {
        CURRENT.get().map_or(Cow::Borrowed("Current"), |it| (it.id)())
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Only `by` gives `Current` to schemars, and sets a current type before.
        let Some(it) = CURRENT.get() else { return Schema::from(true) };
        let mut schema = (it.schema)(generator);
        mark_keys(&mut schema, &(it.id)());
        schema
    }
}

/// Returns the result of `SchemaGenerator::subschema_for::<T>`.
pub(super) fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    around::<T>(generator, SchemaGenerator::subschema_for::<Current>)
}

/// Returns the schema of a container of `T` by the function of that container of [`Current`].
pub(super) fn around<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    container: fn(&mut SchemaGenerator) -> Schema,
) -> Schema {
    by(TypeFunctions::<T>::FUNCTIONS, generator, container)
}

/// The part of [`around`] that is compiled once.
fn by(
    functions: &'static Functions,
    generator: &mut SchemaGenerator,
    container: fn(&mut SchemaGenerator) -> Schema,
) -> Schema {
    let _turn = CurrentTypeGuard::of(functions);
    container(generator)
}
