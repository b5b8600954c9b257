//! Durations in nanoseconds as Go's `time.Duration`: reading, writing, arithmetic with checks,
//! parts.

use std::sync::LazyLock;

use regex::Regex;

use super::number::{self, INT_OVERFLOW};

const SECOND: i64 = 1_000_000_000;
/// Largest magnitude that a part may have during the sum: that of the smallest `i64`.
const LIMIT: u64 = 1 << 63;

/// A duration in nanoseconds, 290 years at most in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(i64);

impl Duration {
    /// The duration of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    /// Nanoseconds; also `int(duration)`.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The duration that Go's `time.ParseDuration` reads, such as `-1h30m` or `1.5s`.
    ///
    /// # Errors
    ///
    /// Go's message. cel-go prints another text: `duration(text)` fails with
    /// `type conversion error from 'string' to 'google.protobuf.Duration'`.
    pub fn parse(text: &str) -> Result<Duration, String> {
        parse_go(text).map_err(|cause| format!("time: {cause} {}", quote(text)))
    }

    /// The duration that kube-openapi's `strfmt.ParseDuration` reads, for `format: duration` of a
    /// schema: Go's form, or numbers with units up to weeks (`2 days 3hours`) anywhere in the text.
    ///
    /// # Errors
    ///
    /// kube-openapi's message.
    pub fn parse_schema_format(text: &str) -> Result<Duration, String> {
        match parse_go(text) {
            Ok(duration) => Ok(duration),
            Err(_) => parse_words(text),
        }
    }

    /// The sum.
    ///
    /// # Errors
    ///
    /// [`INT_OVERFLOW`].
    pub fn checked_add(self, other: Duration) -> Result<Duration, &'static str> {
        self.0.checked_add(other.0).map(Duration).ok_or(INT_OVERFLOW)
    }

    /// The difference.
    ///
    /// # Errors
    ///
    /// [`INT_OVERFLOW`].
    pub fn checked_sub(self, other: Duration) -> Result<Duration, &'static str> {
        self.0.checked_sub(other.0).map(Duration).ok_or(INT_OVERFLOW)
    }

    /// The duration in the other direction.
    ///
    /// # Errors
    ///
    /// [`INT_OVERFLOW`].
    pub fn checked_neg(self) -> Result<Duration, &'static str> {
        self.0.checked_neg().map(Duration).ok_or(INT_OVERFLOW)
    }

    /// Whole hours: `getHours`.
    pub const fn hours(self) -> i64 {
        self.0 / (3600 * SECOND)
    }

    /// The whole duration in minutes, rounded toward zero: `getMinutes`.
    pub const fn minutes(self) -> i64 {
        self.0 / (60 * SECOND)
    }

    /// The whole duration in seconds, rounded toward zero: `getSeconds`.
    pub const fn seconds(self) -> i64 {
        self.0 / SECOND
    }

    /// The whole duration in milliseconds, rounded toward zero: `getMilliseconds`.
    pub const fn milliseconds(self) -> i64 {
        self.0 / 1_000_000
    }

    /// The text of CEL, `string(duration)`: seconds as a decimal number, `5400s`, `-0.001s`.
    pub fn to_cel_string(self) -> String {
        // Through a double as in Go, which loses nanoseconds of long durations.
        let seconds = (self.0 / SECOND) as f64 + (self.0 % SECOND) as f64 / 1e9;
        format!("{}s", number::format_plain_double(seconds))
    }

    /// The text of Go's `Duration.String`: `1h30m0s`, `1.5ms`.
    pub fn to_go_string(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{sign}{nanos}ns"),
            1_000..1_000_000 => format!("{sign}{}µs", fraction(nanos, 3)),
            1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(nanos, 6)),
            _ => {
                let (minutes, rest) = (nanos / 60_000_000_000, fraction(nanos % 60_000_000_000, 9));
                match (minutes / 60, minutes % 60) {
                    (0, 0) => format!("{sign}{rest}s"),
                    (0, minutes) => format!("{sign}{minutes}m{rest}s"),
                    (hours, minutes) => format!("{sign}{hours}h{minutes}m{rest}s"),
                }
            }
        }
    }
}

/// `value / 10^digits` without trailing zeros.
fn fraction(value: u64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let text = format!("{}.{:0width$}", value / unit, value % unit, width = digits as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Go's quoting in messages of its `time` package: bytes outside of printable ASCII as `\x..`.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='\x7f' => out.push(c),
            _ => c
                .encode_utf8(&mut [0; 4])
                .bytes()
                .for_each(|byte| out.push_str(&format!("\\x{byte:02x}"))),
        }
    }
    out.push('"');
    out
}

/// Nanoseconds of a unit of Go.
fn unit_of(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // U+00B5 and U+03BC
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The error is the cause, which the message quotes the text after.
fn parse_go(text: &str) -> Result<Duration, String> {
    let invalid = || "invalid duration".to_owned();
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration(0));
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum = 0u64;
    while !rest.is_empty() {
        let (nanos, after) = parse_part(rest)?;
        sum = sum.checked_add(nanos).filter(|&sum| sum <= LIMIT).ok_or_else(invalid)?;
        rest = after;
    }
    match i64::try_from(sum) {
        Ok(nanos) => Ok(Duration(if negative { -nanos } else { nanos })),
        Err(_) if negative => Ok(Duration(i64::MIN)),
        Err(_) => Err(invalid()),
    }
}

/// A number with the unit in nanoseconds, and the text behind.
fn parse_part(text: &str) -> Result<(u64, &str), String> {
    let invalid = || "invalid duration".to_owned();
    let (whole, after) = split_digits(text);
    let (decimals, after) = match after.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", after),
    };
    if whole.is_empty() && decimals.is_empty() {
        return Err(invalid());
    }
    let value: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
    if value > LIMIT {
        return Err(invalid());
    }
    let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (name, after) = after.split_at(end);
    if name.is_empty() {
        return Err("missing unit in duration".to_owned());
    }
    let unit = unit_of(name).ok_or_else(|| format!("unknown unit {} in duration", quote(name)))?;
    if value > LIMIT / unit {
        return Err(invalid());
    }
    let nanos = value * unit + decimal_nanos(decimals, unit);
    if nanos > LIMIT { Err(invalid()) } else { Ok((nanos, after)) }
}

/// Nanoseconds of the digits after the point, computed with the same doubles as in Go.
fn decimal_nanos(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        if value > (LIMIT - 1) / 10 || value * 10 + digit > LIMIT {
            break;
        }
        value = value * 10 + digit;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Names of units: the last of a group is a prefix of the allowed text, the others are the whole
/// word.
const WORDS: [(u64, &[&str]); 8] = [
    (1, &["ns", "nano"]),
    (1_000, &["us", "µs", "micro"]),
    (1_000_000, &["ms", "milli"]),
    (1_000_000_000, &["s", "sec"]),
    (60_000_000_000, &["m", "min"]),
    (3_600_000_000_000, &["h", "hr", "hour"]),
    (86_400_000_000_000, &["d", "day"]),
    (604_800_000_000_000, &["w", "wk", "week"]),
];

static NUMBER_AND_WORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").ok());

/// kube-openapi's own form; sums wrap around as they do there.
fn parse_words(text: &str) -> Result<Duration, String> {
    let mut sum = 0i64;
    let mut found = false;
    let matches = NUMBER_AND_WORD.iter().flat_map(|regex| regex.captures_iter(text));
    for captures in matches {
        let (_, [digits, word]) = captures.extract();
        let factor = number::atoi(digits)?;
        let word = word.to_lowercase();
        for (nanos, names) in WORDS {
            for (index, name) in names.iter().enumerate() {
                let is_prefix = index + 1 == names.len() && word.starts_with(name);
                if is_prefix || word == *name {
                    found = true;
                    sum = sum.wrapping_add(factor.wrapping_mul(nanos as i64));
                }
            }
        }
    }
    if found { Ok(Duration(sum)) } else { Err(format!("unable to parse {text} as duration")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("1.5h", 5_400_000_000_000),
            ("-1m30s", -90_000_000_000),
            (".5s", 500_000_000),
            ("1µs2us", 3_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(Duration::parse(text).map(Duration::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn an_error_has_the_words_of_go() {
        for (text, message) in [
            ("", "time: invalid duration \"\""),
            ("1", "time: missing unit in duration \"1\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1é", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
        ] {
            assert_eq!(Duration::parse(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_schema_format_has_words_and_weeks() {
        let hour = 3_600_000_000_000;
        for (text, nanos) in
            [("2 days 3hours", 51 * hour), ("1wk", 168 * hour), ("x 1 HR y", hour), ("1h", hour)]
        {
            assert_eq!(
                Duration::parse_schema_format(text).map(Duration::as_nanos),
                Ok(nanos),
                "{text}"
            );
        }
        assert_eq!(
            Duration::parse_schema_format("1é"),
            Err("unable to parse 1é as duration".to_owned())
        );
    }

    #[test]
    fn texts_of_go_and_cel_differ() {
        for (nanos, go, cel) in [
            (0, "0s", "0s"),
            (1, "1ns", "0.000000001s"),
            (1_500, "1.5µs", "0.0000015s"),
            (-5_400_000_000_000, "-1h30m0s", "-5400s"),
            (61_500_000_000, "1m1.5s", "61.5s"),
            (i64::MIN, "-2562047h47m16.854775808s", "-9223372036.854776s"),
        ] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(
                (duration.to_go_string().as_str(), duration.to_cel_string().as_str()),
                (go, cel)
            );
        }
    }

    #[test]
    fn arithmetic_that_overflows_is_an_error() {
        let (least, one) = (Duration::from_nanos(i64::MIN), Duration::from_nanos(1));
        assert_eq!(least.checked_neg(), Err(INT_OVERFLOW));
        assert_eq!(least.checked_sub(one), Err(INT_OVERFLOW));
        assert_eq!(Duration::from_nanos(i64::MAX).checked_add(one), Err(INT_OVERFLOW));
    }
}
