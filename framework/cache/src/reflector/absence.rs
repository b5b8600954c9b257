//! Queries whether a kind is served (B13: a kind that does not exist yet).

// DESIGN.md, 12: A kind that is not served counts as empty
// DESIGN.md, 34: A 404 to a list is believed when discovery confirms it
// DESIGN.md, 56: Before the first list a 404 must be confirmed, and installed kinds are looked for

use super::machine::{AttemptEnd, NotFound};
use super::sink::ReflectorSink;
use super::source::Served;
use super::{NO_PROGRESS, Reflector};

impl<T: ReflectorSink> Reflector<T> {
    /// Asks the source, before a request for a kind that was absent, whether the kind is still
    /// absent.
    pub(super) async fn discover_kind(&mut self) -> Option<AttemptEnd> {
        if !self.machine.is_absent() {
            return None;
        }
        let served = self.served().await;
        self.machine.discovery_response(served)
    }

    /// Checks a 404, which may come from a proxy, or from a server that is just starting.
    pub(super) async fn check_not_found(&mut self, end: AttemptEnd) -> AttemptEnd {
        let AttemptEnd::Absent(why) = end else { return end };
        // Read before the query, which may take long: a single 404 must not become old by the
        // query.
        let now = self.environment.clock.now();
        let not_found = self.machine.not_found(now);
        if not_found == NotFound::Confirmed {
            return AttemptEnd::Absent(why);
        }
        not_found.judge(self.served().await, why)
    }

    /// Asks the source whether the kind is served; `None` when the source gives no answer in time.
    /// Borrows no sink, because sinks need not be shared between threads.
    fn served(&self) -> impl Future<Output = Option<Served>> {
        self.environment.clock.timeout(NO_PROGRESS, self.source.is_served())
    }
}
