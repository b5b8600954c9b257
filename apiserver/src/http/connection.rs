//! Connections of a socket: whether a request runs on them, and since when none does.
//!
//! Every client that reaches a socket may open connections and send nothing. A server with a
//! bounded number of connections therefore cuts those that have been idle the longest, instead of
//! refusing new connections. Those on which a user has proved an identity come last: strangers who
//! come and go cut only each other.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The open connections of a socket.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    inner: Mutex<Inner>,
}

/// State behind the lock.
#[derive(Debug, Default)]
struct Inner {
    /// Number that the next connection, or the next idle period, gets.
    next: u64,
    /// Open connections by number.
    open: BTreeMap<u64, State>,
    /// Idle connections: those of strangers first, then in the order in which they became idle.
    idle: BTreeMap<CutOrder, u64>,
}

/// Place of an idle connection in the order in which they are cut: whether a user is known, and
/// period.
type CutOrder = (bool, u64);

/// State of a connection.
#[derive(Debug)]
struct State {
    /// Requests whose answers have not been written to the end.
    running: usize,
    /// The idle period, if there is none.
    period: u64,
    /// Whether a user has proved an identity on the connection.
    is_known: bool,
    /// Cuts the connection.
    cut: CancellationToken,
}

impl State {
    fn place(&self) -> CutOrder {
        (self.is_known, self.period)
    }
}

impl Connections {
    /// Adds a connection, which is idle at first. The connection is removed when the returned value
    /// is dropped.
    pub(crate) fn open(self: &Arc<Self>, cut: CancellationToken) -> OpenConnection {
        let mut inner = self.inner.lock();
        let (number, period) = (inner.next, inner.next + 1);
        inner.next += 2;
        inner.open.insert(number, State { running: 0, period, is_known: false, cut });
        inner.idle.insert((false, period), number);
        OpenConnection { all: Arc::clone(self), number }
    }

    /// Cuts the connection that has been idle the longest, preferably a stranger's; returns whether
    /// any was cut.
    pub(crate) fn cut_idle(&self) -> bool {
        let mut inner = self.inner.lock();
        let Some((_, number)) = inner.idle.pop_first() else { return false };
        let Some(state) = inner.open.get(&number) else { return false };
        state.cut.cancel();
        true
    }

    /// Notes that a request begins on a connection.
    fn begin(&self, number: u64) {
        let mut inner = self.inner.lock();
        let Some(state) = inner.open.get_mut(&number) else { return };
        state.running += 1;
        let place = state.place();
        inner.idle.remove(&place);
    }

    /// Notes that a user has proved an identity on a connection, or has failed to.
    fn identify(&self, number: u64, is_known: bool) {
        let mut inner = self.inner.lock();
        let Some(state) = inner.open.get_mut(&number) else { return };
        let before = state.place();
        state.is_known = is_known;
        let place = state.place();
        if let Some(number) = inner.idle.remove(&before) {
            inner.idle.insert(place, number);
        }
    }

    /// Notes that a request has ended on a connection.
    fn end(&self, number: u64) {
        let mut inner = self.inner.lock();
        let period = inner.next;
        inner.next += 1;
        let Some(state) = inner.open.get_mut(&number) else { return };
        state.running = state.running.saturating_sub(1);
        if state.running == 0 {
            state.period = period;
            let place = state.place();
            inner.idle.insert(place, number);
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    all: Arc<Connections>,
    number: u64,
}

impl OpenConnection {
    /// Notes that a request begins and runs until the returned value is dropped.
    pub(super) fn begin(&self) -> ActiveRequest {
        self.all.begin(self.number);
        ActiveRequest { all: Arc::clone(&self.all), number: self.number }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut inner = self.all.inner.lock();
        if let Some(state) = inner.open.remove(&self.number) {
            inner.idle.remove(&state.place());
        }
    }
}

/// A request that runs.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    all: Arc<Connections>,
    number: u64,
}

impl ActiveRequest {
    /// Notes whether the request's user has proved an identity.
    pub(super) fn identify(&self, is_known: bool) {
        self.all.identify(self.number, is_known);
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.all.end(self.number);
    }
}

/// The body of an answer, whose request runs until the body has been written or given up.
#[derive(Debug)]
pub(super) struct RunningBody<B> {
    body: B,
    _running: Option<ActiveRequest>,
}

impl<B> RunningBody<B> {
    /// Joins a body and its request; `None` on a connection that is not counted.
    pub(super) fn new(body: B, running: Option<ActiveRequest>) -> Self {
        Self { body, _running: running }
    }
}

impl<B: Body + Unpin> Body for RunningBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_has_been_idle_the_longest_is_cut() {
        let all = Arc::new(Connections::default());
        let cuts: Vec<CancellationToken> = (0..3).map(|_| CancellationToken::new()).collect();
        let open: Vec<OpenConnection> = cuts.iter().map(|cut| all.open(cut.clone())).collect();
        let is_cut = || cuts.iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
        let busy = open[0].begin();
        drop(open[1].begin());
        assert!(all.cut_idle());
        assert_eq!(is_cut(), [false, false, true], "the second was idle later");
        assert!(all.cut_idle());
        assert_eq!(is_cut(), [false, true, true]);
        assert!(!all.cut_idle(), "a request runs on the last one");
        drop(busy);
        assert!(all.cut_idle());
    }

    #[test]
    fn strangers_who_come_and_go_never_cut_the_connection_of_a_user() {
        let all = Arc::new(Connections::default());
        let known = CancellationToken::new();
        let user = all.open(known.clone());
        let running = user.begin();
        running.identify(true);
        drop(running);
        for _ in 0..3 {
            let _stranger = all.open(CancellationToken::new());
            assert!(all.cut_idle());
        }
        assert!(!known.is_cancelled());
        assert!(all.cut_idle(), "without strangers it is the turn of users");
        assert!(known.is_cancelled());
    }

    #[test]
    fn a_connection_that_ended_is_not_counted() {
        let all = Arc::new(Connections::default());
        let open = all.open(CancellationToken::new());
        let running = open.begin();
        drop(open);
        drop(running);
        assert!(!all.cut_idle());
        assert!(all.inner.lock().open.is_empty());
    }
}
