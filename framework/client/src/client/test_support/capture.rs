//! Capture of traces as text, for a single thread.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// Captured traces, a line for each span and event.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Captured {
    /// Captures the traces of this thread at `level` and below, until the guard is dropped.
    #[doc(hidden)]
    pub fn at(level: Level) -> (Self, DefaultGuard) {
        let captured = Self::default();
        let lines = Arc::clone(&captured.lines);
        let capture = Capture { lines, level, next: AtomicU64::new(1) };
        (captured, tracing::subscriber::set_default(capture))
    }

    #[doc(hidden)]
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Returns the lines that contain `text`.
    #[doc(hidden)]
    pub fn with(&self, text: &str) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.contains(text)).collect()
    }

    #[doc(hidden)]
    pub fn text(&self) -> String {
        self.lines().join("\n")
    }
}

struct Capture {
    lines: Arc<Mutex<Vec<String>>>,
    level: Level,
    next: AtomicU64,
}

impl Capture {
    fn push(&self, metadata: Option<&Metadata<'_>>, name: &str, fields: Fields) {
        let (level, target) = metadata.map_or(("", ""), |m| (m.level().as_str(), m.target()));
        self.lines.lock().push(format!("{level} {target} {name}{}", fields.0));
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.push(Some(span.metadata()), span.metadata().name(), fields);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.push(None, "record", fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.push(Some(event.metadata()), "event", fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
