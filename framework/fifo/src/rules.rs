//! The user's functions for objects on their way into a queue: key and transform.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use windlass_core::error::BoxError;

/// The function that names objects.
type KeyFn<K, T> = Arc<dyn Fn(&T) -> Result<K, BoxError> + Send + Sync>;
/// The function that trims objects.
type TransformFn<T> = Arc<dyn Fn(T) -> Result<T, BoxError> + Send + Sync>;

/// Functions that name and trim the objects of a queue; cheap to clone.
///
/// [`Shared`](super::Shared) runs them before it takes the queue's lock.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::Rules;
///
/// let rules = Rules::new(|pod: &(String, Vec<u8>)| Ok(pod.0.clone()))
///     .transform(|(name, _payload)| Ok((name, Vec::new())));
/// let (key, kept) = rules.admit(("web-0".into(), vec![1, 2, 3])).expect("it is named");
/// assert_eq!((key.as_str(), kept.1.len()), ("web-0", 0));
/// ```
pub struct Rules<K, T> {
    /// Names an object.
    key: KeyFn<K, T>,
    /// Trims an object after the object was named.
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
    /// Names objects by `key`, and keeps them as they are.
    ///
    /// An error of `key` refuses the object.
    pub fn new(key: impl Fn(&T) -> Result<K, BoxError> + Send + Sync + 'static) -> Self {
        Self { key: Arc::new(key), transform: None }
    }

    /// Adds a transform, which every object passes once, after the object's key was read.
    ///
    /// An error of `transform` refuses the object, which is then gone.
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
    /// [`EnqueueError::Key`], [`EnqueueError::Transform`].
    pub fn admit(&self, object: T) -> Result<(K, T), EnqueueError<T>> {
        let key = match (self.key)(&object) {
            Ok(key) => key,
            Err(source) => return Err(EnqueueError::Key { object, source }),
        };
        match &self.transform {
            None => Ok((key, object)),
            Some(transform) => match transform(object) {
                Ok(object) => Ok((key, object)),
                // The transform has consumed the object: only the key is left.
                Err(source) => Err(EnqueueError::Transform { key: format!("{key:?}"), source }),
            },
        }
    }
}

/// Error of an object that a queue did not take. Returns the object if the object still exists.
///
/// [`into_object`](Self::into_object) returns the object of all variants but
/// [`Transform`](Self::Transform).
pub enum EnqueueError<T> {
    /// The object's key could not be read.
    Key {
        /// The object.
        object: T,
        /// The error of the key function.
        source: BoxError,
    },
    /// The transform failed and has consumed the object.
    Transform {
        /// The object's key, for error messages.
        key: String,
        /// The error of the transform.
        source: BoxError,
    },
    /// The queue is full: take an item out first, or wait for room in a [`Shared`](super::Shared).
    Full(T),
    /// The queue is closed: no item will be taken out any more.
    Closed(T),
}

impl<T> EnqueueError<T> {
    /// Returns the object, unless a transform has consumed the object.
    pub fn into_object(self) -> Option<T> {
        match self {
            Self::Key { object, .. } | Self::Full(object) | Self::Closed(object) => Some(object),
            Self::Transform { .. } => None,
        }
    }
}

impl<T> fmt::Debug for EnqueueError<T> {
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

impl<T> fmt::Display for EnqueueError<T> {
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

impl<T> StdError for EnqueueError<T> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Key { source, .. } | Self::Transform { source, .. } => Some(&**source),
            Self::Full(_) | Self::Closed(_) => None,
        }
    }
}
