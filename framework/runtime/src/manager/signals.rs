//! SIGTERM and SIGINT: the first signal asks to stop, the second ends the wait.
//!
//! Work that blocks every thread of the runtime keeps the runtime from seeing any signal. A program
//! that is nothing but an operator has a thread beside the runtime for that case.

// DESIGN.md, 60: `cli::main` counts signals on a thread of its own

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Cancels `stop` at the first signal and `now` at the second.
pub(super) async fn listen(stop: CancellationToken, now: CancellationToken) {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            warn!(%error, "cannot listen to signals; this process stops without draining");
            return;
        }
    };
    let name = signals.next().await;
    info!(signal = name, "the operator stops; a second signal stops it at once");
    stop.cancel();
    let name = signals.next().await;
    warn!(signal = name, "the process stops at once");
    now.cancel();
}

/// Time after the second signal by which a program has ended, whatever the state of its threads.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a thread that ends this process at the second signal, even if no task of the runtime can
/// run.
pub fn exit_at_second_signal() {
    let two_signals = || {
        // A separate runtime: all threads of the program's may be blocked.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut signals = Signals::new()?;
            signals.next().await;
            signals.next().await;
            // Time for the program to end normally.
            windlass_core::clock::Clock::system().sleep(EXIT_TIMEOUT).await;
            std::io::Result::Ok(())
        })
    };
    let watch = move || match two_signals() {
        // Logs nothing: a blocked thread may hold the lock of standard error, too.
        Ok(()) => std::process::exit(super::Exit::Cut.code().into()),
        Err(error) => warn!(%error, "work that blocks all threads could not be stopped by signals"),
    };
    if let Err(error) = std::thread::Builder::new().name("signals".to_owned()).spawn(watch) {
        warn!(%error, "work that blocks all threads could not be stopped by signals");
    }
}

/// Waits for a signal; used before a manager runs.
pub fn first() -> impl Future<Output = ()> {
    // Registered here and not at the first poll: a signal in between is not lost.
    let signals = Signals::new();
    async move {
        match signals {
            Ok(mut signals) => drop(signals.next().await),
            Err(_) => std::future::pending().await,
        }
    }
}

/// Streams of the two signals; the process's default handling ends with the first stream.
#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Registers both handlers.
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

/// Only Ctrl-C exists on this platform.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
