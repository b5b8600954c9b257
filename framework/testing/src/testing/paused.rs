//! Threads and runtimes of runs whose clock is paused.

use tokio::runtime::Runtime;

/// Stack of a thread, in bytes: futures of operators without optimization are large.
pub(super) const STACK: usize = 16 << 20;

/// Returns a runtime whose clock is paused.
pub(super) fn paused_runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
}

/// Runs work on a thread with a large stack: a test's own one may be inside of a runtime.
pub(super) fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("explore".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err("the run panicked outside of its workload".to_owned()),
            Err(error) => Err(format!("cannot start a thread: {error}")),
        }
    })
}
