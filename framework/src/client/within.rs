//! A waker for a task that runs what wakes it.
//!
//! A watch runs its own connection (see `drive`), and the connection hands every piece over through
//! a channel that wakes the piece's reader: the very task that is running. To the runtime that is a
//! task that wants to go on at once; it queues it anew and wakes another thread for it, once for each
//! event of a watch. So what wakes the task from within is noted here and answered by another look,
//! and only wake-ups from elsewhere reach the task.
//!
//! Not here: what is polled, and when it is ready.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// So often in a row wake-ups from within are answered by another look; then other tasks have their
/// turn. One is the rule.
const LOOKS: usize = 4;

/// Tells wake-ups from within from those that come from elsewhere.
#[derive(Debug)]
pub(super) struct Within {
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Who was last here.
    task: Option<Waker>,
    is_inside: bool,
    has_rung: bool,
}

impl Within {
    pub(super) fn new() -> Self {
        let bell = Arc::<Bell>::default();
        Self { waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// Polls `look`, and polls it again when it was woken meanwhile.
    pub(super) fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut look: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let inside = Inside::enter(&self.bell, cx.waker());
        let mut within = Context::from_waker(&self.waker);
        for _ in 0..LOOKS {
            let polled = look(&mut within);
            // Whoever gets something polls again before it waits.
            if polled.is_ready() || !inside.has_rung() {
                return polled;
            }
        }
        drop(inside);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Until it is dropped, wake-ups are noted.
struct Inside<'a> {
    bell: &'a Bell,
}

impl<'a> Inside<'a> {
    fn enter(bell: &'a Bell, task: &Waker) -> Self {
        let mut state = bell.state.lock();
        if !state.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            state.task = Some(task.clone());
        }
        (state.is_inside, state.has_rung) = (true, false);
        Self { bell }
    }

    /// Was it woken since it was last asked? If not, from now on wake-ups reach the task: none falls
    /// in between.
    fn has_rung(&self) -> bool {
        let mut state = self.bell.state.lock();
        let has_rung = std::mem::take(&mut state.has_rung);
        state.is_inside = has_rung;
        has_rung
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.bell.state.lock().is_inside = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.is_inside {
            state.has_rung = true;
            return;
        }
        let task = state.task.clone();
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

    /// Counts how often a task was woken.
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
    fn a_wake_up_from_within_is_another_look_and_does_not_reach_the_task() {
        let (within, count) = (Within::new(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut looks = 0;
        let polled = within.poll(&mut Context::from_waker(&waker), |cx| {
            looks += 1;
            if looks == 1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(looks)
        });
        assert_eq!((polled, count.times()), (Poll::Ready(2), 0));
    }

    #[test]
    fn a_wake_up_from_elsewhere_reaches_the_task_that_was_here_last() {
        let within = Within::new();
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
        let (within, count) = (Within::new(), Arc::<Count>::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut looks = 0;
        let polled: Poll<()> = within.poll(&mut Context::from_waker(&waker), |cx| {
            looks += 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!((polled, looks, count.times()), (Poll::Pending, LOOKS, 1));
    }

    #[test]
    fn after_a_panic_wake_ups_reach_the_task() {
        let (within, count) = (Within::new(), Arc::<Count>::default());
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
