//! What a cache holds of a kind, in which form, and how much depends on it.

use std::time::Duration;

use crate::reflector::ReflectorOptions;
use crate::resource::Resource;
use crate::store::{Representation, Transform};

/// The shortest period of a resync.
pub(super) const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// When it is found out that an object does not decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validate {
    /// When somebody reads it; an object that nobody reads costs nothing. The default.
    #[default]
    Lazy,
    /// Soon after it came: a task of the informer decodes every new version, with at most a quarter
    /// of one core and never in the way of the watch.
    Eager,
}

/// What a cache holds of a kind, and how. Set per kind before the kind is first used:
/// [`InformerRegistry::set_options`](super::InformerRegistry::set_options),
/// [`Manager::cache`](crate::manager::Manager::cache).
///
/// ```
/// use std::time::Duration;
/// use windlass::informer::{CacheOptions, Validate};
///
/// let options = CacheOptions::default()
///     .labels("app=web")
///     .validate(Validate::Eager)
///     .resync(Duration::from_secs(600));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct CacheOptions {
    pub(crate) representation: Representation,
    pub(crate) validate: Validate,
    pub(crate) transform: Option<Transform>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) namespaces: Option<Vec<String>>,
    pub(crate) resync: Option<Duration>,
    pub(crate) is_optional: bool,
    pub(crate) reading: ReflectorOptions,
}

impl CacheOptions {
    /// In which form objects are kept; default [`Representation::Compact`].
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }

    /// When objects that do not decode are found; default [`Validate::Lazy`].
    pub fn validate(mut self, validate: Validate) -> Self {
        self.validate = validate;
        self
    }

    /// What is taken out of each object before it is kept; default nothing. Two options are equal
    /// only if they share one transform, so clone it rather than make it twice.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Only objects with these labels, in the API server's notation: `app=web,tier!=back`. An object
    /// that stops matching is deleted as far as the cache can tell. Default: all.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only objects with these field values, such as `spec.nodeName=worker-3`; which fields can be
    /// asked for depends on the kind. Default: all.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Only these namespaces, with a watch of each; none given means all. Default: those of the
    /// registry. Ignored for cluster-scoped kinds.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = Some(sorted(namespaces.into_iter().map(Into::into).collect()));
        self
    }

    /// Listeners that do not say otherwise are shown every cached object again after each such
    /// period; at least 1 s. Default: never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(SHORTEST_RESYNC));
        self
    }

    /// The operator starts and is ready without it: when the kind is not served, may not be read, or
    /// does not answer. Default: it is required.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// The longest event of a watch, or item of a list, in bytes. A longer one leaves the object as
    /// it was known. Default 16 MiB.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.reading = self.reading.frame_limit(bytes);
        self
    }

    /// Everything else about how its reflectors read; replaces a frame limit that was set before.
    /// Their resync tells nobody: that of listeners is [`resync`](Self::resync).
    pub fn reading(mut self, options: ReflectorOptions) -> Self {
        self.reading = options;
        self
    }

    /// These options as far as a kind can be kept as `K`.
    pub(super) fn fitting<K: Resource>(self) -> Self {
        if K::projection().is_some() && self.representation != Representation::Typed {
            // Whatever was asked for: its bytes are few already, and it needs more than metadata.
            return self.representation(Representation::default());
        }
        self
    }

    /// ` (app=web, in a and b)`: what sets a cache apart from another of the same kind; `projection`
    /// is the type that it keeps instead of whole objects.
    pub(super) fn suffix(&self, projection: Option<&str>) -> String {
        let mut parts: Vec<String> =
            self.labels.iter().chain(&self.fields).map(String::clone).collect();
        let short = projection.and_then(|path| path.rsplit("::").next());
        parts.extend(short.map(|name| format!("as {name}")));
        if let Some(namespaces) = self.namespaces.as_ref().filter(|names| !names.is_empty()) {
            parts.push(format!("in {}", namespaces.join(" and ")));
        }
        if self.representation != Representation::default() {
            parts.push(format!("{:?}", self.representation).to_lowercase());
        }
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }
}

pub(super) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}
