//! Parser of quantities such as `100m` and `1.5Gi`.

use super::amount::Amount;
use super::decimal::{Decimal, MAX_DIGITS};
use super::{Fault, State};

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NOT_NUMERIC: &str = "unable to parse numeric part of quantity";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const TOO_LARGE: &str = "quantity has too many digits";

/// Digits that always fit into an amount.
const MAX_AMOUNT_DIGITS: i64 = 18;
/// The finest power of ten: a nano.
const NANO: i32 = -9;

/// The parts of a quantity.
struct Parts<'t> {
    is_negative: bool,
    /// The number with its sign.
    value: &'t str,
    /// Digits before the point, without leading zeros.
    whole: &'t str,
    /// Digits behind the point.
    fraction: &'t str,
    suffix: &'t str,
}

/// The meaning of a suffix: powers of ten or of two.
enum Suffix {
    Decimal(i32),
    Binary(u32),
}

/// The amount or number of a text.
pub(super) fn parse(text: &str) -> Result<State, &'static str> {
    if text.is_empty() {
        return Err(WRONG_FORMAT);
    }
    let parts = split(text)?;
    let suffix = interpret(parts.suffix).ok_or(WRONG_SUFFIX)?;
    match amount(&parts, &suffix)? {
        Some(amount) => Ok(State::Amount(amount)),
        None => decimal(&parts, &suffix).map(State::decimal),
    }
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    let is_negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let stripped = unsigned.trim_start_matches('0');
    if stripped.is_empty() {
        let zero = Parts { is_negative, value: "0", whole: "0", fraction: "", suffix: "" };
        return Ok(zero);
    }
    let (digits, rest) = leading_digits(stripped);
    let whole = if digits.is_empty() { "0" } else { digits };
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    let value = text.get(..text.len() - rest.len()).unwrap_or_default();
    let letters = rest.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let (_, end) = leading_digits(letters.strip_prefix(['-', '+']).unwrap_or(letters));
    if !end.is_empty() {
        return Err(WRONG_FORMAT);
    }
    Ok(Parts { is_negative, value, whole, fraction, suffix: rest })
}

/// The digits at the beginning, and the rest.
fn leading_digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - rest.len())
}

fn interpret(suffix: &str) -> Option<Suffix> {
    Some(match suffix {
        "n" => Suffix::Decimal(-9),
        "u" => Suffix::Decimal(-6),
        "m" => Suffix::Decimal(-3),
        "" => Suffix::Decimal(0),
        "k" => Suffix::Decimal(3),
        "M" => Suffix::Decimal(6),
        "G" => Suffix::Decimal(9),
        "T" => Suffix::Decimal(12),
        "P" => Suffix::Decimal(15),
        "E" => Suffix::Decimal(18),
        "Ki" => Suffix::Binary(10),
        "Mi" => Suffix::Binary(20),
        "Gi" => Suffix::Binary(30),
        "Ti" => Suffix::Binary(40),
        "Pi" => Suffix::Binary(50),
        "Ei" => Suffix::Binary(60),
        other => {
            let exponent: i64 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Go keeps 32 bits of the exponent.
            Suffix::Decimal(exponent as i32)
        }
    })
}

/// The amount of a text that is short enough; `None` if the number needs a decimal.
fn amount(parts: &Parts<'_>, suffix: &Suffix) -> Result<Option<Amount>, &'static str> {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    let (precision, scale, factor) = match *suffix {
        Suffix::Decimal(scale) => (MAX_AMOUNT_DIGITS - whole - fraction, scale, 1),
        // A factor of 2^10 has three digits.
        Suffix::Binary(power) if fraction == 0 => {
            (15 - whole - i64::from(power * 3 / 10) - 1, 0, 1_i64 << power)
        }
        Suffix::Binary(_) => (-1, 0, 1),
    };
    if precision < 0 {
        return Ok(None);
    }
    // Go's subtraction overflows.
    let scale = scale.wrapping_sub(fraction as i32);
    if scale < NANO {
        return Ok(None);
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let value: i64 = digits.parse().map_err(|_| NOT_NUMERIC)?;
    let product = value.checked_mul(factor);
    Ok(product.map(|value| Amount { value: if parts.is_negative { -value } else { value }, scale }))
}

/// The number of a text, rounded up to nanos; with a binary suffix the number is at most the
/// largest `int64`.
fn decimal(parts: &Parts<'_>, suffix: &Suffix) -> Result<Decimal, &'static str> {
    if parts.value.len() as u64 > MAX_DIGITS {
        return Err(TOO_LARGE);
    }
    let mut number = Decimal::parse(parts.value).ok_or(NOT_NUMERIC)?;
    match *suffix {
        Suffix::Decimal(exponent) => number.scale = number.scale.wrapping_sub(exponent),
        Suffix::Binary(power) => number.unscaled *= 1_u64 << power,
    }
    let is_negative = number.sign() < 0;
    if is_negative {
        number = number.negated();
    }
    if number.sign() != 0 {
        number = number.rounded_up(-NANO).map_err(|_| TOO_LARGE)?;
    }
    let largest = Decimal { unscaled: i64::MAX.into(), scale: 0 };
    let is_binary = matches!(suffix, Suffix::Binary(_));
    if is_binary && number.compare(&largest).map_err(|_: Fault| TOO_LARGE)?.is_gt() {
        number = largest;
    }
    Ok(if is_negative { number.negated() } else { number })
}
