//! Log lines on standard error: compact for people, JSON for collectors.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::uptime;

use super::options::{LogFormat, Options};

/// Starts logging, unless the program has set a subscriber of its own.
pub(super) fn start(options: &Options) {
    let level = options.log_level.map_or(LevelFilter::INFO, LevelFilter::from_level);
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal && colours());
    let _ = match options.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        // A person at a terminal wants to know how long after the start, not the date.
        LogFormat::Text if terminal => {
            lines.compact().with_target(false).with_timer(uptime()).try_init()
        }
        LogFormat::Text => lines.compact().with_target(false).try_init(),
    };
}

/// Does the environment allow colours?
pub(super) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
