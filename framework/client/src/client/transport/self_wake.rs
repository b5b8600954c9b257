//! Suppression of the wake-ups that a watch task causes for itself.
//!
//! The task of a watch also drives the connection (see `drive`). The connection hands each chunk
//! over through a channel that wakes its reader, which is the running task. The runtime would queue
//! such a task again and wake another thread for it, once for each event. Therefore a wake-up that
//! arrives during a poll is only recorded and answered by another poll; wake-ups at other times
//! reach the task.
//!
//! Not included: the polled futures themselves.

// DESIGN.md, 95: Self-wake-ups of a watch task are suppressed

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// Polls in a row that wake-ups from within may cause before the task yields to others. Mostly a
/// single poll suffices.
const MAX_POLLS: usize = 4;

/// Separates wake-ups from within a poll from those of other tasks.
#[derive(Debug)]
pub(in crate::client) struct SelfWakeFilter {
    /// Wake-up state that is shared with `waker`.
    inner: Arc<ForwardingWaker>,
    /// Waker that the polled future registers, in place of the task's.
    waker: Waker,
}

/// Target of the substituted waker.
#[derive(Debug, Default)]
struct ForwardingWaker {
    state: Mutex<State>,
}

/// Changed by polls and by wake-ups from other threads, under a single lock: a wake-up is either
/// recorded before the poll reads the record, or passed on to the task.
#[derive(Debug, Default)]
struct State {
    /// Waker of the task that polled last.
    task: Option<Waker>,
    /// Whether a poll is running, so that wake-ups are only recorded.
    is_inside: bool,
    /// Whether a wake-up was recorded during the poll.
    was_woken: bool,
}

impl SelfWakeFilter {
    /// Creates a filter; the waker stays the same for all polls.
    pub(in crate::client) fn new() -> Self {
        let inner = Arc::<ForwardingWaker>::default();
        Self { waker: Waker::from(Arc::clone(&inner)), inner }
    }

    /// Polls `look`, and polls again if a wake-up came meanwhile.
    pub(in crate::client) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut look: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let inside = PollGuard::enter(&self.inner, cx.waker());
        let mut within = Context::from_waker(&self.waker);
        for _ in 0..MAX_POLLS {
            let polled = look(&mut within);
            // A caller that receives a value polls again before waiting, so no wake-up is lost.
            if polled.is_ready() || !inside.was_woken() {
                return polled;
            }
        }
        // Out of polls: the recorded wake-up was consumed, so the task has to be woken from
        // here.
        drop(inside);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Guard during which wake-ups are recorded and do not reach the task.
struct PollGuard<'a> {
    inner: &'a ForwardingWaker,
}

impl<'a> PollGuard<'a> {
    /// Begins a poll by `task`.
    fn enter(inner: &'a ForwardingWaker, task: &Waker) -> Self {
        let mut state = inner.state.lock();
        // Cloned only if the task has changed, which is rare: a clone changes a reference count.
        if !state.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            state.task = Some(task.clone());
        }
        (state.is_inside, state.was_woken) = (true, false);
        Self { inner }
    }

    /// Returns whether a wake-up was recorded since the last call. If not, wake-ups reach the task
    /// from now on; both happen under a single lock, so that no wake-up falls in between.
    fn was_woken(&self) -> bool {
        let mut state = self.inner.state.lock();
        let was_woken = std::mem::take(&mut state.was_woken);
        state.is_inside = was_woken;
        was_woken
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        // After a panic in the poll, too: otherwise later wake-ups would be recorded and lost.
        self.inner.state.lock().is_inside = false;
    }
}

impl Wake for ForwardingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.is_inside {
            state.was_woken = true;
            return;
        }
        let task = state.task.clone();
        // Released before the wake-up: a woken task that is polled at once takes the same lock.
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts the wake-ups of a task.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Count {
        fn times(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_wake_up_from_within_is_another_poll_and_does_not_reach_the_task() {
        let (within, count) = (SelfWakeFilter::new(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut polls = 0;
        let polled = within.poll(&mut Context::from_waker(&waker), |cx| {
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(polls)
        });
        assert_eq!((polled, count.times()), (Poll::Ready(2), 0));
    }

    #[test]
    fn a_wake_up_from_elsewhere_reaches_the_task_that_was_here_last() {
        let within = SelfWakeFilter::new();
        let (first, last) = (Arc::<Count>::default(), Arc::<Count>::default());
        let mut kept = None;
        for count in [&first, &last] {
            let waker = Waker::from(Arc::clone(count));
            let polled: Poll<()> = within.poll(&mut Context::from_waker(&waker), |cx| {
                kept.get_or_insert_with(|| cx.waker().clone());
                Poll::Pending
            });
            assert!(polled.is_pending());
        }
        kept.expect("it was polled").wake();
        assert_eq!((first.times(), last.times()), (0, 1));
    }

    #[test]
    fn what_wakes_itself_for_ever_lets_others_run() {
        let (within, count) = (SelfWakeFilter::new(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut polls = 0;
        let polled: Poll<()> = within.poll(&mut Context::from_waker(&waker), |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!((polled, polls, count.times()), (Poll::Pending, MAX_POLLS, 1));
    }

    #[test]
    fn after_a_panic_wake_ups_reach_the_task() {
        let (within, count) = (SelfWakeFilter::new(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut kept = None;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            within.poll::<()>(&mut Context::from_waker(&waker), |cx| {
                kept = Some(cx.waker().clone());
                panic!("in a look")
            })
        }));
        assert!(outcome.is_err());
        kept.expect("it was polled").wake();
        assert_eq!(count.times(), 1);
    }
}
