//! SIGTERM and SIGINT: the first asks to stop, the second ends the wait.
//!
//! Work that blocks every thread of the runtime keeps it from seeing any signal. A program that is
//! nothing but an operator has a thread beside the runtime for that.

#[cfg(feature = "cli")]
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
    info!(signal = name, "stopping; a second signal stops at once");
    stop.cancel();
    let name = signals.next().await;
    warn!(signal = name, "stopping at once");
    now.cancel();
}

/// How long after the second signal a program has ended, whatever its threads do.
#[cfg(feature = "cli")]
const LAST: Duration = Duration::from_secs(2);

/// Ends this process at the second signal, even if nothing of its runtime can.
#[cfg(feature = "cli")]
pub(crate) fn insist() {
    let two_signals = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut signals = Signals::new()?;
            signals.next().await;
            signals.next().await;
            crate::clock::Clock::system().sleep(LAST).await;
            std::io::Result::Ok(())
        })
    };
    let watch = move || match two_signals() {
        // Says nothing: whoever blocks may have standard error, too.
        Ok(()) => std::process::exit(super::Exit::Cut.code().into()),
        Err(error) => warn!(%error, "work that blocks all threads could not be stopped by signals"),
    };
    if let Err(error) = std::thread::Builder::new().name("signals".to_owned()).spawn(watch) {
        warn!(%error, "work that blocks all threads could not be stopped by signals");
    }
}

/// Waits for a signal; for the time before a manager runs.
#[cfg(all(feature = "cli", feature = "local"))]
pub(crate) fn first() -> impl Future<Output = ()> {
    let signals = Signals::new();
    async move {
        match signals {
            Ok(mut signals) => drop(signals.next().await),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

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
