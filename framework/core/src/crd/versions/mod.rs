//! Several versions of a kind: their types, and the conversion of objects between them.
//!
//! Files: `convert` has the conversion of typed values, which the derives generate; `kept` has what
//! a version cannot hold, `index` finds the places of that; `received` writes a result onto the
//! JSON that was received.

// DESIGN.md, 219: A version of a kind is a type, and one of them is the hub
// DESIGN.md, 220: Fields are converted by their names and types, and the compiler finds the rest
// DESIGN.md, 221: What another version cannot hold is the difference of a round trip, kept in an
// annotation
// DESIGN.md, 255: A conversion changes the received JSON, and writes no object anew

pub(crate) mod convert;
mod index;
mod kept;
mod received;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use self::kept::{Judges, KeptValues};
pub use self::kept::{KEPT_FIELDS, MOST_KEPT};
use self::received::Forms;
use super::CustomResource;
use crate::resource::ResourceInfo;
use crate::wire::{Undecodable, times};

/// A type of an older or newer version, which converts to that of the hub and back; implemented by
/// `#[derive(Convertible)]`, and by `#[derive(CustomResource)]` with `hub = …`.
///
/// A conversion may lose what the other type cannot hold: objects keep that in an annotation, and
/// get it back (see [`Versions::convert`]). A conversion to the hub and back to the same type must
/// be stable: after the first round trip a second one changes nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not convert to a type of the hub",
    note = "derive `windlass::Convertible` with `#[convert(hub = …)]`; a whole kind derives `CustomResource` with `#[resource(hub = …)]`"
)]
pub trait Convertible: Sized {
    /// The type of the hub.
    type Hub;

    /// Converts to the type of the hub.
    ///
    /// # Errors
    /// A value has no equal in the other type.
    fn to_hub(self) -> Result<Self::Hub, ConversionError>;

    /// Converts from the type of the hub.
    ///
    /// # Errors
    /// A value has no equal in this type.
    fn from_hub(hub: Self::Hub) -> Result<Self, ConversionError>;
}

/// The reason why a value has no equal in another version, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionError {
    path: String,
    text: String,
}

impl ConversionError {
    /// Creates an error with this reason; the fields on the way are added by the generated code.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self { path: String::new(), text: reason.to_string() }
    }

    /// Adds the field of which a value is.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{field}{separator}{}", self.path);
        self
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.text),
            false => write!(f, "{}: {}", self.path, self.text),
        }
    }
}

impl std::error::Error for ConversionError {}

/// JSON of an object, or the reason against a conversion.
type ConversionResult = Result<Value, ConversionError>;
/// A function of the types: from an object and its metadata, which may be large, to another one.
type StepFn = fn(&Value, &Value) -> ConversionResult;

/// One version beside the hub.
#[derive(Clone, Copy, Debug)]
struct Spoke {
    version: &'static str,
    /// Writes an object of the version as its type does.
    rewrite: StepFn,
    to_hub: StepFn,
    from_hub: StepFn,
}

/// The versions of a kind, and the conversion of objects between them.
///
/// ```no_run
/// # extern crate windlass_core as windlass;
/// use windlass::crd::{CustomResource, Versions};
///
/// # fn example<CronJob: CustomResource>(object: serde_json::Value) {
/// let versions = Versions::of::<CronJob>().expect("the kind has several versions");
/// let older = versions.convert(object, "v1beta1");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Versions {
    info: ResourceInfo,
    rewrite: StepFn,
    spokes: Vec<Spoke>,
}

impl Versions {
    /// Returns the versions of a kind, by the type of any of them; `None` for a kind with one
    /// version.
    pub fn of<K: CustomResource>() -> Option<Self> {
        K::versions()
    }

    /// Starts with the hub.
    #[doc(hidden)]
    pub fn hub<H: CustomResource + DeserializeOwned>() -> Option<Self> {
        Some(Self { info: H::static_info()?, rewrite: rewritten::<H>, spokes: Vec::new() })
    }

    /// Adds a version.
    #[doc(hidden)]
    #[must_use]
    pub fn spoke<H, S>(mut self) -> Self
    where
        H: CustomResource + DeserializeOwned,
        S: CustomResource + DeserializeOwned + convert::VersionOf<H>,
    {
        let Some(info) = S::static_info() else { return self };
        self.spokes.push(Spoke {
            version: convert::version(&info),
            rewrite: rewritten::<S>,
            to_hub: to_hub::<H, S>,
            from_hub: from_hub::<H, S>,
        });
        self
    }

    /// Returns the kind in the version of the hub.
    pub fn info(&self) -> &ResourceInfo {
        &self.info
    }

    /// Returns the names of all versions, that of the hub first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let hub: &str = &self.info.version;
        std::iter::once(hub).chain(self.spokes.iter().map(|spoke| spoke.version))
    }

    /// Converts an object to a version.
    ///
    /// `metadata` stays as it is, but for the annotation [`KEPT_FIELDS`] with what the new version
    /// cannot hold: a later conversion restores it, where the object has not changed since. An
    /// object of that version already is returned as it is.
    ///
    /// Fields that the conversion leaves as they are keep the spelling that was received, also
    /// those that no type knows: the definition may be newer than the program. Nulls, and defaults
    /// of absent fields that both versions have, are not written.
    ///
    /// # Errors
    /// The object is not of this kind, or of an unknown version; it cannot be read by its type; a
    /// value has no equal; more than [`MOST_KEPT`] would be kept.
    pub fn convert(&self, object: Value, to: &str) -> ConversionResult {
        let Value::Object(mut object) = object else {
            return Err(ConversionError::new("it is no object"));
        };
        let from = self.version_of(&object)?;
        if !self.names().any(|name| name == to) {
            return Err(ConversionError::new(self.unknown(to)));
        }
        if from == to {
            return Ok(Value::Object(object));
        }
        let mut metadata = object.remove("metadata").unwrap_or_default();
        object.retain(|name, _| name != "apiVersion" && name != "kind");
        let mut kept = KeptValues::take(&mut metadata);
        // What the types see of it: neither the kept values, nor the long list of managers.
        let mut seen = metadata.clone();
        if let Some(fields) = seen.as_object_mut() {
            fields.remove("managedFields");
        }
        let hub = self.up(Value::Object(object), &from, &seen, &mut kept)?;
        let made = self.down(hub, to, &seen, &mut kept)?;
        kept.put(&mut metadata)?;
        let mut whole = match made {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let api_version = format!("{}/{to}", self.info.group);
        whole.insert("apiVersion".to_owned(), api_version.into());
        whole.insert("kind".to_owned(), Value::String(self.info.kind.to_string()));
        whole.insert("metadata".to_owned(), metadata);
        Ok(Value::Object(whole))
    }

    /// Returns an object without the annotation [`KEPT_FIELDS`].
    #[doc(hidden)]
    pub fn without_kept(mut object: Value) -> Value {
        if let Some(metadata) = object.get_mut("metadata") {
            KeptValues::take(metadata);
        }
        object
    }

    /// Writes an object as the type of its version does.
    ///
    /// # Errors
    /// As [`convert`](Self::convert).
    #[doc(hidden)]
    pub fn rewrite(&self, object: Value) -> ConversionResult {
        let Value::Object(fields) = &object else {
            return Err(ConversionError::new("it is no object"));
        };
        let version = self.version_of(fields)?;
        let head = ["apiVersion", "kind", "metadata"].map(|name| (name, object[name].clone()));
        let spoke = self.spoke_of(&version);
        let rewrite = spoke.map_or(self.rewrite, |spoke| spoke.rewrite);
        let mut made = rewrite(&object, &object["metadata"])?;
        for (name, value) in head {
            made[name] = value;
        }
        Ok(made)
    }

    /// Returns the version of an object of this kind.
    fn version_of(&self, object: &Map<String, Value>) -> Result<String, ConversionError> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if group != self.info.group || kind != self.info.kind {
            return Err(ConversionError::new(format_args!(
                "it is a {kind:?} of {api_version:?}, and not a {} of {}",
                self.info.kind, self.info.group
            )));
        }
        if !self.names().any(|name| name == version) {
            return Err(ConversionError::new(self.unknown(version)));
        }
        Ok(version.to_owned())
    }

    fn unknown(&self, version: &str) -> String {
        let known: Vec<&str> = self.names().collect();
        format!("{} has no version {version:?}; its versions are {known:?}", self.info.kind)
    }

    fn spoke_of(&self, version: &str) -> Option<&Spoke> {
        self.spokes.iter().find(|spoke| spoke.version == version)
    }

    /// Converts to the hub, with what was kept of the hub; keeps what the hub cannot hold.
    fn up(
        &self,
        object: Value,
        from: &str,
        metadata: &Value,
        kept: &mut KeptValues,
    ) -> ConversionResult {
        let Some(spoke) = self.spoke_of(from) else { return Ok(object) };
        let leg = HubConversion {
            names: (from, &self.info.version),
            read: spoke.rewrite,
            there: spoke.to_hub,
            back: spoke.from_hub,
            write: self.rewrite,
            metadata,
        };
        leg.convert(object, kept)
    }

    /// Converts from the hub, with what was kept of the version; keeps what the version cannot
    /// hold.
    fn down(
        &self,
        hub: Value,
        to: &str,
        metadata: &Value,
        kept: &mut KeptValues,
    ) -> ConversionResult {
        let Some(spoke) = self.spoke_of(to) else { return Ok(hub) };
        let leg = HubConversion {
            names: (&self.info.version, to),
            read: self.rewrite,
            there: spoke.from_hub,
            back: spoke.to_hub,
            write: spoke.rewrite,
            metadata,
        };
        leg.convert(hub, kept)
    }
}

/// A conversion between two versions, of which one is the hub.
struct HubConversion<'a> {
    /// The version of the object, and that of the result.
    names: (&'a str, &'a str),
    /// Writes the object as its type does.
    read: StepFn,
    there: StepFn,
    back: StepFn,
    /// Writes the result as its type does.
    write: StepFn,
    metadata: &'a Value,
}

impl HubConversion<'_> {
    fn convert(&self, received: Value, kept: &mut KeptValues) -> ConversionResult {
        let (from, to) = self.names;
        let call = |step: StepFn, object: &Value| step(object, self.metadata);
        let written = |object: &Value| call(self.write, object).ok();
        let typed = call(self.there, &received)?;
        let (made, bare) = {
            let read = call(self.read, &received)?;
            let forms = Forms { received: &received, read: &read, made: &typed };
            // The way back begins without unknown fields: an API server may have pruned them.
            (forms.result(written), forms.has_unknown().then(|| forms.bare(written)))
        };
        let typed_back = call(self.back, &typed)?;
        let forms =
            Forms { received: bare.as_ref().unwrap_or(&made), read: &typed, made: &typed_back };
        let back = forms.result(|object| call(self.read, object).ok());
        kept.keep(from, (&back, &typed_back), &received);
        drop((back, bare, received));
        let looks_same =
            |object: &Value| call(self.back, object).is_ok_and(|seen| seen == typed_back);
        let is_readable = |object: &Value| written(object).is_some();
        let judges = Judges { looks_same: &looks_same, is_readable: &is_readable };
        Ok(kept.restore(to, (made, &typed), &judges))
    }
}

/// Reads an object with its metadata.
fn read<K>(object: &Value, metadata: &Value) -> Result<K, ConversionError>
where
    K: CustomResource + DeserializeOwned,
{
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| (name.as_str(), value));
    let body = fields.filter(|(name, _)| *name != "metadata");
    let whole = MapDeserializer::new(body.chain(std::iter::once(("metadata", metadata))));
    K::deserialize(whole).or_else(|_: serde_json::Error| {
        // Times that are too late to be held are replaced in a text only.
        let mut object = object.clone();
        object["metadata"] = metadata.clone();
        let text = object.to_string();
        times::from_slice(text.as_bytes()).map_err(|error| {
            let why = Undecodable::explain::<K>(text.as_bytes(), &error);
            ConversionError::new(format_args!("it cannot be read: {why}"))
        })
    })
}

/// Writes an object, without type and metadata.
fn written<K: CustomResource>(object: &K) -> ConversionResult {
    let mut value = serde_json::to_value(object)
        .map_err(|error| ConversionError::new(format_args!("it cannot be written: {error}")))?;
    if let Value::Object(fields) = &mut value {
        for name in ["apiVersion", "kind", "metadata"] {
            fields.remove(name);
        }
    }
    times::encode_value(&mut value);
    Ok(value)
}

fn rewritten<K>(object: &Value, metadata: &Value) -> ConversionResult
where
    K: CustomResource + DeserializeOwned,
{
    written(&read::<K>(object, metadata)?)
}

fn to_hub<H, S>(object: &Value, metadata: &Value) -> ConversionResult
where
    H: CustomResource,
    S: CustomResource + DeserializeOwned + Convertible<Hub = H>,
{
    written(&read::<S>(object, metadata)?.to_hub()?)
}

fn from_hub<H, S>(object: &Value, metadata: &Value) -> ConversionResult
where
    H: CustomResource + DeserializeOwned,
    S: CustomResource + Convertible<Hub = H>,
{
    written(&S::from_hub(read::<H>(object, metadata)?)?)
}
