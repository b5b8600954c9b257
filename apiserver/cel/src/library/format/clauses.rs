//! The clauses of a format: their syntax and the texts that they make of values.

use std::fmt::Write as _;

use super::super::number;
use super::Argument;

/// Digits after the point without a precision.
const DEFAULT_PRECISION: i64 = 6;
/// Largest number that the formatter of golang.org/x/text reads in a format: the formatter looks at
/// a million before a digit.
const MAX_NUMBER: i64 = 10_000_009;

/// A clause after its `%`.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormatClause {
    letter: u8,
    precision: Option<i64>,
}

impl FormatClause {
    /// The clause at the start of a text that is not empty, and the text behind.
    pub(super) fn parse(text: &str) -> Result<(FormatClause, &str), String> {
        let (precision, rest) =
            precision(text).map_err(|cause| format!("error while parsing precision: {cause}"))?;
        let letter = rest.bytes().next().unwrap_or_default();
        if !b"sdfebxXo".contains(&letter) {
            // The byte as a character, as in Go: of a longer character, the first byte.
            return Err(format!("unrecognized formatting clause \"{}\"", char::from(letter)));
        }
        Ok((FormatClause { letter, precision }, rest.get(1..).unwrap_or_default()))
    }

    /// The text of a value.
    pub(super) fn apply(self, value: &Argument<'_>) -> Result<String, String> {
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION);
        match self.letter {
            b'd' => decimal(value),
            b'f' => Ok(fixed(double(value, "fixed-point")?, precision)),
            b'e' => Ok(scientific(double(value, "scientific")?, precision)),
            b'b' => binary(value),
            b'x' => hex(value),
            b'X' => hex(value).map(|text| text.to_ascii_uppercase()),
            b'o' => octal(value),
            _ => super::string(value, 0),
        }
    }
}

/// The precision at the start of a text, `.3`, if there is one, and the text behind.
fn precision(text: &str) -> Result<(Option<i64>, &str), String> {
    let Some(digits) = text.strip_prefix('.') else { return Ok((None, text)) };
    let Some(end) = digits.bytes().position(|byte| !byte.is_ascii_digit()) else {
        return Err("could not find end of precision specifier".to_owned());
    };
    let (digits, rest) = digits.split_at(end);
    match number::atoi(digits) {
        Ok(precision) => Ok((Some(precision), rest)),
        Err(cause) => Err(format!("error while converting precision to integer: {cause}")),
    }
}

fn wrong_type(message: &str, value: &Argument<'_>) -> String {
    format!("{message}, was given {}", value.type_name())
}

fn decimal(value: &Argument<'_>) -> Result<String, String> {
    match value {
        Argument::Int(value) => Ok(value.to_string()),
        Argument::Uint(value) => Ok(value.to_string()),
        _ => Err(wrong_type("decimal clause can only be used on integers", value)),
    }
}

fn binary(value: &Argument<'_>) -> Result<String, String> {
    match value {
        Argument::Int(value) => Ok(format!("{}{:b}", minus(*value), value.unsigned_abs())),
        Argument::Uint(value) => Ok(format!("{value:b}")),
        Argument::Bool(value) => Ok(u8::from(*value).to_string()),
        _ => Err(wrong_type("only integers and bools can be formatted as binary", value)),
    }
}

fn octal(value: &Argument<'_>) -> Result<String, String> {
    match value {
        Argument::Int(value) => Ok(format!("{}{:o}", minus(*value), value.unsigned_abs())),
        Argument::Uint(value) => Ok(format!("{value:o}")),
        _ => Err(wrong_type("octal clause can only be used on integers", value)),
    }
}

fn hex(value: &Argument<'_>) -> Result<String, String> {
    match value {
        Argument::Int(value) => Ok(format!("{}{:x}", minus(*value), value.unsigned_abs())),
        Argument::Uint(value) => Ok(format!("{value:x}")),
        Argument::String(value) => Ok(hex_bytes(value.as_bytes())),
        Argument::Bytes(value) => Ok(hex_bytes(value)),
        _ => Err(wrong_type(
            "only integers, byte buffers, and strings can be formatted as hex",
            value,
        )),
    }
}

fn hex_bytes(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn minus(value: i64) -> &'static str {
    if value < 0 { "-" } else { "" }
}

/// The number of a clause for doubles: a double, or the name of a double that is no number.
fn double(value: &Argument<'_>, clause: &str) -> Result<f64, String> {
    match value {
        Argument::Double(value) => Ok(*value),
        Argument::String(name) if name == "NaN" => Ok(f64::NAN),
        Argument::String(name) if name == "Infinity" => Ok(f64::INFINITY),
        Argument::String(name) if name == "-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(wrong_type(&format!("{clause} clause can only be used on doubles"), value)),
    }
}

/// The text of a double that is no finite number in the locale `en_US`.
fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        Some("NaN".to_owned())
    } else if value.is_infinite() {
        Some(if value < 0.0 { "-∞" } else { "∞" }.to_owned())
    } else {
        None
    }
}

/// `%.Nf` with commas between thousands.
fn fixed(value: f64, precision: i64) -> String {
    if precision > MAX_NUMBER {
        return "%!(NOVERB)".to_owned();
    }
    if let Some(special) = special(value) {
        return special;
    }
    // The formatter keeps the smallest number of digits in 8 bits and the largest in 16; a negative
    // number is none.
    let (least, most) = (usize::from(precision as u8), usize::try_from(precision as i16).ok());
    let text = match most {
        Some(most) => format!("{:.most$}", value.abs()),
        None => number::format_plain_double(value.abs()),
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = decimals.trim_end_matches('0');
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if decimals.is_empty() && least == 0 {
        return out;
    }
    out.push('.');
    let _ = write!(out, "{decimals:0<least$}");
    out
}

/// `%Ne`: the number is the width, as in cel-go, which leaves out the point; there are always six
/// digits.
fn scientific(value: f64, width: i64) -> String {
    if width > MAX_NUMBER {
        return "%!(NOVERB)".to_owned();
    }
    let text = special(value).unwrap_or_else(|| {
        let text = format!("{:.6e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ("⁻", digits),
            None => ("", exponent),
        };
        let digits: String = format!("{digits:0>2}").chars().map(superscript).collect();
        let minus = if value < 0.0 { "-" } else { "" };
        format!("{minus}{mantissa}×10{sign}{digits}")
    });
    let width = usize::from(width as u16);
    format!("{text:>width$}")
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    }
}
