//! Log lines on standard error: short ones for people at a terminal, full ones for files, JSON for
//! collectors.

use std::fmt;
use std::io::IsTerminal;

use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, Uptime, uptime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::options::{LogFormat, Options};

/// What a person who watches need not see.
const FOR_MACHINES: [&str; 5] = ["reconcile_id", "path", "verb", "attempts", "code"];

/// Starts logging, unless the program has set a subscriber of its own. With `in_detail` every
/// reconcile and every write has a line.
pub(super) fn start(options: &Options, in_detail: bool) {
    let least = options.log.least();
    let level = least.map_or(LevelFilter::INFO, LevelFilter::from_level);
    let builder = EnvFilter::builder().with_default_directive(level.into());
    let told = least.is_some() || std::env::var_os("RUST_LOG").is_some();
    let filter = match in_detail && !told {
        true => builder.parse_lossy("info,windlass::controller=debug,windlass::client::call=debug"),
        false => builder.from_env_lossy(),
    };
    let terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal && colours());
    let _ = match options.log.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text if terminal => lines
            .fmt_fields(debug_fn(write_field))
            .event_format(ForPeople { since: uptime() })
            .try_init(),
        LogFormat::Text => lines.compact().with_target(false).try_init(),
    };
}

/// Does the environment allow colours?
pub(super) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// `   0.112 apply deployments.apps "home" in "default"   website default/home`
struct ForPeople {
    since: Uptime,
}

impl<S, N> FormatEvent<S, N> for ForPeople
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let paint = |style: &'static str| if writer.has_ansi_escapes() { style } else { "" };
        let (dim, off) = (paint("\x1b[2m"), paint("\x1b[0m"));
        let style = match *event.metadata().level() {
            Level::ERROR => paint("\x1b[31m"),
            Level::WARN => paint("\x1b[33m"),
            Level::INFO => paint("\x1b[1m"),
            _ => "",
        };
        let mut time = String::new();
        self.since.format_time(&mut Writer::new(&mut time))?;
        // Milliseconds are enough.
        let time = time.trim_end_matches('s');
        let end = time.find('.').map_or(time.len(), |point| (point + 4).min(time.len()));
        write!(writer, "{dim}{}{off} {style}", &time[..end])?;
        context.format_fields(writer.by_ref(), event)?;
        write!(writer, "{off}")?;
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>();
            if let Some(fields) = fields.filter(|_| span.name() == "reconcile") {
                write!(writer, "  {dim}{fields}{off}")?;
            }
        }
        writeln!(writer)
    }
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        name if FOR_MACHINES.contains(&name) => Ok(()),
        "message" => write!(writer, "{value:?} "),
        name => write!(writer, "{name}={value:?} "),
    }
}
