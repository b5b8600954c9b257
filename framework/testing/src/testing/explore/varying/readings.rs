//! Numbers within values: durations, times of a day and counts, as operators show them.

use serde_json::Value;

/// Longest text that is read.
const LONGEST: usize = 256;
/// Units of durations, longer names first, with their seconds.
const UNITS: [(&str, f64); 8] = [
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ns", 1e-9),
    ("d", 86_400.0),
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
];
/// Signs around a word that are no part of it.
const AROUND: [char; 8] = ['(', ')', ',', ';', ':', '"', '\'', '.'];

/// A number within a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// Seconds, where there is a unit.
    pub(super) value: f64,
    /// Seconds of the smallest unit that is shown; `None` for a number without a unit.
    pub(super) step: Option<f64>,
    /// Whether the value is written as a time of a day is.
    pub(super) is_clock: bool,
}

impl Reading {
    /// Returns a number without a unit.
    pub(super) fn number(value: f64) -> Self {
        Self { value, step: None, is_clock: false }
    }
}

/// The numbers of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Readings {
    /// The value without its numbers.
    words: String,
    pub(super) all: Vec<Reading>,
}

impl Readings {
    /// Returns the numbers of a value; `None` when there are none.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                Some(Self { words: String::new(), all: vec![Reading::number(number.as_f64()?)] })
            }
            Value::String(text) if text.len() <= LONGEST => Self::of_text(text),
            _ => None,
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (mut words, mut all) = (String::new(), Vec::new());
        for word in text.split_whitespace() {
            let bare = word.trim_matches(AROUND);
            match reading(bare) {
                Some(reading) => {
                    all.push(reading);
                    words.push_str(if reading.step.is_some() { " <time>" } else { " <number>" });
                }
                None => {
                    words.push(' ');
                    words.push_str(word);
                }
            }
        }
        (!all.is_empty()).then_some(Self { words, all })
    }

    /// Whether two values differ in their numbers alone.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.words == other.words && self.all.len() == other.all.len()
    }
}

/// Returns the number that a word is.
fn reading(word: &str) -> Option<Reading> {
    if !word.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(number) = word.parse::<i64>() {
        return Some(Reading::number(number as f64));
    }
    if let Some(value) = clock(word) {
        return Some(Reading { value, step: Some(1.0), is_clock: true });
    }
    let (value, step) = duration(word)?;
    Some(Reading { value, step: Some(step), is_clock: false })
}

/// Reads `HH:MM:SS`.
fn clock(word: &str) -> Option<f64> {
    let mut parts = word.split(':');
    let parts = [parts.next()?, parts.next()?, parts.next()?, parts.next().unwrap_or_default()];
    let [hours, minutes, seconds, ""] = parts else { return None };
    let is_short = |part: &str| part.len() == 2;
    if !is_short(minutes) || !is_short(seconds) {
        return None;
    }
    let number = |part: &str| part.parse::<u16>().ok().map(f64::from);
    Some(number(hours)? * 3600.0 + number(minutes)? * 60.0 + number(seconds)?)
}

/// Reads a duration, such as `1h30m`, `-2.5s` or `PT1M`: seconds, and those of the smallest unit.
fn duration(word: &str) -> Option<(f64, f64)> {
    let (sign, word) = word.strip_prefix('-').map_or((1.0, word), |rest| (-1.0, rest));
    let lower = word.strip_prefix('P').map(|rest| rest.replace('T', "").to_ascii_lowercase());
    let mut rest = lower.as_deref().unwrap_or(word);
    let (mut value, mut step) = (0.0, f64::MAX);
    while !rest.is_empty() {
        let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let (number, after) = rest.split_at(end);
        let (name, seconds) = UNITS.iter().find(|(name, _)| after.starts_with(name))?;
        let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
        value += number.parse::<f64>().ok()? * seconds;
        step = step.min(seconds / 10_f64.powi(i32::try_from(digits).ok()?));
        rest = &after[name.len()..];
    }
    (step < f64::MAX).then_some((sign * value, step))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Vec<(f64, Option<f64>)> {
        let readings = Readings::of(&value).map(|found| found.all).unwrap_or_default();
        readings.iter().map(|reading| (reading.value, reading.step)).collect()
    }

    #[test]
    fn durations_and_counts_are_read_as_operators_show_them() {
        for (text, value, step) in [
            ("3m", 180.0, 60.0),
            ("1m20s", 80.0, 1.0),
            ("2d3h", 183_600.0, 3600.0),
            ("-1.5s", -1.5, 0.1),
            ("250ms", 0.25, 1e-3),
            ("PT1M5S", 65.0, 1.0),
            ("P1DT2H", 93_600.0, 3600.0),
            ("01:00:05", 3605.0, 1.0),
        ] {
            assert_eq!(read(json!(text)), [(value, Some(step))], "{text}");
        }
        assert_eq!(read(json!(7)), [(7.0, None)]);
        let several = read(json!("attempt 2 of 5 failed (after 10s)."));
        assert_eq!(several, [(2.0, None), (5.0, None), (10.0, Some(1.0))]);
    }

    #[test]
    fn words_with_digits_are_no_numbers() {
        for text in ["a-1", "sha256:07", "2026-01-01", "10.0.0.7", "3 m4x", "1:2", "m", "10Mi", ""]
        {
            let found = read(json!(text));
            assert!(found.iter().all(|(_, step)| step.is_none()), "{text}: {found:?}");
        }
        assert_eq!(read(json!("web-1 is 2026-01-01")), []);
    }

    #[test]
    fn values_that_differ_in_other_words_are_not_alike() {
        let of = |text: &str| Readings::of(&json!(text)).unwrap();
        assert!(of("ready after 10s").is_like(&of("ready after 3m")));
        assert!(!of("ready after 10s").is_like(&of("late after 10s")));
        assert!(!of("2 of 3").is_like(&of("2s of 3")));
    }
}
