//! Numbers as Go's `strconv` and `fmt` read and write them, and the conversions between CEL's
//! number types.

/// Message of an overflow of a signed integer.
pub const INT_OVERFLOW: &str = "integer overflow";
/// Message of an overflow of an unsigned integer.
pub const UINT_OVERFLOW: &str = "unsigned integer overflow";

/// Two to the power of 64, the first double that is no `uint`.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
/// Two to the power of 63, the first double that is no `int`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
/// Digits of a decimal exponent that decide; those after them cannot bring a number back into
/// range.
const EXPONENT_DIGITS: usize = 9;

/// The integer that Go's `strconv.ParseInt(text, 10, 64)` reads: an optional sign and decimal
/// digits, nothing else.
///
/// cel-go names no cause when `int(text)` fails: the message is
/// `type conversion error from 'string' to 'int'`.
pub fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The integer that Go's `strconv.ParseUint(text, 10, 64)` reads: decimal digits, without a sign.
pub fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// The boolean that Go's `strconv.ParseBool` reads.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The integer that Go's `strconv.Atoi` reads.
///
/// # Errors
///
/// Go's message, `strconv.Atoi: parsing "x": invalid syntax` or `value out of range`.
pub fn atoi(text: &str) -> Result<i64, String> {
    parse_int(text).ok_or_else(|| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let cause = if is_out_of_range(digits) { "value out of range" } else { "invalid syntax" };
        format!("strconv.Atoi: parsing {}: {cause}", super::text::go_quote(text))
    })
}

/// Whether a text that is no `int` is a number all the same. Go stops at the digit that exceeds 64
/// bits and does not look at the text behind.
fn is_out_of_range(digits: &str) -> bool {
    let mut value = 0u64;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() {
            return false;
        }
        match value.checked_mul(10).and_then(|value| value.checked_add(u64::from(byte - b'0'))) {
            Some(sum) => value = sum,
            None => return true,
        }
    }
    !digits.is_empty()
}

/// The double that Go's `strconv.ParseFloat(text, 64)` reads: decimal, hexadecimal (`0x1p-2`), with
/// underscores between digits, infinities and NaN. A finite number beyond the range of doubles is
/// refused.
pub fn parse_float(text: &str) -> Option<f64> {
    if let Some(special) = parse_special(text) {
        return Some(special);
    }
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    if unsigned.contains('_') && !underscores_are_between_digits(unsigned) {
        return None;
    }
    let plain = unsigned.replace('_', "");
    // The prefix counts only if something follows, as in Go.
    let is_hex = unsigned.len() > 2 && (unsigned.starts_with("0x") || unsigned.starts_with("0X"));
    let value = if is_hex { parse_hex(plain.get(2..)?)? } else { parse_decimal(&plain)? };
    if value.is_infinite() {
        return None;
    }
    Some(if negative { -value } else { value })
}

/// Infinities with an optional sign, NaN without; case does not matter.
fn parse_special(text: &str) -> Option<f64> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let (sign, name) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let is_infinity = name.eq_ignore_ascii_case("inf") || name.eq_ignore_ascii_case("infinity");
    is_infinity.then_some(sign * f64::INFINITY)
}

/// Whether each underscore has a digit, or a base prefix, before, and a digit behind.
fn underscores_are_between_digits(unsigned: &str) -> bool {
    let bytes = unsigned.as_bytes();
    let prefix = match bytes {
        [b'0', second, ..] => second.to_ascii_lowercase(),
        _ => 0,
    };
    let start = if matches!(prefix, b'b' | b'o' | b'x') { 2 } else { 0 };
    let is_digit =
        |byte: u8| if prefix == b'x' { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let mut before = if start == 2 { b'0' } else { b'!' };
    for &byte in bytes.iter().skip(start) {
        if byte == b'_' && !(is_digit(before) || before == b'0') {
            return false;
        }
        if before == b'_' && !is_digit(byte) {
            return false;
        }
        before = byte;
    }
    before != b'_'
}

/// A decimal number without sign; Rust reads the same numbers once names and exponents are checked.
fn parse_decimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
        None => (text, None),
    };
    if !mantissa.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    text.parse().ok()
}

/// A hexadecimal number after `0x`: digits with a point at most, then `p` and a decimal exponent of
/// two.
fn parse_hex(text: &str) -> Option<f64> {
    let at = text.find(['p', 'P'])?;
    let (mut bits, mut shift, mut sticky, mut digits) = (0u64, 0i64, false, false);
    let mut point = false;
    for byte in text.get(..at)?.bytes() {
        if byte == b'.' && !point {
            point = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        digits = true;
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
            shift -= if point { 4 } else { 0 };
        } else {
            // The digits that do not fit matter only for the direction of the rounding.
            sticky |= digit != 0;
            shift += if point { 0 } else { 4 };
        }
    }
    let exponent = parse_exponent(text.get(at + 1..)?)?;
    digits.then(|| scale(bits, sticky, shift.saturating_add(exponent)))
}

/// A decimal exponent with an optional sign; large ones are cut.
fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let value = digits.get(..EXPONENT_DIGITS).unwrap_or(digits).parse().unwrap_or(0);
    Some(sign * value)
}

/// `bits * 2^exponent`, rounded once, half to even; infinite when too large.
fn scale(bits: u64, sticky: bool, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let top = 64 - i64::from(bits.leading_zeros()) + exponent;
    if top > 1024 {
        return f64::INFINITY;
    }
    // A normal double keeps 53 bits; a subnormal double none below 2^-1074.
    let lowest = (top - 53).max(-1074);
    let drop = lowest - exponent;
    if drop <= 0 {
        return ldexp(bits, exponent);
    }
    if drop > 64 {
        return 0.0;
    }
    let wide = u128::from(bits) << 1 | u128::from(sticky);
    let kept = wide >> (drop + 1);
    let rest = wide & ((1u128 << (drop + 1)) - 1);
    let half = 1u128 << drop;
    let up = rest > half || (rest == half && kept & 1 == 1);
    ldexp(u64::try_from(kept).unwrap_or(u64::MAX) + u64::from(up), lowest)
}

/// `bits * 2^exponent` for a result that needs no rounding; two factors keep each within the normal
/// range.
fn ldexp(bits: u64, exponent: i64) -> f64 {
    let exponent = i32::try_from(exponent).unwrap_or(i32::MIN).clamp(-2200, 2200);
    let half = exponent / 2;
    (bits as f64) * 2f64.powi(half) * 2f64.powi(exponent - half)
}

/// The `int` of a double, towards zero.
///
/// # Errors
///
/// [`INT_OVERFLOW`] for NaN, infinities and all from 2^63 on in both directions: -2^63 is refused
/// too, as in cel-go.
pub fn double_to_int(value: f64) -> Result<i64, &'static str> {
    let fits = value > -TWO_TO_63 && value < TWO_TO_63;
    if fits { Ok(value as i64) } else { Err(INT_OVERFLOW) }
}

/// The `uint` of a double, towards zero.
///
/// # Errors
///
/// [`UINT_OVERFLOW`] for NaN, infinities, negative numbers and all from 2^64 on.
pub fn double_to_uint(value: f64) -> Result<u64, &'static str> {
    let fits = (0.0..TWO_TO_64).contains(&value);
    if fits { Ok(value as u64) } else { Err(UINT_OVERFLOW) }
}

/// The text of a double as Go's `%g` and `%v` write it, which is also the result of
/// `string(double)`: the shortest digits that read back as the same number, with an exponent below
/// 1e-4 and from 1e6 on.
pub fn format_double(value: f64) -> String {
    if let Some(special) = special_text(value) {
        return special.to_owned();
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format_plain_double(value);
    }
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let nearest = nearest(shortest.clone(), format!("{value:.decimals$e}"), value);
    let (mantissa, _) = nearest.split_once('e').unwrap_or((&nearest, "0"));
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// The text of a double without exponent as Go's `strconv.FormatFloat(value, 'f', -1, 64)` writes
/// it.
pub fn format_plain_double(value: f64) -> String {
    if let Some(special) = special_text(value) {
        return special.to_owned();
    }
    let shortest = format!("{value}");
    match shortest.split_once('.') {
        Some((_, decimals)) => {
            let rounded = format!("{value:.*}", decimals.len());
            nearest(shortest, rounded, value)
        }
        None => shortest,
    }
}

/// The rounded text if that reads back as the same number. Where two shortest texts are equally
/// near, Rust takes the larger and Go the even text, which is the result of rounding.
fn nearest(shortest: String, rounded: String, value: f64) -> String {
    if rounded.len() == shortest.len() && rounded.parse() == Ok(value) { rounded } else { shortest }
}

/// Go's names of the doubles that are no numbers.
pub(super) fn special_text(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_decimal_without_underscores() {
        for (text, int, uint) in [
            ("+1", Some(1), None),
            ("-0", Some(0), None),
            ("9223372036854775808", None, Some(1 << 63)),
            ("0x10", None, None),
            ("1_000", None, None),
            ("", None, None),
        ] {
            assert_eq!((parse_int(text), parse_uint(text)), (int, uint), "{text}");
        }
    }

    #[test]
    fn doubles_have_the_syntax_of_go() {
        for (text, value) in [
            ("1_000", Some(1000.0)),
            ("1__0", None),
            ("1_", None),
            ("0x1p-2", Some(0.25)),
            ("0x_1p4", Some(16.0)),
            ("0x1", None),
            ("0x1.00000000000008p0", Some(1.0)),
            ("0x1.00000000000018p0", Some(1.000_000_000_000_000_4)),
            ("0x1p-1075", Some(0.0)),
            ("0x1p1024", None),
            ("1e400", None),
            ("1e-400", Some(0.0)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("infi", None),
            ("+nan", None),
            (".5", Some(0.5)),
            (".", None),
        ] {
            assert_eq!(parse_float(text), value, "{text}");
        }
    }

    #[test]
    fn a_double_that_no_integer_holds_is_an_overflow() {
        assert_eq!(double_to_int(-1.9), Ok(-1));
        for value in
            [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -9_223_372_036_854_775_808.0]
        {
            assert_eq!(double_to_int(value), Err(INT_OVERFLOW), "{value}");
        }
        for value in [f64::NAN, -0.5, 18_446_744_073_709_551_616.0] {
            assert_eq!(double_to_uint(value), Err(UINT_OVERFLOW), "{value}");
        }
    }

    #[test]
    fn the_text_of_a_double_has_an_exponent_from_a_million_on() {
        for (value, text) in [
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5, "-1.5"),
            (f64::INFINITY, "+Inf"),
            // Two texts of sixteen digits are equally near.
            (f64::from_bits(4_814_666_317_817_664_296), "7.534243415585262e+13"),
        ] {
            assert_eq!(format_double(value), text);
        }
    }

    #[test]
    fn atoi_tells_range_from_syntax() {
        for (text, cause) in [
            ("", "invalid syntax"),
            ("x", "invalid syntax"),
            ("99999999999999999999", "value out of range"),
        ] {
            assert_eq!(atoi(text), Err(format!("strconv.Atoi: parsing \"{text}\": {cause}")));
        }
    }
}
