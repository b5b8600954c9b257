//! SIGTERM and SIGINT: the first asks to stop, the second ends the wait.

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
