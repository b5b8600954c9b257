//! A world with faults on purpose: caches, the embedded API server, faults, and the oracle.
//!
//! Everything runs on a single thread, on a clock that moves only when no task can run, and every
//! choice follows from a seed: a run that fails can be replayed. Writers put states straight into
//! the server's store, so that a million versions take minutes; the caches read them over HTTP
//! through a network that breaks.

mod cache;
mod content;
mod driver;
mod faults;
mod fleet;
mod follow;
mod forms;
mod kinds;
mod late;
mod listen;
mod net;
mod run;
mod scenes;
mod stats;
mod writer;

pub use cache::{Cache, Watched};
pub use content::{Content, uid_number};
pub use kinds::{CONFIG_MAPS, ConfigMapView, GADGETS, GIZMOS, Gadget, Gizmo, Subject, definition};
pub use late::LateCache;
pub use listen::Manner;
pub use net::Net;
pub use run::{Failure, Options, Report, run};
pub use stats::{Progress, Stats};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::oracle::Book;

/// The book that all writers, listeners and readers share.
#[derive(Clone, Debug)]
pub struct Ledger {
    book: Arc<Mutex<Book>>,
}

impl Ledger {
    /// Creates a ledger over `book`, with the kinds of this module.
    pub fn new(mut book: Book) -> Self {
        for kind in kinds::NAMES {
            book.kind(kind);
        }
        Self { book: Arc::new(Mutex::new(book)) }
    }

    /// Locks the book. Do not call user code while holding the lock.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
