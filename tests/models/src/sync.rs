//! Stand-in of `crate::sync` for the modelled source: a lock, a counter and a notification over
//! loom.
//!
//! [`Notify`] behaves as tokio's: `agrees_with_tokio` plays the same random steps on both.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Stand-in without padding: places in memory do not matter to a model.
#[derive(Debug, Default)]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A lock; a panic does not poison it.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[derive(Debug)]
pub struct Notify(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    permit: bool,
    /// Calls of `notify_waiters`.
    rounds: u64,
    next: u64,
    /// In order of registration.
    waiters: Vec<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    waker: Option<Waker>,
    notice: Option<Notice>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Notice {
    One,
    All,
}

impl State {
    /// Marks a waiting task as notified and returns the task's waker; `None` without a waiting
    /// task.
    fn notify_one(&mut self) -> Option<Waker> {
        match self.waiters.iter_mut().find(|waiter| waiter.notice.is_none()) {
            Some(waiter) => {
                waiter.notice = Some(Notice::One);
                waiter.waker.take()
            }
            None => {
                self.permit = true;
                None
            }
        }
    }
}

impl Notify {
    pub fn new() -> Self {
        Self(Mutex::new(State::default()))
    }

    pub fn notify_one(&self) {
        let waker = self.0.lock().notify_one();
        waker.into_iter().for_each(Waker::wake);
    }

    pub fn notify_waiters(&self) {
        let mut state = self.0.lock();
        state.rounds += 1;
        let mut wakers = Vec::new();
        for waiter in state.waiters.iter_mut().filter(|waiter| waiter.notice.is_none()) {
            waiter.notice = Some(Notice::All);
            wakers.extend(waiter.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn notified(&self) -> Notified<'_> {
        let rounds = self.0.lock().rounds;
        Notified { notify: self, rounds, at: At::Start }
    }
}

pub struct Notified<'a> {
    notify: &'a Notify,
    rounds: u64,
    at: At,
}

#[derive(Clone, Copy)]
enum At {
    Start,
    Waiting(u64),
    Done,
}

impl Notified<'_> {
    pub fn enable(mut self: Pin<&mut Self>) -> bool {
        self.look(None)
    }

    fn look(&mut self, waker: Option<&Waker>) -> bool {
        let mut state = self.notify.0.lock();
        match self.at {
            At::Done => return true,
            At::Start => {
                if state.rounds == self.rounds && !std::mem::take(&mut state.permit) {
                    let id = state.next;
                    state.next += 1;
                    state.waiters.push(Waiter { id, waker: waker.cloned(), notice: None });
                    self.at = At::Waiting(id);
                    return false;
                }
            }
            At::Waiting(id) => {
                let at = state.waiters.iter().position(|waiter| waiter.id == id);
                let at = at.expect("a waiter stays until it is done or dropped");
                if state.waiters[at].notice.is_none() {
                    if let Some(waker) = waker {
                        state.waiters[at].waker = Some(waker.clone());
                    }
                    return false;
                }
                state.waiters.remove(at);
            }
        }
        self.at = At::Done;
        true
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.look(Some(context.waker())) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        let At::Waiting(id) = self.at else { return };
        let mut state = self.notify.0.lock();
        let at = state.waiters.iter().position(|waiter| waiter.id == id);
        let waiter = at.map(|at| state.waiters.remove(at));
        // A wake-up that no waiter has taken goes to the next.
        let waker = match waiter {
            Some(Waiter { notice: Some(Notice::One), .. }) => state.notify_one(),
            _ => None,
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
