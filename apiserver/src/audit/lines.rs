//! The thread that writes the lines of the audit log.

use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Number of lines that may wait for the log's file; further lines are lost, and counted.
const WAITING: usize = 16_384;
/// Number of waiting lines from which on those of strangers are lost.
const WAITING_OF_STRANGERS: usize = WAITING / 2;
/// Longest wait for the last lines: a pipe may have no reader.
const LONGEST: Duration = Duration::from_secs(5);

/// Lines on their way to the log.
#[derive(Debug)]
pub(super) struct Lines {
    sender: SyncSender<String>,
    /// Lines that the thread was given, and that are not in the log yet.
    waiting: Arc<AtomicUsize>,
    /// Cancelled when the thread has ended.
    ended: CancellationToken,
}

impl Lines {
    /// Starts the thread.
    pub(super) fn start(log: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let (waiting, ended) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let (left, guard) = (Arc::clone(&waiting), ended.clone().drop_guard());
        std::thread::Builder::new().name("windlass-audit".to_owned()).spawn(move || {
            if let Err(error) = write(log, &receiver, &left) {
                tracing::error!(%error, "the audit log cannot be written, and ends");
            }
            drop(guard);
        })?;
        Ok(Self { sender, waiting, ended })
    }

    /// Adds a line; false if there are too many.
    pub(super) fn add(&mut self, line: String, is_strange: bool) -> bool {
        // Any ordering would do, here and below: the number guards no data, and the channel orders
        // the lines.
        if is_strange && self.waiting.load(Ordering::SeqCst) >= WAITING_OF_STRANGERS {
            return false;
        }
        // Counted first: the thread may write the line before `try_send` returns.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let is_sent = self.sender.try_send(line).is_ok();
        if !is_sent {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        is_sent
    }

    /// Ends the lines and waits until they have been written, but not for ever. Returns the number
    /// of those that were not.
    pub(super) async fn close(self) -> u64 {
        let Self { sender, waiting, ended } = self;
        drop(sender);
        if tokio::time::timeout(LONGEST, ended.cancelled()).await.is_err() {
            tracing::warn!("the audit log takes no lines, and is not waited for any longer");
        }
        u64::try_from(waiting.load(Ordering::SeqCst)).unwrap_or(u64::MAX)
    }
}

/// Writes lines until no sender is left.
fn write(
    log: Box<dyn Write + Send>,
    lines: &Receiver<String>,
    waiting: &AtomicUsize,
) -> std::io::Result<()> {
    let mut log = BufWriter::new(log);
    while let Ok(line) = lines.recv() {
        writeln!(log, "{line}")?;
        let mut written = 1;
        // The gathered lines, and then a single write for all.
        while let Ok(line) = lines.try_recv() {
            writeln!(log, "{line}")?;
            written += 1;
        }
        log.flush()?;
        waiting.fetch_sub(written, Ordering::SeqCst);
    }
    Ok(())
}
