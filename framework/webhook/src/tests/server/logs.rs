//! The texts of logs.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Keeps all texts of logs, at every level.
#[derive(Clone)]
pub(super) struct Captured(Arc<Mutex<String>>);

impl Default for Captured {
    fn default() -> Self {
        // While a process has a single subscriber, tracing lets the thread that meets a log first
        // decide for all threads whether anybody is interested: that of another test is not.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Self(Arc::default())));
        Self(Arc::default())
    }
}

impl Captured {
    fn add(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

struct Fields<'a>(&'a Captured);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.add(&format!("{}={value:?}\n", field.name()));
    }
}

impl Subscriber for Captured {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields(self));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(self));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(self));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
