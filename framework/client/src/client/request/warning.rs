//! Warnings of API servers: deprecated versions, unknown fields, admission policies.
//!
//! Only code 299 is reported, as Kubernetes uses no other. A handler receives each warning of each
//! answer, also of error answers; the handlers that print show each text only once.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::HeaderMap;
use http::header::WARNING;
use parking_lot::Mutex;

use windlass_core::wire::status::excerpt;

/// The only code that is reported: "miscellaneous persistent warning".
const PERSISTENT: u16 = 299;
/// Largest number of warnings of an answer that are reported.
const MOST: usize = 64;
/// Largest number of texts that are remembered as shown; the oldest is forgotten first.
const REMEMBERED: usize = 256;

/// A warning in the header `Warning` of a response, such as that a version is deprecated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Code of the warning, always 299: API servers send no other, and others are not reported.
    pub code: u16,
    /// Name of the server that warns; `-` without a name.
    pub agent: String,
    /// Text; a single line of at most 2 KiB.
    pub text: String,
}

/// Handler of the warnings of API servers.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use std::sync::Arc;
/// use windlass::client::{Client, ClientConfig, Warning, WarningHandler};
///
/// /// Ends the program at the first use of a deprecated version: for tests.
/// #[derive(Debug)]
/// struct Strict;
///
/// impl WarningHandler for Strict {
///     fn warn(&self, warning: &Warning, template: &str) {
///         eprintln!("{template}: {}", warning.text);
///         std::process::exit(1);
///     }
/// }
///
/// # fn main() -> Result<(), windlass::Error> {
/// let config = ClientConfig::infer()?;
/// let client = Client::builder().config(config).warning_handler(Arc::new(Strict)).build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
pub trait WarningHandler: fmt::Debug + Send + Sync + 'static {
    /// Handles `warning` of the answer to a request to `template`, such as
    /// `/api/v1/namespaces/{namespace}/pods`. A panic of the handler is caught and does not fail
    /// the call.
    fn warn(&self, warning: &Warning, template: &str);
}

/// Handler that ignores warnings: for
/// [`warning_handler`](crate::client::ClientBuilder::warning_handler).
#[derive(Clone, Copy, Debug)]
pub struct NoWarnings;

impl WarningHandler for NoWarnings {
    fn warn(&self, _: &Warning, _: &str) {}
}

/// Handler that logs each text once.
///
/// The default of clients. Level WARN; the last 256 texts are remembered.
#[derive(Debug, Default)]
pub struct LogWarnings {
    seen: Mutex<SeenWarnings>,
}

impl WarningHandler for LogWarnings {
    fn warn(&self, warning: &Warning, template: &str) {
        let new = self.seen.lock().is_new(&warning.text);
        if new {
            tracing::warn!(url = template, "the API server warns: {}", warning.text);
        }
    }
}

/// Handler that writes warnings, a line each.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use std::sync::Arc;
/// use windlass::client::{Client, ClientConfig, WriteWarnings};
///
/// # fn main() -> Result<(), windlass::Error> {
/// let handler = WriteWarnings::new(std::io::stderr()).once_each();
/// let config = ClientConfig::infer()?;
/// let client = Client::builder().config(config).warning_handler(Arc::new(handler)).build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
pub struct WriteWarnings {
    /// Locked for a line, so that lines of several calls do not mix.
    out: Mutex<Box<dyn io::Write + Send>>,
    /// Texts that were written; `None` to write each warning.
    seen: Option<Mutex<SeenWarnings>>,
    /// Whether the word `Warning` is yellow.
    colour: bool,
}

impl WriteWarnings {
    /// Creates a handler that writes every warning to `out`. Errors of `out` are ignored.
    pub fn new(out: impl io::Write + Send + 'static) -> Self {
        Self { out: Mutex::new(Box::new(out)), seen: None, colour: false }
    }

    /// Restricts the handler to a single line for each text.
    ///
    /// Default: every warning. The last 256 texts are remembered.
    #[must_use]
    pub fn once_each(mut self) -> Self {
        self.seen = Some(Mutex::default());
        self
    }

    /// Makes the handler write the word `Warning` in yellow, for terminals.
    ///
    /// Default: off. The caller checks whether `out` is a terminal.
    #[must_use]
    pub fn coloured(mut self) -> Self {
        self.colour = true;
        self
    }
}

impl WarningHandler for WriteWarnings {
    fn warn(&self, warning: &Warning, _: &str) {
        if self.seen.as_ref().is_some_and(|seen| !seen.lock().is_new(&warning.text)) {
            return;
        }
        let word = if self.colour { "\u{1b}[33;1mWarning:\u{1b}[0m" } else { "Warning:" };
        // A warning that cannot be written is dropped: the call has not failed.
        let _ = writeln!(self.out.lock(), "{word} {}", warning.text);
    }
}

impl fmt::Debug for WriteWarnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteWarnings")
            .field("once_each", &self.seen.is_some())
            .field("coloured", &self.colour)
            .finish_non_exhaustive()
    }
}

/// Texts that were shown, in the order of their arrival.
#[derive(Debug, Default)]
struct SeenWarnings {
    /// The texts, for lookups.
    texts: BTreeSet<String>,
    /// The same texts, the oldest first.
    order: VecDeque<String>,
}

impl SeenWarnings {
    /// Remembers `text`; returns whether it is new.
    fn is_new(&mut self, text: &str) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        self.texts.insert(text.to_owned());
        self.order.push_back(text.to_owned());
        true
    }
}

/// Passes the warnings of an answer to `handler`.
pub(in crate::client) fn notify(handler: &dyn WarningHandler, headers: &HeaderMap, path: &str) {
    if !headers.contains_key(WARNING) {
        return;
    }
    let template = super::path_template::template(path);
    for warning in warnings(headers) {
        // The handler is the user's code: a panic there must not fail a call that has succeeded.
        let outcome = catch_unwind(AssertUnwindSafe(|| handler.warn(&warning, &template)));
        if outcome.is_err() {
            tracing::error!(text = warning.text, "the warning handler panicked");
        }
    }
}

/// Returns the warnings of an answer; unreadable warnings are skipped.
pub(in crate::client) fn warnings(headers: &HeaderMap) -> Vec<Warning> {
    let mut found = Vec::new();
    for value in headers.get_all(WARNING) {
        let line = String::from_utf8_lossy(value.as_bytes());
        let mut rest = line.trim();
        while !rest.is_empty() && found.len() < MOST {
            let Some((warning, after)) = parse_one(rest) else {
                let header = excerpt(rest.as_bytes());
                tracing::debug!(%header, "the header has no readable warning");
                // The rest of the header has no reliable boundaries.
                break;
            };
            if warning.code == PERSISTENT && !warning.text.is_empty() {
                found.push(warning);
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
    }
    found
}

/// Parses `code agent "text" ["date"]`, followed by the end or a comma.
fn parse_one(text: &str) -> Option<(Warning, &str)> {
    let (code, rest) = text.split_once(' ')?;
    if code.len() != 3 {
        return None;
    }
    let code = code.parse().ok()?;
    let (agent, rest) = rest.trim_start().split_once(' ')?;
    let (words, rest) = quoted(rest.trim_start())?;
    let mut rest = rest.trim_start();
    if rest.starts_with('"') {
        rest = quoted(rest)?.1.trim_start();
    }
    if !rest.is_empty() && !rest.starts_with(',') {
        return None;
    }
    let warning = Warning { code, agent: agent.to_owned(), text: excerpt(words.as_bytes()) };
    Some((warning, rest))
}

/// Parses a quoted string; returns the text without quotes and escapes, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut words = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((words, &inside[at + 1..])),
            '\\' => words.push(chars.next()?.1),
            c => words.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;

    use super::*;

    fn read(values: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WARNING, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        warnings(&headers).into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn mechanism_14_warnings_are_read_as_the_standard_writes_them() {
        assert_eq!(read(&[r#"299 - "one""#, r#"299 k8s.io:443 "two""#]), ["one", "two"]);
        assert_eq!(read(&[r#"299 - "a, b" , 299 - "c \"d\" \\ e""#]), ["a, b", r#"c "d" \ e"#]);
        assert_eq!(read(&[r#"299 - "x" "Wed, 21 Oct 2026 07:28:00 GMT",299 - "y""#]), ["x", "y"]);
        assert_eq!(read(&[r#"199 - "no", 299 - "", 299 - "yes""#]), ["yes"]);
        assert_eq!(read(&["299 - \"über\u{1F600}\""]), ["über\u{1F600}"]);
        assert_eq!(read(&["299 - \"tab\\\there\""]), ["tab here"], "one line");
        let two = &warnings(&HeaderMap::from_iter([(
            WARNING,
            HeaderValue::from_static(r#"299 agent "x""#),
        )]))[0];
        assert_eq!((two.code, two.agent.as_str()), (299, "agent"));
    }

    #[test]
    fn mechanism_14_what_does_not_parse_is_left_out_and_what_was_before_it_is_kept() {
        for bad in [
            "",
            "x",
            "299",
            "299 -",
            "299 - x",
            "299 - \"x",
            "2999 - \"x\"",
            "299 - \"x\" y",
            "299 \"x\"",
        ] {
            assert!(read(&[bad]).is_empty(), "{bad}");
            assert_eq!(read(&[&format!("299 - \"kept\", {bad}")]), ["kept"], "{bad}");
        }
        let flood = vec![r#"299 - "x""#; 1000].join(",");
        assert_eq!(read(&[&flood]).len(), MOST);
        let long = format!("299 - \"{}\"", "x".repeat(10_000));
        assert!(read(&[&long])[0].len() < 2100);
    }

    #[derive(Clone, Debug, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(change: impl FnOnce(WriteWarnings) -> WriteWarnings) -> String {
        let out = Out::default();
        let handler = change(WriteWarnings::new(out.clone()));
        for text in ["a", "b", "a"] {
            handler.warn(&Warning { code: 299, agent: "-".into(), text: text.into() }, "/");
        }
        let bytes = out.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn mechanism_14_a_writer_gets_a_line_each_or_once_each_or_in_colour() {
        assert_eq!(written(|it| it), "Warning: a\nWarning: b\nWarning: a\n");
        assert_eq!(written(WriteWarnings::once_each), "Warning: a\nWarning: b\n");
        let line = "\u{1b}[33;1mWarning:\u{1b}[0m a\n";
        assert!(written(WriteWarnings::coloured).starts_with(line));
    }

    #[test]
    fn mechanism_14_texts_that_were_told_are_remembered_within_bounds() {
        let mut seen = SeenWarnings::default();
        for i in 0..REMEMBERED {
            assert!(seen.is_new(&i.to_string()));
        }
        assert!(!seen.is_new("0"));
        assert!(seen.is_new("one more") && seen.is_new("0"), "the oldest was forgotten");
        assert_eq!((seen.texts.len(), seen.order.len()), (REMEMBERED, REMEMBERED));
    }
}
