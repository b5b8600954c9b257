//! Decimal numbers with a bounded number of digits.

use std::cmp::Ordering;
use std::str::FromStr;

use num_bigint::{BigInt, Sign};

use super::Fault;

/// Largest number of digits: far beyond any quantity, and small enough for an operation to take
/// milliseconds.
pub(super) const MAX_DIGITS: u64 = 100_000;

/// The number `unscaled * 10^-scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) unscaled: BigInt,
    pub(super) scale: i32,
}

impl Decimal {
    /// The number of a text of digits with a point at most, and a sign before; `None` without a
    /// digit.
    pub(super) fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        let scale = i32::try_from(fraction.len()).ok()?;
        let is_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
        let unscaled = BigInt::from_str(&digits).ok().filter(|_| is_digit(&digits))?;
        Some(Decimal { unscaled, scale })
    }

    pub(super) fn sign(&self) -> i64 {
        match self.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    pub(super) fn negated(&self) -> Decimal {
        Decimal { unscaled: -self.unscaled.clone(), scale: self.scale }
    }

    pub(super) fn add(&self, other: &Decimal) -> Result<Decimal, Fault> {
        let scale = self.scale.max(other.scale);
        Ok(Decimal { unscaled: self.at(scale)? + other.at(scale)?, scale })
    }

    pub(super) fn compare(&self, other: &Decimal) -> Result<Ordering, Fault> {
        let scale = self.scale.max(other.scale);
        Ok(self.at(scale)?.cmp(&other.at(scale)?))
    }

    /// The unscaled number of the same value at a scale that is not smaller.
    fn at(&self, scale: i32) -> Result<BigInt, Fault> {
        let more = u64::try_from(i64::from(scale) - i64::from(self.scale)).unwrap_or_default();
        if self.unscaled.sign() == Sign::NoSign || more == 0 {
            return Ok(self.unscaled.clone());
        }
        if digits(&self.unscaled).saturating_add(more) > MAX_DIGITS {
            return Err(Fault::TooLarge);
        }
        Ok(&self.unscaled * power_of_ten(more))
    }

    /// A positive number rounded up to this scale.
    pub(super) fn rounded_up(&self, scale: i32) -> Result<Decimal, Fault> {
        let less = u64::try_from(i64::from(self.scale) - i64::from(scale)).unwrap_or_default();
        let unscaled = match less {
            0 => self.at(scale)?,
            _ if less > digits(&self.unscaled) => BigInt::from(1),
            _ => {
                let divisor = power_of_ten(less);
                let quotient = &self.unscaled / &divisor;
                let is_exact = &quotient * &divisor == self.unscaled;
                if is_exact { quotient } else { quotient + 1 }
            }
        };
        Ok(Decimal { unscaled, scale })
    }

    pub(super) fn to_f64(&self) -> f64 {
        // The text of a whole number is read with a single rounding, as Go rounds to 53 bits.
        let base = self.unscaled.to_string().parse().unwrap_or(f64::INFINITY);
        times_power_of_ten(base, self.scale.wrapping_neg())
    }
}

/// Upper bound of the number of digits.
fn digits(number: &BigInt) -> u64 {
    // A digit has 3.32 bits.
    number.bits() / 3 + 1
}

/// A power of ten of at most [`MAX_DIGITS`] digits.
fn power_of_ten(power: u64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power).unwrap_or_default())
}

/// Product with a power of ten that Go rounds first: two roundings, and the power may be 0 or
/// infinite.
pub(super) fn times_power_of_ten(base: f64, power: i32) -> f64 {
    if power == 0 {
        return base;
    }
    base * match power {
        -323..=-1 => {
            let power = power.unsigned_abs();
            one_e(-i64::from(power / 32 * 32)) / one_e(i64::from(power % 32))
        }
        0..=308 => one_e(i64::from(power / 32 * 32)) * one_e(i64::from(power % 32)),
        i32::MIN..=-324 => 0.0,
        309.. => f64::INFINITY,
    }
}

fn one_e(power: i64) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::INFINITY)
}
