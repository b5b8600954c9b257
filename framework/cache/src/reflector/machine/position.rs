//! Position of a reflector in the server's versions.

// DESIGN.md, 72: Watch frames below the stream's position are dropped

use std::cmp::Ordering;

use crate::store::order;

/// The newest version seen in this epoch. The phase decides whether a watch can go on from this
/// version.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The newest version of a list, an object or a bookmark; `None` before the first list and
    /// after the versions have been forgotten.
    newest: Option<String>,
    /// The version of the last list.
    listed: Option<String>,
    /// The version at which the current stream began.
    opened: Option<String>,
}

impl Position {
    /// Returns the newest version seen in this epoch.
    pub(super) fn newest(&self) -> Option<&str> {
        self.newest.as_deref()
    }

    /// Begins anew after a list that is complete as of `version`.
    ///
    /// Unlike `advance` this function compares nothing: the list's version has been judged before.
    pub(super) fn begin(&mut self, version: &str) {
        self.set(version);
        self.listed = Some(version.to_owned());
        self.open();
    }

    /// Notes that a stream begins here.
    ///
    /// Called for each stream, also for a resumed stream: no server has to send the stream a state
    /// below this version.
    pub(super) fn open(&mut self) {
        self.opened.clone_from(&self.newest);
    }

    /// Returns whether a state of this version precedes the beginning of the stream, so that no
    /// server has to send the state.
    pub(super) fn is_before_stream(&self, version: &str) -> bool {
        self.opened.as_ref().is_some_and(|opened| is_less(version, opened))
    }

    /// Advances to `version`; false when that is not newer. Reuses the buffer.
    pub(super) fn advance(&mut self, version: &str) -> bool {
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
    /// last list. A watch that shows such a state repeats itself, and no tombstone is needed to
    /// know that: every state of that version was handed over.
    pub(super) fn has_passed(&self, version: &str) -> bool {
        let is_listed = self.listed.as_deref().is_some_and(|listed| {
            matches!(order(version, listed), Some(Ordering::Less | Ordering::Equal))
        });
        // Not for equal versions: two objects may have changed at once.
        is_listed || self.newest().is_some_and(|newest| is_less(version, newest))
    }

    /// Forgets all versions, because another epoch begins.
    ///
    /// Versions of two epochs have no common order. A position that remained would let the new
    /// epoch look like a repetition of old frames.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Sets the newest version, in the buffer of the previous version.
    fn set(&mut self, version: &str) {
        let newest = self.newest.get_or_insert_default();
        newest.clear();
        newest.push_str(version);
    }
}

/// Returns whether `version` certainly precedes `than`. False for versions that do not compare, so
/// that a frame is never dropped because of an unknown format.
fn is_less(version: &str, than: &str) -> bool {
    order(version, than) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_only_goes_forward_until_it_is_forgotten() {
        let mut position = Position::default();
        assert_eq!(position.newest(), None);
        position.begin("9");
        assert!(!position.advance("9") && !position.advance("8") && !position.advance(""));
        assert!(position.advance("10"));
        assert_eq!(position.newest(), Some("10"));
        assert!(position.has_passed("9") && !position.has_passed("10"));
        position.forget();
        assert_eq!(position.newest(), None);
        position.begin("3");
        assert_eq!(position.newest(), Some("3"));
    }
}
