//! A whole number with a power of ten.

use std::cmp::Ordering;

use super::Fault;
use super::decimal::{Decimal, times_power_of_ten};

/// Largest power of ten by which Go divides; beyond, decimals are compared.
const MAX_DIVISOR: i32 = 18;

/// The number `value * 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) value: i64,
    pub(super) scale: i32,
}

impl Amount {
    /// The whole number, if the amount is one and fits.
    pub(super) fn to_int(self) -> Option<i64> {
        if self.scale < 0 { None } else { scaled(self.value, self.scale) }
    }

    pub(super) fn to_f64(self) -> f64 {
        times_power_of_ten(self.value as f64, self.scale)
    }

    pub(super) fn to_decimal(self) -> Decimal {
        Decimal { unscaled: self.value.into(), scale: self.scale.wrapping_neg() }
    }

    /// The negation, which of the smallest number is that number, as in Go.
    pub(super) fn negated(self) -> Amount {
        Amount { value: self.value.wrapping_neg(), scale: self.scale }
    }

    /// The sum; `None` if it does not fit.
    pub(super) fn add(self, other: Amount) -> Option<Amount> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(other);
        }
        let (scale, left, right) = if self.scale > other.scale {
            let difference = self.scale.wrapping_sub(other.scale);
            (other.scale, scaled(self.value, difference)?, other.value)
        } else {
            let difference = other.scale.wrapping_sub(self.scale);
            (self.scale, self.value, scaled(other.value, difference)?)
        };
        Some(Amount { value: left.checked_add(right)?, scale })
    }

    /// Order of two amounts.
    pub(super) fn compare(self, other: Amount) -> Result<Ordering, Fault> {
        match self.scale.cmp(&other.scale) {
            Ordering::Equal => Ok(self.value.cmp(&other.value)),
            Ordering::Greater => self.compare_to_finer(other),
            Ordering::Less => other.compare_to_finer(self).map(Ordering::reverse),
        }
    }

    /// Order of an amount and one with a smaller power of ten.
    fn compare_to_finer(self, finer: Amount) -> Result<Ordering, Fault> {
        let difference = self.scale.wrapping_sub(finer.scale);
        if difference >= MAX_DIVISOR {
            return self.to_decimal().compare(&finer.to_decimal());
        }
        // The difference of the scales may be negative after an overflow, and Go's table has no
        // such power.
        let power = u32::try_from(difference).map_err(|_| Fault::DivisionByZero)?;
        let divisor = 10_i64.checked_pow(power).ok_or(Fault::DivisionByZero)?;
        let (quotient, remainder) = (finer.value / divisor, finer.value % divisor);
        Ok(self.value.cmp(&quotient).then(0.cmp(&remainder)))
    }
}

/// The number times a power of ten; a negative power, as after an overflow, counts as zero.
fn scaled(value: i64, power: i32) -> Option<i64> {
    match u32::try_from(power) {
        _ if value == 0 => Some(0),
        Ok(power) => value.checked_mul(10_i64.checked_pow(power)?),
        Err(_) => Some(value),
    }
}
