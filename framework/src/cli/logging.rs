//! Log lines on standard error: short lines for people at a terminal, full lines for files, JSON
//! for collectors.

mod fields;

use std::fmt;
use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, Uptime, uptime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use super::options::{LogFormat, Options};
use fields::{ForFiles, ForScreens, REASONS};

/// Filter of the quickstart: every reconcile and every write of a controller has a line. Left out
/// are caches that fill, definitions that exist, servers whose addresses are shown separately, and,
/// under `windlass_client::routine`, renewals of the lease and Events.
const FIRST_SCREEN: &str = "info,windlass_runtime::controller=debug,\
                            windlass_client::client::call=debug,windlass_cache::reflector=warn,\
                            windlass_runtime::manager::install=warn,\
                            windlass_runtime::manager::http=warn";

/// Target of the line that reports the end of a reconcile, and the reasons.
const WORKER: &str = "windlass_runtime::controller::worker";

/// Starts logging, unless the program has set a subscriber. With `in_detail` every reconcile and
/// every write has a line.
pub(super) fn start(options: &Options, in_detail: bool) {
    let least = options.log.least();
    let level = least.map_or(LevelFilter::INFO, LevelFilter::from_level);
    let builder = EnvFilter::builder().with_default_directive(level.into());
    // A level that a person chose replaces the filter of the quickstart.
    let is_chosen = least.is_some() || std::env::var_os("RUST_LOG").is_some();
    let filter = match in_detail && !is_chosen {
        true => builder.parse_lossy(FIRST_SCREEN),
        false => builder.from_env_lossy(),
    };
    let style = match (options.log.log_format, std::io::stderr().is_terminal()) {
        (LogFormat::Json, _) => Style::Json,
        (LogFormat::Text, true) => Style::ForPeople { colours: colours() },
        (LogFormat::Text, false) => Style::Lines,
    };
    // An error means that the program has a subscriber, which is left in place.
    let _ = subscriber(filter, style, std::io::stderr).try_init();
}

/// Format of a line.
#[derive(Clone, Copy, Debug)]
enum Style {
    ForPeople { colours: bool },
    Lines,
    Json,
}

/// Builds a subscriber that writes lines of this format.
fn subscriber<W>(filter: EnvFilter, style: Style, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match style {
        Style::Json => Box::new(lines.with_ansi(false).json().flatten_event(true).finish()),
        Style::ForPeople { colours } => {
            let lines = lines.with_ansi(colours).fmt_fields(ForScreens);
            Box::new(lines.event_format(ForPeople { since: uptime() }).finish())
        }
        Style::Lines => {
            let lines = lines.with_ansi(false).fmt_fields(ForFiles);
            Box::new(lines.compact().with_target(false).finish())
        }
    }
}

/// Whether the environment allows colours (`NO_COLOR` is unset or empty).
pub(super) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Format for people: `   0.112 apply deployments.apps "home" in "default"  website default/home`.
struct ForPeople {
    /// Time since the program started.
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
        // From the innermost span outwards.
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            // Formatted once when the span began, and not for each event.
            let fields = extensions.get::<FormattedFields<N>>();
            if let Some(fields) = fields.filter(|_| span.name() == "reconcile") {
                let (object, reasons) = fields.split_once(REASONS).unwrap_or((fields, ""));
                write!(writer, "  {dim}{}", object.trim_end())?;
                if !reasons.is_empty() && event.metadata().target().starts_with(WORKER) {
                    write!(writer, " ({})", reasons.trim_end())?;
                }
                write!(writer, "{off}")?;
            }
        }
        writeln!(writer)
    }
}
#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Foreign text, as in a message, an error, a value and a span.
    const FOREIGN: &str = "x\x1b]0;owned\x07\n2026 ERROR forged\r\u{9b}2J\u{202e}";

    fn logged(style: Style) -> String {
        let sink = Sink::default();
        let into = sink.clone();
        let subscriber = subscriber(EnvFilter::new("info"), style, move || into.clone());
        tracing::subscriber::with_default(subscriber, || {
            let error: Box<dyn std::error::Error> = FOREIGN.into();
            let span = tracing::info_span!("reconcile", key = %FOREIGN, quoted = FOREIGN);
            let _entered = span.enter();
            tracing::info!(%error, source = &*error, value = FOREIGN, debug = ?FOREIGN, "the peer says {FOREIGN}");
        });
        let bytes = sink.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// S11: foreign text forges no line and controls no terminal.
    #[test]
    fn text_of_others_forges_no_line_and_steers_no_terminal() {
        for style in [Style::ForPeople { colours: false }, Style::Lines] {
            let text = logged(style);
            let line = text.strip_suffix('\n').unwrap();
            assert!(!line.contains(char::is_control), "{style:?}: {line:?}");
            assert!(!line.contains('\u{202e}'), "{style:?}: {line:?}");
            let escaped = r"x\u{1b}]0;owned\u{7}\n2026 ERROR forged\r\u{9b}2J\u{202e}";
            assert!(line.contains(&format!("the peer says {escaped}")), "{style:?}: {line}");
            assert!(line.contains(&format!("error={escaped}")), "{style:?}: {line}");
            assert!(line.contains(&format!("key={escaped}")), "{style:?}: {line}");
        }
    }

    #[test]
    fn colours_are_the_formats_own() {
        let text = logged(Style::ForPeople { colours: true });
        let ours = ["\x1b[2m", "\x1b[1m", "\x1b[0m"];
        let rest = ours.iter().fold(text, |text, code| text.replace(code, ""));
        assert!(!rest.trim_end().contains(char::is_control), "{rest:?}");
    }

    #[test]
    fn json_has_the_text_as_it_was() {
        let text = logged(Style::Json);
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["message"], format!("the peer says {FOREIGN}"));
        assert_eq!(line["error"], FOREIGN);
        assert_eq!(line["span"]["key"], FOREIGN);
    }

    #[test]
    fn lines_have_level_message_fields_and_those_of_the_span() {
        let sink = Sink::default();
        let into = sink.clone();
        let subscriber = subscriber(EnvFilter::new("info"), Style::Lines, move || into.clone());
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("reconcile", key = %"shop/home");
            let _entered = span.enter();
            tracing::warn!(attempts = 3, wait = ?std::time::Duration::from_secs(1), name = "n", "again");
        });
        let text = String::from_utf8(sink.0.lock().clone()).unwrap();
        let (_, line) = text.split_once("  WARN ").unwrap();
        assert_eq!(line, "reconcile: again attempts=3 wait=1s name=\"n\" key=shop/home\n");
    }
}
