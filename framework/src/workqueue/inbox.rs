//! Where keys wait while all workers are busy: whoever uses the queue next takes them in.
//!
//! A source that adds what one read of the network brought would keep workers from the queue for as long as
//! dozens of their turns take, and they would keep it waiting, each time asleep in the kernel. So it
//! leaves its keys here, and a worker that takes the next key takes these in with it: what the queue
//! knows of them stays in the memory of one processor.
//!
//! Nothing waits here for somebody who might not come: the last worker that lies down shuts the inbox, in
//! one step with its last look, and whoever finds it shut adds to the queue itself.

use super::Adding;
use super::core::Nanos;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// So many keys, equal ones too: taking them in keeps others from the queue for a fifth of a
/// millisecond.
const ROOM: usize = 4096;

/// A key with its hash, which the queue may take or change for another, and how it is wanted.
pub(super) type Wish<T> = ((u64, Option<T>), Adding);
/// Keys that were added together, and when.
pub(super) type Letter<T> = (Nanos, Vec<Wish<T>>);

/// Keys that are not in the queue yet, the first ones first.
pub(super) struct Inbox<T> {
    /// Looked at without the lock: who misses what comes just now finds it the next time, or when the
    /// inbox is shut.
    has_mail: AtomicBool,
    inside: Mutex<Inside<T>>,
}

struct Inside<T> {
    letters: Vec<Letter<T>>,
    /// Keys in all of them.
    keys: usize,
    is_shut: bool,
}

impl<T> Inbox<T> {
    /// Empty and open.
    pub(super) fn new() -> Self {
        let inside = Inside { letters: Vec::new(), keys: 0, is_shut: false };
        Self { has_mail: AtomicBool::new(false), inside: Mutex::new(inside) }
    }

    /// Leaves `keys` here; gives them back when the inbox is shut, or too full for them.
    pub(super) fn post(&self, now: Nanos, keys: Vec<Wish<T>>) -> Result<(), Vec<Wish<T>>> {
        let mut inside = self.inside.lock();
        if inside.is_shut || inside.keys + keys.len() > ROOM {
            return Err(keys);
        }
        inside.keys += keys.len();
        inside.letters.push((now, keys));
        self.has_mail.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Is there anything, as far as one sees without the lock?
    #[inline]
    pub(super) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    /// What waits here.
    #[cold]
    pub(super) fn take(&self) -> Vec<Letter<T>> {
        self.empty(&mut self.inside.lock())
    }

    /// From now on nothing comes in; takes what came before.
    pub(super) fn shut(&self) -> Vec<Letter<T>> {
        let mut inside = self.inside.lock();
        inside.is_shut = true;
        self.empty(&mut inside)
    }

    /// What comes may wait here again.
    pub(super) fn open(&self) {
        self.inside.lock().is_shut = false;
    }

    fn empty(&self, inside: &mut Inside<T>) -> Vec<Letter<T>> {
        self.has_mail.store(false, Ordering::Relaxed);
        inside.keys = 0;
        std::mem::take(&mut inside.letters)
    }
}
