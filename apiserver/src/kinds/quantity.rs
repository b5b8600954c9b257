//! Quantities of resources, such as `500m` and `1Gi`: comparison, sums, and their usual spelling.

use std::fmt;
use std::ops::Add;

use serde_json::Value;

use crate::typed::quantity::{BINARY, DECIMAL, suffixed};

/// An amount in thousandths; smaller parts are rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quantity {
    thousandths: i128,
    /// Whether the quantity is spelled with powers of 1024.
    binary: bool,
}

impl Quantity {
    /// Returns a whole number.
    pub(crate) fn whole(number: i64) -> Self {
        Self { thousandths: i128::from(number) * 1000, binary: false }
    }

    /// Reads a text or number; `None` if not a quantity.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::read(text),
            Value::Number(number) => Self::read(&number.to_string()),
            _ => None,
        }
    }

    /// Whether the quantity is below zero.
    pub(crate) fn is_negative(self) -> bool {
        self.thousandths < 0
    }

    /// Whether the quantity is zero.
    pub(crate) fn is_zero(self) -> bool {
        self.thousandths == 0
    }

    /// Whether the quantity has no fraction.
    pub(crate) fn is_whole(self) -> bool {
        self.thousandths % 1000 == 0
    }

    /// Whether the quantity is a whole number of parts of a positive size.
    pub(crate) fn is_multiple_of(self, part: Self) -> bool {
        part.thousandths > 0 && self.thousandths % part.thousandths == 0
    }

    /// Returns the difference to another quantity.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { thousandths: self.thousandths.saturating_sub(other.thousandths), ..self }
    }

    /// Returns the ratio to another quantity.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn share_of(self, whole: Self) -> f64 {
        self.thousandths as f64 / whole.thousandths as f64
    }

    /// Reads a text.
    fn read(text: &str) -> Option<Self> {
        let end = text.find(|letter: char| letter.is_ascii_alphabetic());
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let power = |list: &[&str]| list.iter().position(|known| *known == suffix);
        let (numerator, denominator, binary): (i128, i128, bool) = match suffix {
            "" => (1000, 1, false),
            "m" => (1, 1, false),
            "u" => (1, 1000, false),
            "n" => (1, 1_000_000, false),
            _ if suffix.starts_with("e-") || suffix.starts_with("E-") => {
                let places: u32 = suffix[2..].parse().ok()?;
                (1000, 10_i128.checked_pow(places.min(30))?, false)
            }
            _ => match (power(&BINARY), power(&DECIMAL)) {
                (Some(at), _) => (1000 * 1024_i128.pow(u32::try_from(at + 1).ok()?), 1, true),
                (_, Some(at)) => (1000 * 1000_i128.pow(u32::try_from(at + 1).ok()?), 1, false),
                _ => (1000 * exponent(suffix)?, 1, false),
            },
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.get(..fraction.len().min(9))?;
        let digits = format!("{whole}{fraction}");
        let is_negative = digits.starts_with('-');
        let (most, least) = (i128::MAX / 2, i128::MIN / 2);
        let bound = if is_negative { least } else { most };
        let is_number = digits.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit());
        // Too large to count is still too large, and not nothing.
        let digits: i128 = match digits.parse() {
            Ok(digits) => digits,
            Err(_) if is_number && !digits.is_empty() => bound,
            Err(_) => return None,
        };
        let scale = denominator.checked_mul(10_i128.pow(u32::try_from(fraction.len()).ok()?))?;
        let product = digits.checked_mul(numerator).unwrap_or(bound);
        // Rounded up, away from zero.
        let rest = i128::from(product % scale != 0) * product.signum();
        Some(Self { thousandths: product / scale + rest, binary })
    }
}

/// Returns the power of ten that a suffix such as `e3` stands for.
fn exponent(suffix: &str) -> Option<i128> {
    let power: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (power <= 18).then(|| 10_i128.pow(power))
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.thousandths == other.thousandths
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.thousandths.partial_cmp(&other.thousandths)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let binary = if self.thousandths == 0 { other.binary } else { self.binary };
        Self { thousandths: self.thousandths.saturating_add(other.thousandths), binary }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.thousandths % 1000 != 0 {
            return write!(f, "{}m", self.thousandths);
        }
        let (step, suffixes) = if self.binary { (1024, BINARY) } else { (1000, DECIMAL) };
        f.write_str(&suffixed(self.thousandths / 1000, step, &suffixes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_spelled_with_the_largest_suffix_that_loses_nothing() {
        for (text, spelled) in [
            ("500m", "500m"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1500", "1500"),
            ("2000", "2k"),
            ("1e3", "1k"),
            ("1.5Gi", "1536Mi"),
            ("0", "0"),
            ("1n", "1m"),
        ] {
            let read = Quantity::parse(&json!(text)).map(|quantity| quantity.to_string());
            assert_eq!(read.as_deref(), Some(spelled), "{text}");
        }
        for text in ["", "x", "1x", "1.2.3", "e3"] {
            assert!(Quantity::parse(&json!(text)).is_none(), "{text}");
        }
    }

    #[test]
    fn quantities_of_different_spelling_compare_and_add_up() {
        let read = |text: &str| Quantity::parse(&json!(text)).unwrap_or_default();
        assert!(read("1") > read("999m"));
        assert_eq!(read("1Ki"), read("1024"));
        assert_eq!((read("700m") + read("700m")).to_string(), "1400m");
    }

    #[test]
    fn what_is_too_large_to_count_is_still_too_large() {
        let read = |text: &str| Quantity::parse(&Value::from(text)).unwrap();
        for text in ["99999999999999999999999999999999999999Ei", "9".repeat(60).as_str(), "1e18"] {
            assert!(read(text) > Quantity::whole(1_000_000), "{text}");
        }
        assert!(read("-99999999999999999999999999999999999999Ei").is_negative());
        assert!(read("1e-3") == read("1m") && read("-1m").is_negative());
    }
}
