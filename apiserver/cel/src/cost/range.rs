//! Ranges of costs and sizes, with arithmetic that ends at the largest number.

/// The least and the largest cost of an expression; a size has the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostEstimate {
    /// At least this.
    pub min: u64,
    /// At most this; `u64::MAX` without a bound.
    pub max: u64,
}

/// Cost of reading a character of a text, where a step costs 1.
pub(super) const TRAVERSAL: f64 = 0.1;

/// Cost of a character of a regular expression for each character of the text.
pub(super) const REGEX: f64 = 0.25;

/// The size of a value of which nothing is known.
pub(super) const UNKNOWN: CostEstimate = CostEstimate { min: 0, max: u64::MAX };

impl CostEstimate {
    /// The range of a single number.
    pub(super) const fn fixed(value: u64) -> CostEstimate {
        CostEstimate { min: value, max: value }
    }

    pub(super) fn add(self, other: CostEstimate) -> CostEstimate {
        let (min, max) = (self.min.saturating_add(other.min), self.max.saturating_add(other.max));
        CostEstimate { min, max }
    }

    pub(super) fn multiply(self, other: CostEstimate) -> CostEstimate {
        let (min, max) = (self.min.saturating_mul(other.min), self.max.saturating_mul(other.max));
        CostEstimate { min, max }
    }

    /// Both numbers times a factor, rounded up.
    pub(super) fn times(self, factor: f64) -> CostEstimate {
        // A conversion to an integer saturates.
        let times = |value: u64| (value as f64 * factor).ceil() as u64;
        CostEstimate { min: times(self.min), max: times(self.max) }
    }

    /// The range that holds both.
    pub(super) fn union(self, other: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
