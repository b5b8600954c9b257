//! Conversion of typed values: items that the derives name.
//!
//! Generated code calls `(&&&&pair(…)).convert(value)`: method resolution takes the first impl that
//! fits the two types of the pair.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;

use super::{ConversionError, Convertible};
use crate::crd::CustomResource;
use crate::error::Error;
use crate::resource::ResourceInfo;

/// A version of a kind that is not the hub; its controller would see one version of several.
pub trait Spoke: CustomResource + Convertible {
    /// Returns the version as the definition has it.
    ///
    /// # Errors
    /// Those of [`CustomResource::crd`].
    fn definition() -> Result<CustomResourceDefinitionVersion, Error>;
}

/// A version of the kind whose hub is `H`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a version of `{H}`",
    label = "this type does not name `{H}` as its hub",
    note = "derive `CustomResource` for it with `#[resource(version = \"…\", hub = …)]`"
)]
pub trait VersionOf<H>: Spoke + Convertible<Hub = H> {}

#[diagnostic::do_not_recommend]
impl<H, S: Spoke + Convertible<Hub = H>> VersionOf<H> for S {}

/// A hub that lists `V` among the versions of its kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not list `{V}` among its versions",
    label = "this hub does not list the version",
    note = "add the type to the attribute of the hub, `#[resource(…, versions(v1beta1::Website))]`: the definition has the \
            versions that the hub lists, and others are neither served nor converted"
)]
pub trait Lists<V> {}

/// Compiles if `H` lists `V`.
pub fn is_listed<H: Lists<V>, V>() {}

/// Returns the name of a version; the names of derived kinds are constants.
pub(super) fn version(info: &ResourceInfo) -> &'static str {
    match info.version {
        Cow::Borrowed(version) => version,
        Cow::Owned(_) => "",
    }
}

/// A conversion of one value: of itself, or of its parts. `M` is the way, which the compiler finds.
pub trait ConvertTo<B, M>: Sized {
    /// Converts the value.
    ///
    /// # Errors
    /// It has no equal.
    fn convert_to(self) -> Result<B, ConversionError>;
}

/// The way by [`Convertible`], to the hub.
#[derive(Debug)]
pub struct ToHub;
/// The way by [`Convertible`], from the hub.
#[derive(Debug)]
pub struct FromHub;
/// The way by `TryFrom`, or by `From`.
#[derive(Debug)]
pub struct ByTryFrom;
/// The way by the parts of an option, a box, a list or a map.
#[derive(Debug)]
pub struct Inside<M>(PhantomData<M>);

impl<A: Convertible<Hub = B>, B> ConvertTo<B, ToHub> for A {
    fn convert_to(self) -> Result<B, ConversionError> {
        self.to_hub()
    }
}

impl<A, B: Convertible<Hub = A>> ConvertTo<B, FromHub> for A {
    fn convert_to(self) -> Result<B, ConversionError> {
        B::from_hub(self)
    }
}

impl<A: TryInto<B, Error: Display>, B> ConvertTo<B, ByTryFrom> for A {
    fn convert_to(self) -> Result<B, ConversionError> {
        self.try_into().map_err(ConversionError::new)
    }
}

impl<A: ConvertTo<B, M>, B, M> ConvertTo<Option<B>, Inside<M>> for Option<A> {
    fn convert_to(self) -> Result<Option<B>, ConversionError> {
        self.map(A::convert_to).transpose()
    }
}

impl<A: ConvertTo<B, M>, B, M> ConvertTo<Box<B>, Inside<M>> for Box<A> {
    fn convert_to(self) -> Result<Box<B>, ConversionError> {
        (*self).convert_to().map(Box::new)
    }
}

impl<A: ConvertTo<B, M>, B, M> ConvertTo<Vec<B>, Inside<M>> for Vec<A> {
    fn convert_to(self) -> Result<Vec<B>, ConversionError> {
        let convert = |(at, value): (usize, A)| {
            value.convert_to().map_err(|error| error.at(&format!("[{at}]")))
        };
        self.into_iter().enumerate().map(convert).collect()
    }
}

impl<K: Ord, A: ConvertTo<B, M>, B, M> ConvertTo<BTreeMap<K, B>, Inside<M>> for BTreeMap<K, A> {
    fn convert_to(self) -> Result<BTreeMap<K, B>, ConversionError> {
        self.into_iter().map(|(key, value)| Ok((key, value.convert_to()?))).collect()
    }
}

impl<K, A, B, M, S> ConvertTo<HashMap<K, B, S>, Inside<M>> for HashMap<K, A, S>
where
    K: Eq + Hash,
    A: ConvertTo<B, M>,
    S: BuildHasher + Default,
{
    fn convert_to(self) -> Result<HashMap<K, B, S>, ConversionError> {
        self.into_iter().map(|(key, value)| Ok((key, value.convert_to()?))).collect()
    }
}

/// The types of a field on both sides.
#[derive(Debug)]
pub struct Pair<A, B>(PhantomData<fn(A) -> B>);

/// Returns the types of a field on both sides, from functions that look at them.
pub fn pair<S, T, A, B>(_: fn(&S) -> &A, _: fn(&T) -> &B) -> Pair<A, B> {
    Pair(PhantomData)
}

/// First: both sides have one type.
pub trait Identical<T> {
    /// Moves the value.
    ///
    /// # Errors
    /// None.
    fn convert(&self, value: T) -> Result<T, ConversionError>;
}

impl<T> Identical<T> for &&Pair<T, T> {
    fn convert(&self, value: T) -> Result<T, ConversionError> {
        Ok(value)
    }
}

/// Then: the type converts.
pub trait Converting<A, B, M> {
    /// Converts the value.
    ///
    /// # Errors
    /// It has no equal.
    fn convert(&self, value: A) -> Result<B, ConversionError>;
}

impl<A: ConvertTo<B, M>, B, M> Converting<A, B, M> for &Pair<A, B> {
    fn convert(&self, value: A) -> Result<B, ConversionError> {
        value.convert_to()
    }
}

/// A version whose definition the hub lists.
pub trait Defined {
    /// Returns the version as the definition has it.
    ///
    /// # Errors
    /// Those of [`CustomResource::crd`].
    fn definition(&self) -> Result<CustomResourceDefinitionVersion, Error>;
}

impl<K: Spoke> Defined for &Kind<K> {
    fn definition(&self) -> Result<CustomResourceDefinitionVersion, Error> {
        K::definition()
    }
}

/// No type has this trait: its text tells that a conversion is missing.
#[diagnostic::on_unimplemented(
    message = "there is no conversion from `{Self}` to `{B}`",
    label = "this field is a `{B}` on the other side",
    note = "derive `windlass::Convertible` for the type of the older version, implement `TryFrom` in both directions, or name functions: `#[convert(to_hub = …, from_hub = …)]`"
)]
pub trait HasConversion<B> {}

impl<A, B> Pair<A, B> {
    /// Last: nothing converts the type.
    ///
    /// # Errors
    /// Not called: it does not compile.
    pub fn convert(&self, _: A) -> Result<B, ConversionError>
    where
        A: HasConversion<B>,
    {
        Err(ConversionError::new("there is no conversion"))
    }
}

/// The types of a field on both sides, for the way back: it tells of a missing conversion only if
/// the way there has one, since one missing conversion is one mistake.
#[derive(Debug)]
pub struct Back<A, B>(PhantomData<fn(A) -> B>);

/// Returns the types of a field on both sides, for the way back.
pub fn back<S, T, A, B>(_: fn(&S) -> &A, _: fn(&T) -> &B) -> Back<A, B> {
    Back(PhantomData)
}

impl<T> Identical<T> for &&&Back<T, T> {
    fn convert(&self, value: T) -> Result<T, ConversionError> {
        Ok(value)
    }
}

impl<A: ConvertTo<B, M>, B, M> Converting<A, B, M> for &&Back<A, B> {
    fn convert(&self, value: A) -> Result<B, ConversionError> {
        value.convert_to()
    }
}

/// Then, on the way back: there is a way there only.
pub trait OneWay<A, B, M> {
    /// Not called: it does not compile.
    ///
    /// # Errors
    /// None.
    fn convert(&self, _: A) -> Result<B, ConversionError>
    where
        A: HasConversion<B>;
}

impl<A, B: ConvertTo<A, M>, M> OneWay<A, B, M> for &Back<A, B> {
    fn convert(&self, _: A) -> Result<B, ConversionError>
    where
        A: HasConversion<B>,
    {
        Err(ConversionError::new("there is no conversion"))
    }
}

impl<A, B> Back<A, B> {
    /// Last: nothing converts the type; the way there has reported that.
    ///
    /// # Errors
    /// Not called: the way there does not compile.
    pub fn convert(&self, _: A) -> Result<B, ConversionError> {
        Err(ConversionError::new("there is no conversion"))
    }
}

/// The value that a function returned: itself, or a result.
pub struct Output<T>(Cell<Option<T>>);

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl<T> Output<T> {
    /// Takes what a function returned.
    pub fn new(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }

    fn take(&self) -> Result<T, ConversionError> {
        self.0.take().ok_or_else(|| ConversionError::new("a function's value was taken twice"))
    }
}

/// First: the function can fail.
pub trait Fallible<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// Those of the function.
    fn done(&self) -> Result<T, ConversionError>;
}

impl<T, E: Display> Fallible<T> for &Output<Result<T, E>> {
    fn done(&self) -> Result<T, ConversionError> {
        self.take()?.map_err(ConversionError::new)
    }
}

/// Then: it cannot.
pub trait Infallible<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// None.
    fn done(&self) -> Result<T, ConversionError>;
}

impl<T> Infallible<T> for Output<T> {
    fn done(&self) -> Result<T, ConversionError> {
        self.take()
    }
}

/// Checks that a version has the kind of its hub.
pub const fn check_kind(hub: &str, kind: &str) {
    let (hub, kind) = (hub.as_bytes(), kind.as_bytes());
    let mut is_same = hub.len() == kind.len();
    let mut at = 0;
    while is_same && at < hub.len() {
        is_same = hub[at] == kind[at];
        at += 1;
    }
    assert!(
        is_same,
        "a version has the kind of its hub: give both structs one name, or this one `kind = \"…\"`"
    );
}

/// A kind, for the check of [`Reconciled`].
#[derive(Debug)]
pub struct Kind<K>(PhantomData<fn() -> K>);

impl<K> Kind<K> {
    /// Any kind.
    pub const NEW: Self = Self(PhantomData);

    /// Any other kind: nothing is wrong.
    pub fn check(&self) {}

    /// Placeholder for a type that is no version, which does not compile at the list of versions.
    ///
    /// # Errors
    /// None.
    pub fn definition(&self) -> Result<CustomResourceDefinitionVersion, Error> {
        Ok(CustomResourceDefinitionVersion::default())
    }
}

/// No type has this trait: its text tells that a controller's kind is not the hub.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the hub of its kind",
    label = "a controller sees the hub only",
    note = "reconcile the type that its `#[resource(hub = …)]` names: API servers convert every object to it"
)]
pub trait IsHub {}

/// A kind that is reconciled.
pub trait Reconciled {
    /// The type that is checked.
    type Kind;
    /// Does not compile for a version that is not the hub.
    fn check(&self)
    where
        Self::Kind: IsHub;
}

impl<K: Spoke> Reconciled for &Kind<K> {
    type Kind = K;

    fn check(&self)
    where
        K: IsHub,
    {
    }
}
