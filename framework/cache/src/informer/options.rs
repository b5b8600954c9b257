//! Options of a cache: selection, representation, validation and reading.

use std::time::Duration;

use crate::reflector::ReflectorOptions;
use crate::store::{Representation, Transform};
use windlass_core::resource::Resource;

/// The shortest period of a resync.
pub(super) const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// Time at which an object that does not decode is detected.
///
/// An object that does not decode is never dropped: the object stays in the cache, counts in the
/// size, and reads return an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecodeCheckTime {
    /// At the first read; an object that is never read costs nothing. The default.
    #[default]
    Lazy,
    /// Soon after the object was received: a task of the informer decodes every new version, with
    /// at most a quarter of a core and never in the way of the watch.
    Eager,
}

/// Options of the cache of a kind. To be set before the kind is first used:
/// [`InformerRegistry::set_options`](super::InformerRegistry::set_options),
/// `Manager::cache`.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::time::Duration;
/// use windlass::informer::{CacheOptions, DecodeCheckTime};
///
/// let options = CacheOptions::default()
///     .labels("app=web")
///     .validate(DecodeCheckTime::Eager)
///     .resync(Duration::from_secs(600));
/// ```
///
/// | setting | default |
/// |---|---|
/// | [`representation`](Self::representation) | [`Representation::Compact`] |
/// | [`validate`](Self::validate) | [`DecodeCheckTime::Lazy`] |
/// | [`transform`](Self::transform) | none |
/// | [`labels`](Self::labels), [`fields`](Self::fields) | all objects |
/// | [`namespaces`](Self::namespaces) | those of the registry |
/// | [`resync`](Self::resync) | never |
/// | [`frame_limit`](Self::frame_limit) | 16 MiB |
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct CacheOptions {
    /// Form of the cached objects.
    pub(crate) representation: Representation,
    /// Time at which objects that do not decode are detected.
    pub(crate) validate: DecodeCheckTime,
    /// Change of each object before caching.
    pub(crate) transform: Option<Transform>,
    /// Selector of labels in the server's notation; `None` for all.
    pub(crate) labels: Option<String>,
    /// Selector of fields in the server's notation; `None` for all.
    pub(crate) fields: Option<String>,
    /// Namespaces in order, without duplicates; `None` for those of the registry.
    pub(crate) namespaces: Option<Vec<String>>,
    /// Resync period of listeners that set none.
    pub(crate) resync: Option<Duration>,
    /// Whether readiness and starts do without the cache.
    pub(crate) is_optional: bool,
    /// Options of the reflectors.
    pub(crate) reading: ReflectorOptions,
}

impl CacheOptions {
    /// Sets the form in which objects are cached; default [`Representation::Compact`].
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// use windlass::informer::CacheOptions;
    /// use windlass::store::{Representation, Transform};
    ///
    /// // Many objects, rarely read, without the parts that no reader needs.
    /// let options = CacheOptions::default()
    ///     .representation(Representation::Cold)
    ///     .transform(Transform::drop_paths(&[&["status"], &["spec", "template"]]));
    /// # let _ = options;
    /// ```
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = representation;
        self
    }

    /// Sets when objects that do not decode are detected; default [`DecodeCheckTime::Lazy`].
    pub fn validate(mut self, validate: DecodeCheckTime) -> Self {
        self.validate = validate;
        self
    }

    /// Sets the change of each object before caching; default none. Two options are equal only if
    /// they share the same transform, so clone a transform rather than make it twice.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Limits the cache to objects with these labels, in the API server's notation:
    /// `app=web,tier!=back`. An object that stops matching counts as deleted for the cache.
    /// Default: all.
    ///
    /// Evaluated by the server: objects that do not match cost nothing here. Own writes are not
    /// shown before the watch shows them in such a cache.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Limits the cache to objects with these field values, such as `spec.nodeName=worker-3`; the
    /// fields that can be selected depend on the kind. Default: all.
    ///
    /// The server refuses fields that cannot be selected; the cache then stays unfilled, and the
    /// status names the refusal.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into()).filter(|selector| !selector.is_empty());
        self
    }

    /// Limits the cache to these namespaces, with a watch of each; an empty list means all.
    /// Default: those of the registry. Ignored for cluster-scoped kinds.
    ///
    /// Each namespace costs a separate watch; for most of a cluster's namespaces, watch all.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = Some(sorted(namespaces.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets the resync period of listeners that set none of their own: every cached object is
    /// delivered again after each period; at least 1 s. Default: never.
    ///
    /// Not a new list: the cached objects are delivered, as
    /// [`Change::Updated`](super::Change::Updated) with equal states.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(SHORTEST_RESYNC));
        self
    }

    /// Makes the cache optional: the operator starts and is ready without the cache, when the kind
    /// is not served, may not be read, or the server does not answer. Default: the cache is
    /// required.
    ///
    /// Readers find an empty store while the kind is absent.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Sets the longest event of a watch, or item of a list, in bytes. A longer event is dropped,
    /// and the object keeps the last known state. Default 16 MiB.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.reading = self.reading.frame_limit(bytes);
        self
    }

    /// Sets all other options of the reflectors; replaces a frame limit that was set before. Their
    /// resync has no effect here: that of listeners is [`resync`](Self::resync).
    pub fn reading(mut self, options: ReflectorOptions) -> Self {
        self.reading = options;
        self
    }

    /// Returns these options, restricted to the representations that `K` allows.
    pub(super) fn fitting<K: Resource>(self) -> Self {
        if K::projection().is_some() && self.representation != Representation::Typed {
            // A projection is always compact: the bytes are few, and a projection needs more than
            // metadata.
            return self.representation(Representation::default());
        }
        self
    }

    /// Returns the options that distinguish a cache from another of the same kind, as
    /// ` (app=web, in a and b)`; `projection` is the cached type instead of whole objects.
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

/// Sorts namespaces and removes duplicates, so that equal sets compare equal.
pub(super) fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}
