//! Texts of times read as Go's `time.Parse` does for the layouts that Kubernetes uses, with Go's
//! messages.

use super::super::duration::quote;
use super::civil::{Civil, SECONDS_PER_DAY};
use super::{NANOS_PER_SECOND, Timestamp};

/// A part of a layout: literal text before a field, and the field.
type Element = (&'static str, TimeField);

/// A layout: its text in Go's notation, and its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    text: &'static str,
    elements: &'static [Element],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// A fraction of six digits.
    Micro,
    Zone,
}

impl TimeField {
    /// The field in Go's notation.
    fn notation(self) -> &'static str {
        match self {
            TimeField::Year => "2006",
            TimeField::Month => "01",
            TimeField::Day => "02",
            TimeField::Hour => "15",
            TimeField::Minute => "04",
            TimeField::Second => "05",
            TimeField::Micro => ".000000",
            TimeField::Zone => "Z07:00",
        }
    }
}

const DATE_AND_TIME: &[Element] = &[
    ("", TimeField::Year),
    ("-", TimeField::Month),
    ("-", TimeField::Day),
    ("T", TimeField::Hour),
    (":", TimeField::Minute),
    (":", TimeField::Second),
    ("", TimeField::Zone),
];

/// `time.RFC3339`
pub(super) const RFC3339: Layout =
    Layout { text: "2006-01-02T15:04:05Z07:00", elements: DATE_AND_TIME };

/// Kubernetes' `RFC3339Micro`
pub(super) const RFC3339_MICRO: Layout = Layout {
    text: "2006-01-02T15:04:05.000000Z07:00",
    elements: &[
        ("", TimeField::Year),
        ("-", TimeField::Month),
        ("-", TimeField::Day),
        ("T", TimeField::Hour),
        (":", TimeField::Minute),
        (":", TimeField::Second),
        ("", TimeField::Micro),
        ("", TimeField::Zone),
    ],
};

/// kube-openapi's `strfmt.ISO8601LocalTime`
pub(super) const LOCAL_TIME: Layout =
    Layout { text: "2006-01-02T15:04:05", elements: DATE_AND_TIME.split_at(6).0 };

/// kube-openapi's `strfmt.RFC3339FullDate`
pub(super) const FULL_DATE: Layout =
    Layout { text: "2006-01-02", elements: DATE_AND_TIME.split_at(3).0 };

/// Fields of a time that is being read.
#[derive(Debug, Default)]
struct TimeFields {
    year: i64,
    month: i64,
    day: i64,
    second: i64,
    nanos: i64,
    offset: i64,
}

/// Cause that a field cannot be read.
enum FieldFailure {
    /// The text does not have the form.
    Form,
    /// The number is out of range; the name of the field.
    Range(&'static str),
}

/// The time of a text. Positions are those of bytes: Go cuts texts anywhere.
pub(super) fn parse(layout: Layout, text: &str) -> Result<Timestamp, String> {
    let mut rest = text.as_bytes();
    let mut fields = TimeFields::default();
    let has_fraction = layout.elements.iter().any(|(_, field)| *field == TimeField::Micro);
    for &(prefix, field) in layout.elements {
        rest = skip(rest, prefix).map_err(|left| cannot_parse(layout, text, left, prefix))?;
        match read(&mut fields, field, rest) {
            // A fraction that no layout names may follow the seconds.
            Ok(after) if field == TimeField::Second && !has_fraction => {
                rest = read_fraction(&mut fields, after);
            }
            Ok(after) => rest = after,
            Err(FieldFailure::Form) => {
                return Err(cannot_parse(layout, text, rest, field.notation()));
            }
            Err(FieldFailure::Range(name)) => return Err(out_of_range(text, name)),
        }
    }
    if !rest.is_empty() {
        return Err(format!("parsing time {}: extra text: {}", quote(text), quote_bytes(rest)));
    }
    if fields.day < 1 || fields.day > Civil::days_in_month(fields.year, fields.month) {
        return Err(out_of_range(text, "day"));
    }
    let days = Civil { year: fields.year, month: fields.month, day: fields.day }.to_days();
    let seconds = days * SECONDS_PER_DAY + fields.second - fields.offset;
    Ok(Timestamp { seconds, nanos: fields.nanos, offset: fields.offset })
}

/// The text after a prefix. The error is the text from the character that differs.
fn skip<'a>(mut text: &'a [u8], prefix: &str) -> Result<&'a [u8], &'a [u8]> {
    for expected in prefix.bytes() {
        match text.split_first() {
            Some((&byte, after)) if byte == expected => text = after,
            _ => return Err(text),
        }
    }
    Ok(text)
}

fn cannot_parse(layout: Layout, text: &str, rest: &[u8], element: &str) -> String {
    let (text, layout) = (quote(text), quote(layout.text));
    format!(
        "parsing time {text} as {layout}: cannot parse {} as {}",
        quote_bytes(rest),
        quote(element)
    )
}

fn out_of_range(text: &str, name: &str) -> String {
    format!("parsing time {}: {name} out of range", quote(text))
}

/// A rest that starts within a character is quoted byte by byte up to the next character.
fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let quoted = quote(chunk.valid());
        out.push_str(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

/// Reads a field and returns the text behind.
fn read<'a>(
    fields: &mut TimeFields,
    field: TimeField,
    text: &'a [u8],
) -> Result<&'a [u8], FieldFailure> {
    match field {
        TimeField::Year => {
            let (year, after) = text.split_at_checked(4).ok_or(FieldFailure::Form)?;
            fields.year = year
                .iter()
                .try_fold(0, |sum, &byte| Some(sum * 10 + digit(byte)?))
                .ok_or(FieldFailure::Form)?;
            Ok(after)
        }
        TimeField::Month => {
            let (month, after) = two_digits(text)?;
            fields.month = month;
            if (1..=12).contains(&month) { Ok(after) } else { Err(FieldFailure::Range("month")) }
        }
        TimeField::Day => {
            let (day, after) = two_digits(text)?;
            fields.day = day;
            Ok(after)
        }
        TimeField::Hour => {
            // Go wants no second digit here.
            let (hour, after) = two_digits(text).or_else(|_| one_digit(text))?;
            fields.second = 3600 * below(hour, 24, "hour")?;
            Ok(after)
        }
        TimeField::Minute => {
            let (minute, after) = two_digits(text)?;
            fields.second += 60 * below(minute, 60, "minute")?;
            Ok(after)
        }
        TimeField::Second => {
            let (second, after) = two_digits(text)?;
            fields.second += below(second, 60, "second")?;
            Ok(after)
        }
        TimeField::Micro => {
            let (&[dot, ref digits @ ..], after) =
                text.split_first_chunk::<7>().ok_or(FieldFailure::Form)?;
            if !matches!(dot, b'.' | b',') {
                return Err(FieldFailure::Form);
            }
            let micros = digits
                .iter()
                .try_fold(0, |sum, &byte| Some(sum * 10 + digit(byte)?))
                .ok_or(FieldFailure::Form)?;
            fields.nanos = micros * 1000;
            Ok(after)
        }
        TimeField::Zone => read_zone(fields, text),
    }
}

/// The value, if below a limit.
fn below(value: i64, limit: i64, name: &'static str) -> Result<i64, FieldFailure> {
    if value < limit { Ok(value) } else { Err(FieldFailure::Range(name)) }
}

/// A fraction after the seconds, which no layout names; digits after the ninth are dropped.
fn read_fraction<'a>(fields: &mut TimeFields, text: &'a [u8]) -> &'a [u8] {
    let [b'.' | b',', digits @ ..] = text else { return text };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return text;
    }
    let (digits, after) = digits.split_at(count);
    let mut unit = NANOS_PER_SECOND;
    for value in digits.iter().take(9).filter_map(|&byte| digit(byte)) {
        unit /= 10;
        fields.nanos += value * unit;
    }
    after
}

/// `Z`, or a sign, hours and minutes; 24 hours and 60 minutes are allowed, as in Go.
fn read_zone<'a>(fields: &mut TimeFields, text: &'a [u8]) -> Result<&'a [u8], FieldFailure> {
    if let [b'Z', after @ ..] = text {
        return Ok(after);
    }
    let (&[sign, h1, h2, colon, m1, m2], after) =
        text.split_first_chunk::<6>().ok_or(FieldFailure::Form)?;
    if colon != b':' {
        return Err(FieldFailure::Form);
    }
    let hour = two_digits(&[h1, h2]).map(|(hour, _)| hour);
    let minute = two_digits(&[m1, m2]).map(|(minute, _)| minute);
    // Go checks ranges before the sign and before errors of the minutes.
    if matches!(hour, Ok(25..)) {
        return Err(FieldFailure::Range("time zone offset hour"));
    }
    if hour.is_ok() && matches!(minute, Ok(61..)) {
        return Err(FieldFailure::Range("time zone offset minute"));
    }
    let offset = (hour? * 60 + minute?) * 60;
    fields.offset = match sign {
        b'+' => offset,
        b'-' => -offset,
        _ => return Err(FieldFailure::Form),
    };
    Ok(after)
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

fn one_digit(text: &[u8]) -> Result<(i64, &[u8]), FieldFailure> {
    let (&first, after) = text.split_first().ok_or(FieldFailure::Form)?;
    Ok((digit(first).ok_or(FieldFailure::Form)?, after))
}

fn two_digits(text: &[u8]) -> Result<(i64, &[u8]), FieldFailure> {
    let (tens, after) = one_digit(text)?;
    let (ones, after) = one_digit(after)?;
    Ok((tens * 10 + ones, after))
}
