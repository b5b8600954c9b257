//! Text of log fields: durations rounded, options without their wrapping, control characters
//! escaped.

use std::borrow::Cow;
use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use crate::cli::escape::escaped;

/// Fields that are left out on a terminal.
const FOR_MACHINES: [&str; 5] = ["reconcile_id", "path", "verb", "attempts", "code"];
/// Separator before the reasons in the fields of a reconcile's span; the reasons are shown with its
/// end only.
pub(super) const REASONS: &str = "  because: ";

/// Format of all fields.
pub(super) struct ForFiles;
/// Format for a terminal: a reconcile's span is the controller and the object.
pub(super) struct ForScreens;

impl<'w> FormatFields<'w> for ForFiles {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        writer.write_str(&RecordedFields::of(fields).plain())
    }
}

impl<'w> FormatFields<'w> for ForScreens {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut fields = RecordedFields::of(fields);
        if let Some(span) = fields.reconcile() {
            return writer.write_str(&span);
        }
        fields.0.retain(|(name, _)| !FOR_MACHINES.contains(name));
        writer.write_str(&fields.plain())
    }
}

/// Recorded fields, by name, as escaped text.
#[derive(Default)]
struct RecordedFields(Vec<(&'static str, String)>);

impl RecordedFields {
    /// Records all fields of an event or a span.
    fn of(recorded: impl RecordFields) -> Self {
        let mut fields = Self::default();
        recorded.record(&mut fields);
        fields
    }

    /// Prints the message, then each field as `name=value`.
    fn plain(&self) -> String {
        let show = |(name, value): &(&str, String)| match *name {
            "message" => value.clone(),
            // Raw identifiers, such as `r#type`, lose their prefix.
            name => format!("{}={value}", name.trim_start_matches("r#")),
        };
        self.0.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    /// Prints `website default/home` and the reasons, if these are the fields of a reconcile's
    /// span.
    fn reconcile(&self) -> Option<String> {
        let get = |wanted: &str| self.0.iter().find(|(name, _)| *name == wanted);
        let text = |wanted: &str| Some(get(wanted)?.1.trim_matches('"').to_owned());
        // Only the span of a reconcile has this field.
        get("reconcile_id")?;
        let (controller, name) = (text("controller")?, text("name")?);
        let place = text("namespace").filter(|namespace| !namespace.is_empty());
        let place = place.map(|namespace| namespace + "/").unwrap_or_default();
        let reasons = text("reasons").unwrap_or_default();
        Some(format!("{controller} {place}{name}{REASONS}{reasons}"))
    }
}

impl Visit for RecordedFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if let Some(text) = tidy(&text) {
            self.0.push((field.name(), escaped(&text)));
        }
    }
}

/// Shortens a value's `Debug` text for people; `None` for an absent value.
fn tidy(text: &str) -> Option<Cow<'_, str>> {
    if text == "None" {
        return None;
    }
    match text.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => tidy(inner),
        None => Some(rounded(text).map_or(Cow::Borrowed(text), Cow::Owned)),
    }
}

/// Rounds a duration to the digits that a person needs.
fn rounded(text: &str) -> Option<String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..unit_at].parse().ok()?;
    let seconds = match &text[unit_at..] {
        "s" => number,
        "ms" => number / 1e3,
        "µs" => number / 1e6,
        "ns" => number / 1e9,
        _ => return None,
    };
    // Each bound lies where rounding would reach the next form.
    Some(match seconds {
        0.0 => "0s".to_owned(),
        ..0.001 => "<1ms".to_owned(),
        ..0.9995 => format!("{:.0}ms", seconds * 1e3),
        ..9.95 => format!("{}s", (seconds * 10.0).round() / 10.0),
        ..119.5 => format!("{seconds:.0}s"),
        ..7170.0 => format!("{:.0}m", seconds / 60.0),
        _ => format!("{}h", (seconds / 360.0).round() / 10.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        tidy(text).map(Cow::into_owned)
    }

    #[test]
    fn durations_have_the_digits_that_a_person_needs() {
        for (given, expected) in [
            ("0ns", "0s"),
            ("812.345µs", "<1ms"),
            ("4.8123ms", "5ms"),
            ("812.3ms", "812ms"),
            ("1.2345s", "1.2s"),
            ("2s", "2s"),
            ("42.51s", "43s"),
            ("300s", "5m"),
            ("36000s", "10h"),
        ] {
            assert_eq!(shown(given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn an_option_is_its_value_and_none_is_not_shown() {
        assert_eq!(shown("Some(812.345µs)").as_deref(), Some("<1ms"));
        assert_eq!(shown("Some(Some(\"a\"))").as_deref(), Some("\"a\""));
        assert_eq!(shown("None"), None);
        assert_eq!(shown("Some(None)"), None);
    }

    #[test]
    fn other_values_stay_as_they_are() {
        for text in
            ["", "home", "\"2s\"", "5", "1.5", "3s later", "s", "..s", "10.0.0.1", "x(Some(1))"]
        {
            assert_eq!(shown(text).as_deref(), Some(text));
        }
    }
}
