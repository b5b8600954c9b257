//! Secret strings, kept out of logs and overwritten in memory when they are dropped.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use zeroize::Zeroizing;

// DESIGN.md, 193: No type of the framework has the name of a kind that controllers use
/// A token, password or key. There is no `Display`, `Debug` prints `[redacted]`, and the memory is
/// overwritten on drop. Copies in other types (an HTTP header that is being sent, the TLS library's
/// key) are not overwritten.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use windlass::client::SecretString;
///
/// let token = SecretString::new("canary");
/// assert_eq!(format!("{token:?}"), "[redacted]");
/// assert_eq!(token.expose(), "canary");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct SecretString(Zeroizing<String>);

impl SecretString {
    /// Wraps `value`.
    ///
    /// The text is moved, not copied, when `value` is a `String`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// Returns the value, for the code that sends it.
    ///
    /// Do not log the value, and do not keep copies, which are not overwritten.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Reads the text of a file of at most `limit` bytes; a larger or endless file is an error.
    /// Blocks the thread.
    pub(crate) fn read(path: &Path, limit: usize) -> io::Result<Self> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(limit.min(16 << 10)));
        // A single byte beyond the limit is enough to notice a file that is too large.
        File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            let text = format!("it is larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))?;
        Ok(text.into())
    }

    /// As [`read`](Self::read), without blocking the thread.
    pub(crate) async fn load(path: &Path, limit: usize) -> io::Result<Self> {
        let path = path.to_owned();
        let read = tokio::task::spawn_blocking(move || Self::read(&path, limit));
        read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Returns whether the value is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl From<String> for SecretString {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl From<&str> for SecretString {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_overwritten_when_it_is_dropped_and_never_printed() {
        // Freed memory cannot be inspected without `unsafe`; the trait bound shows that the type
        // overwrites the memory.
        fn overwrites<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let secret = SecretString::new("canary");
        overwrites(&secret.0);
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret.expose(), "canary");
    }
}
