//! Work that takes long, away from the tasks of the worker thread.
//!
//! The tasks of the thread move to another thread meanwhile: two pieces of work that take seconds
//! each would stop all answers of a server with two workers. On a runtime of a single thread the
//! work runs in place: tests need a fixed order of events for a seed.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Most pieces of work that run at the same time: fewer than the runtime has threads for blocking
/// work, because without a free thread the tasks would not move.
const MOST: usize = 64;
/// Bytes that are read or written in place: the move of the tasks would take longer.
const SMALL: usize = 64 * 1024;

/// The right to take long, shared by all requests of a server.
#[derive(Debug)]
pub(crate) struct LongWork {
    permits: Semaphore,
    /// Pieces of work so far.
    #[cfg(test)]
    runs: AtomicUsize,
}

impl LongWork {
    pub(crate) fn new() -> Self {
        Self {
            permits: Semaphore::new(MOST),
            #[cfg(test)]
            runs: AtomicUsize::new(0),
        }
    }

    /// Runs work that may take long.
    pub(crate) async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(test)]
        self.runs.fetch_add(1, Ordering::Relaxed);
        let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
        if !matches!(flavor, Ok(RuntimeFlavor::MultiThread)) {
            return work();
        }
        let _permit = self.permits.acquire().await;
        tokio::task::block_in_place(work)
    }

    /// Runs work on a number of bytes, in place if they are few.
    pub(crate) async fn run_on<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= SMALL { work() } else { self.run(work).await }
    }

    /// Returns the number of pieces of work so far.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn tasks_of_the_only_worker_go_on_while_work_takes_long() {
        let long = LongWork::new();
        let (sender, receiver) = channel();
        tokio::spawn(async move { sender.send(()) });
        let limit = Duration::from_secs(60);
        tokio::spawn(async move { long.run(move || receiver.recv_timeout(limit)).await })
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn few_bytes_are_worked_on_in_place() {
        let long = LongWork::new();
        assert_eq!(long.run_on(SMALL, || 1).await + long.run_on(SMALL + 1, || 1).await, 2);
        assert_eq!(long.runs(), 1);
    }
}
