//! Timestamps and durations in the data and in conversions.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A date (`2024-01-31`) at midnight UTC, or a time of RFC 3339.
pub(crate) fn parse_date_or_time(text: &str) -> Option<Timestamp> {
    if text.len() == 10 {
        let date: Date = text.parse().ok()?;
        return Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    }
    text.parse().ok()
}

/// A duration of Go: a sign and numbers with units.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        total = total.checked_add(nanoseconds(number, unit)?)?;
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn nanoseconds(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { i128::from(whole.parse::<u64>().ok()?) };
    let mut nanos = whole * unit;
    let mut scale = unit;
    for digit in fraction.chars() {
        scale /= 10;
        nanos += scale * i128::from(digit.to_digit(10)?);
    }
    Some(nanos)
}
