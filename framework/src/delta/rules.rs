//! What the user's code decides about objects on their way into a queue: key and transform.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::error::BoxError;

type KeyFn<K, T> = Arc<dyn Fn(&T) -> Result<K, BoxError> + Send + Sync>;
type TransformFn<T> = Arc<dyn Fn(T) -> Result<T, BoxError> + Send + Sync>;

/// How objects of a queue are named and trimmed; cheap to clone.
///
/// A shell runs these functions before it takes the queue's lock.
pub struct Rules<K, T> {
    key: KeyFn<K, T>,
    transform: Option<TransformFn<T>>,
}

impl<K, T> Clone for Rules<K, T> {
    fn clone(&self) -> Self {
        Self { key: Arc::clone(&self.key), transform: self.transform.clone() }
    }
}

impl<K, T> fmt::Debug for Rules<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("transforms", &self.transform.is_some()).finish()
    }
}

impl<K: fmt::Debug, T> Rules<K, T> {
    /// Objects are named by `key`, and kept as they are.
    pub fn new(key: impl Fn(&T) -> Result<K, BoxError> + Send + Sync + 'static) -> Self {
        Self { key: Arc::new(key), transform: None }
    }

    /// Every object passes `transform` once, after its key was read.
    #[must_use]
    pub fn transform(
        mut self,
        transform: impl Fn(T) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Names and transforms an object that comes from the source.
    ///
    /// # Errors
    /// [`Refused::Key`], [`Refused::Transform`].
    pub fn admit(&self, object: T) -> Result<(K, T), Refused<T>> {
        let key = match (self.key)(&object) {
            Ok(key) => key,
            Err(source) => return Err(Refused::Key { object, source }),
        };
        match &self.transform {
            None => Ok((key, object)),
            Some(transform) => match transform(object) {
                Ok(object) => Ok((key, object)),
                Err(source) => Err(Refused::Transform { key: format!("{key:?}"), source }),
            },
        }
    }
}

/// Why a queue did not take an object. The object comes back where it still exists.
pub enum Refused<T> {
    /// The object's key could not be read.
    Key {
        /// The object.
        object: T,
        /// What the key function said.
        source: BoxError,
    },
    /// The transform failed; the object went into it.
    Transform {
        /// The object's key, for people.
        key: String,
        /// What the transform said.
        source: BoxError,
    },
    /// The queue is full: take something out first, or wait for that in a
    /// [`Shared`](super::Shared).
    Full(T),
    /// The queue is closed, and nobody will take anything out.
    Closed(T),
}

impl<T> Refused<T> {
    /// The object, unless a transform has swallowed it.
    pub fn into_object(self) -> Option<T> {
        match self {
            Self::Key { object, .. } | Self::Full(object) | Self::Closed(object) => Some(object),
            Self::Transform { .. } => None,
        }
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { source, .. } => f.debug_struct("Key").field("source", source).finish(),
            Self::Transform { key, source } => {
                f.debug_struct("Transform").field("key", key).field("source", source).finish()
            }
            Self::Full(_) => f.write_str("Full"),
            Self::Closed(_) => f.write_str("Closed"),
        }
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { .. } => f.write_str("the object was not queued: its key cannot be read"),
            Self::Transform { key, .. } => {
                write!(f, "the object {key} was not queued: its transform failed")
            }
            Self::Full(_) => f.write_str("the object was not queued: the queue is full"),
            Self::Closed(_) => f.write_str("the object was not queued: the queue is closed"),
        }
    }
}

impl<T> StdError for Refused<T> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Key { source, .. } | Self::Transform { source, .. } => Some(&**source),
            Self::Full(_) | Self::Closed(_) => None,
        }
    }
}
