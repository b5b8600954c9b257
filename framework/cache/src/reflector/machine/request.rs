//! The next request of a reflector.

use std::time::Duration;

use super::Machine;
use super::phase::ListDue;
use crate::reflector::Read;
use crate::reflector::options::PAGE;

/// Number of broken streaming lists in a row after which a list in pages is tried.
///
/// A proxy may cut long streams again and again; pages are short requests and pass the proxy.
const MOST_BROKEN_STREAMS: u32 = 2;

impl Machine {
    /// Returns the next request: a first page, a streaming list or a watch. `can_stream` is asked
    /// before a list, and returns whether source and server support streaming lists.
    pub(in crate::reflector) fn next_read(&self, can_stream: impl FnOnce() -> bool) -> Read {
        let Some(due) = self.phase.due() else {
            let resource_version = self.position.newest().unwrap_or_default().to_owned();
            return Read::Watch { resource_version, timeout: self.timeout() };
        };
        let resource_version = self.list_version(due);
        let streams = self.options.streaming && can_stream();
        if streams && due.broken_streams < MOST_BROKEN_STREAMS {
            return Read::StreamingList { resource_version, timeout: self.timeout() };
        }
        let limit = self.limit(due, resource_version.as_deref());
        Read::Page { resource_version, limit, continue_token: None }
    }

    /// Returns the time after which the server is to end a watch: random between the minimum and
    /// twice that, so that watches of many clients do not end together.
    fn timeout(&self) -> Duration {
        let least = self.options.min_watch_timeout.as_secs();
        Duration::from_secs(least + self.rng.below(least))
    }

    /// Returns the version that the next list must not be older than; `None` is a consistent read.
    fn list_version(&self, due: &ListDue) -> Option<String> {
        if !self.options.stale_ok || due.needs_consistent {
            return None;
        }
        Some(self.position.newest().unwrap_or("0").to_owned())
    }

    /// Returns the items per page. Servers answer a list that names a version from memory, and
    /// whole.
    fn limit(&self, due: &ListDue, version: Option<&str>) -> Option<u32> {
        if due.unpaged {
            return None;
        }
        match self.options.page_size {
            Some(items) => Some(items).filter(|items| *items > 0),
            None if self.pages_any_version || matches!(version, None | Some("0")) => Some(PAGE),
            None => None,
        }
    }
}
