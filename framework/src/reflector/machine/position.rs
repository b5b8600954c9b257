//! Position of a reflector in the server's versions.

use std::cmp::Ordering;

use crate::store::order;

/// The newest version seen in this epoch, and whether a watch can go on from it.
#[derive(Debug, Default)]
pub(in crate::reflector) struct Position {
    newest: Option<String>,
    /// The version of the last list.
    listed: Option<String>,
    /// The version at which the current stream began.
    opened: Option<String>,
    is_resumable: bool,
}

impl Position {
    /// Returns the newest version seen in this epoch.
    pub(in crate::reflector) fn newest(&self) -> Option<&str> {
        self.newest.as_deref()
    }

    /// Returns the version to watch from; `None` when a list must come first.
    pub(in crate::reflector) fn resume(&self) -> Option<&str> {
        self.newest().filter(|_| self.is_resumable)
    }

    /// Begins anew after a list that is complete as of `version`.
    pub(in crate::reflector) fn begin(&mut self, version: &str) {
        self.set(version);
        self.listed = Some(version.to_owned());
        self.is_resumable = true;
        self.open();
    }

    /// Notes that a stream begins here.
    pub(in crate::reflector) fn open(&mut self) {
        self.opened.clone_from(&self.newest);
    }

    /// Returns whether a state of this version precedes the beginning of the stream, so that no
    /// server has to send it.
    pub(in crate::reflector) fn is_before_stream(&self, version: &str) -> bool {
        self.opened.as_ref().is_some_and(|opened| is_less(version, opened))
    }

    /// Advances to `version`; false when that is not newer. Reuses its buffer.
    pub(in crate::reflector) fn advance(&mut self, version: &str) -> bool {
        let newest = self.newest.as_deref().unwrap_or_default();
        // Versions that do not compare count as newer.
        let is_news = !version.is_empty()
            && !matches!(order(version, newest), Some(Ordering::Less | Ordering::Equal));
        if is_news {
            self.set(version);
        }
        is_news
    }

    /// Returns whether a state of this version is older than the position, or not newer than the
    /// last list. A watch that shows it repeats itself, and no tombstone is needed to know that:
    /// every state of that version was handed over.
    pub(in crate::reflector) fn has_passed(&self, version: &str) -> bool {
        let is_listed = self.listed.as_deref().is_some_and(|listed| {
            matches!(order(version, listed), Some(Ordering::Less | Ordering::Equal))
        });
        // Not for equal versions: two objects may have changed at once.
        is_listed || self.newest().is_some_and(|newest| is_less(version, newest))
    }

    /// Notes that a list must precede the next watch.
    pub(in crate::reflector) fn list_first(&mut self) {
        self.is_resumable = false;
    }

    /// Forgets all versions, because another epoch begins.
    pub(in crate::reflector) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Sets the newest version, in the buffer of the one before.
    fn set(&mut self, version: &str) {
        let newest = self.newest.get_or_insert_default();
        newest.clear();
        newest.push_str(version);
    }
}

fn is_less(version: &str, than: &str) -> bool {
    order(version, than) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_only_goes_forward_until_it_is_forgotten() {
        let mut position = Position::default();
        assert_eq!(position.resume(), None);
        position.begin("9");
        assert!(!position.advance("9") && !position.advance("8") && !position.advance(""));
        assert!(position.advance("10"));
        assert_eq!(position.resume(), Some("10"));
        assert!(position.has_passed("9") && !position.has_passed("10"));
        position.list_first();
        assert_eq!((position.resume(), position.newest()), (None, Some("10")));
        position.forget();
        position.begin("3");
        assert_eq!(position.resume(), Some("3"));
    }
}
