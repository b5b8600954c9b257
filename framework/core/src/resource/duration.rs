//! A duration of an object in Go's notation.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{Error, ErrorKind};

/// Units of Go's durations with their nanoseconds; both spellings of micro are read.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The longest duration of Go, in nanoseconds.
const MOST: u64 = i64::MAX as u64;

/// A duration in an object, written in the notation of Go: `1h30m0s`, `1.5s`, `100ms`.
///
/// The counterpart of `metav1.Duration`. A negative duration is refused. A duration above 292
/// years, the longest duration that Go has, is read as the longest: the schema has no bound, as a
/// pattern cannot sum, and an object that the API server has stored must be readable.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use std::time::Duration;
/// use windlass::resource::ApiDuration;
///
/// let pause: ApiDuration = "1h30m".parse()?;
/// assert_eq!(pause.get(), Duration::from_secs(5400));
/// assert_eq!(pause.to_string(), "1h30m0s");
/// # Ok::<(), windlass::Error>(())
/// ```
///
/// As a field of a custom resource the schema of the type is a text with a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiDuration(Duration);

impl ApiDuration {
    /// Returns the duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// A duration above 292 years becomes the longest duration that Go has.
impl From<Duration> for ApiDuration {
    fn from(duration: Duration) -> Self {
        Self(duration.min(Duration::from_nanos(MOST)))
    }
}

impl From<ApiDuration> for Duration {
    fn from(duration: ApiDuration) -> Self {
        duration.0
    }
}

impl FromStr for ApiDuration {
    type Err = Error;

    /// Reads a duration in Go's notation: numbers with units, or `0`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for any other text.
    fn from_str(text: &str) -> Result<Self, Error> {
        let nanos = read(text).ok_or_else(|| {
            let text = format!("{text:?} is not a duration; write it as 1h30m, 1.5s or 100ms");
            Error::new(ErrorKind::Usage, text)
        })?;
        Ok(Self(Duration::from_nanos(nanos)))
    }
}

/// Reads nanoseconds, at most the longest duration; `None` for a text that is no duration.
fn read(text: &str) -> Option<u64> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_u64;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        // The longest unit that fits: `ms` before `m`.
        let fitting = UNITS.iter().filter(|(unit, _)| behind.starts_with(unit));
        let (unit, nanos) = fitting.max_by_key(|(unit, _)| unit.len())?;
        total = total.saturating_add(part(number, *nanos)?).min(MOST);
        rest = behind.get(unit.len()..)?;
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// Reads a number with an optional fraction, in units of `nanos`; digits beyond a nanosecond are
/// cut.
fn part(number: &str, nanos: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // All are digits: a number that does not parse is too large.
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u64::MAX) };
    let (mut value, mut scale) = (0_u128, 1_u128);
    // Eighteen digits are more than a nanosecond of an hour.
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let fraction = u64::try_from(value * u128::from(nanos) / scale).ok()?;
    Some(whole.saturating_mul(nanos).saturating_add(fraction))
}

impl fmt::Display for ApiDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (unit, size) = match nanos {
            0 => return f.write_str("0s"),
            1..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            _ => {
                let (hours, minutes) = (self.0.as_secs() / 3600, self.0.as_secs() / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                let seconds = nanos % 60_000_000_000;
                return decimal(f, seconds, 1_000_000_000, "s");
            }
        };
        decimal(f, nanos, size, unit)
    }
}

/// Writes a number of units with the digits behind the point of the number.
fn decimal(f: &mut fmt::Formatter<'_>, nanos: u128, size: u128, unit: &str) -> fmt::Result {
    let (whole, rest) = (nanos / size, nanos % size);
    if rest == 0 {
        return write!(f, "{whole}{unit}");
    }
    let digits = size.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

impl Serialize for ApiDuration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ApiDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ApiDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ApiDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let pairs = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (MOST, "2562047h47m16.854775807s"),
        ];
        for (nanos, text) in pairs {
            let duration = ApiDuration::from(Duration::from_nanos(nanos));
            assert_eq!(duration.to_string(), text);
            assert_eq!(text.parse::<ApiDuration>().unwrap(), duration);
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let pairs = [
            ("0", 0),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h1m", 3_660_000_000_000),
            ("52.763us", 52_763),
            ("0.100000000000000000000h", 360_000_000_000),
            ("39h9m14.425s", 140_954_425_000_000),
        ];
        for (text, nanos) in pairs {
            let duration: ApiDuration = text.parse().unwrap();
            assert_eq!(duration.get(), Duration::from_nanos(nanos), "{text}");
        }
        for text in ["", "3", "-5s", "s", ".", ".s", "1..s", "1d", "1h 5m", "5s5"] {
            assert!(text.parse::<ApiDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_beyond_the_longest_of_go_is_read_as_the_longest() {
        let digits = format!("{}ns", "9".repeat(400));
        for text in ["9999999h", "2562047h47m16.9s", "2562047h2562047h", &digits] {
            let duration: ApiDuration = text.parse().unwrap();
            assert_eq!(duration.get(), Duration::from_nanos(MOST), "{text}");
        }
    }

    #[test]
    fn the_schema_takes_exactly_the_texts_that_are_read() {
        let schema = crate::crd::structural_schema::<ApiDuration>().unwrap().schema;
        assert_eq!(schema["type"], "string");
        let json = serde_json::to_value(ApiDuration::from(Duration::from_millis(1500))).unwrap();
        assert_eq!(json, "1.5s");
        assert!(serde_json::from_str::<ApiDuration>("\"-1s\"").is_err());
    }
}
