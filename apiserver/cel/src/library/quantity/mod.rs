//! Quantities of resources: `100m`, `1.5Gi`, `12e3`, with the arithmetic of apimachinery's
//! `resource.Quantity`.
//!
//! A quantity is a whole number with a power of ten as long as both fit, and a decimal number
//! without bounds otherwise. The form is visible: only the first is ever an integer for `isInteger`
//! and `asInteger`, and an operation may turn either form into the other.

mod amount;
mod decimal;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amount::Amount;
use decimal::Decimal;

/// The reason why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A number would have more digits than this library computes with; kube-apiserver computes
    /// until memory or time run out.
    TooLarge,
    /// A fault of the server: it divides by zero when the powers of ten are too far apart.
    DivisionByZero,
}

/// A quantity. Operations of the server change quantities in places where they should not;
/// therefore the state of a shared quantity can change.
#[derive(Debug)]
pub struct Quantity {
    state: Mutex<State>,
    is_result: bool,
}

#[derive(Debug, Clone)]
enum State {
    Amount(Amount),
    /// The number is shared with the sums that were made of it: an addition changes it in place.
    Decimal(Arc<Mutex<Decimal>>),
}

impl State {
    fn decimal(number: Decimal) -> State {
        State::Decimal(Arc::new(Mutex::new(number)))
    }

    /// The number as a separate decimal.
    fn to_decimal(&self) -> Decimal {
        match self {
            State::Amount(amount) => amount.to_decimal(),
            State::Decimal(shared) => locked(shared).clone(),
        }
    }

    fn compare(&self, other: &State) -> Result<Ordering, Fault> {
        match (self, other) {
            (State::Amount(a), State::Amount(b)) => a.compare(*b),
            _ => self.to_decimal().compare(&other.to_decimal()),
        }
    }
}

/// The content of a mutex that no panic leaves half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Quantity {
    fn new(state: State, is_result: bool) -> Quantity {
        Quantity { state: Mutex::new(state), is_result }
    }

    /// The quantity of a text.
    ///
    /// # Errors
    ///
    /// The text of apimachinery's error.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        parse::parse(text).map(|state| Quantity::new(state, false))
    }

    /// The quantity of a whole number.
    pub fn from_int(value: i64) -> Quantity {
        Quantity::new(State::Amount(Amount { value, scale: 0 }), false)
    }

    /// Whether the quantity is the result of an addition or a subtraction.
    pub fn is_result(&self) -> bool {
        self.is_result
    }

    fn snapshot(&self) -> State {
        locked(&self.state).clone()
    }

    /// The value as a whole number; `None` for a fraction, for a number that does not fit, and for
    /// any decimal.
    pub fn to_int(&self) -> Option<i64> {
        match self.snapshot() {
            State::Amount(amount) => amount.to_int(),
            State::Decimal(_) => None,
        }
    }

    /// The value as a double, rounded.
    pub fn to_f64(&self) -> f64 {
        match self.snapshot() {
            State::Amount(amount) => amount.to_f64(),
            State::Decimal(shared) => locked(&shared).to_f64(),
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        match self.snapshot() {
            State::Amount(amount) => amount.value.signum(),
            State::Decimal(shared) => locked(&shared).sign(),
        }
    }

    /// Order of two quantities. Beside a decimal this quantity becomes a decimal, too, and is no
    /// integer any more.
    ///
    /// # Errors
    ///
    /// The [`Fault`] if the numbers cannot be brought to the same power of ten.
    pub fn compare(&self, other: &Quantity) -> Result<Ordering, Fault> {
        let other = other.snapshot();
        let mut state = locked(&self.state);
        if let (State::Amount(amount), State::Decimal(_)) = (&*state, &other) {
            *state = State::decimal(amount.to_decimal());
        }
        state.compare(&other)
    }

    /// Order of two quantities that leaves both as they are.
    ///
    /// # Errors
    ///
    /// The [`Fault`] if the numbers cannot be brought to the same power of ten.
    pub fn compare_unchanged(&self, other: &Quantity) -> Result<Ordering, Fault> {
        self.snapshot().compare(&other.snapshot())
    }

    /// The sum. If this quantity is a decimal, it becomes the sum itself.
    ///
    /// # Errors
    ///
    /// The [`Fault`] if the numbers cannot be brought to the same power of ten.
    pub fn add(&self, other: &Quantity) -> Result<Quantity, Fault> {
        let other = other.snapshot();
        if let (State::Amount(a), State::Amount(b)) = (self.snapshot(), &other)
            && let Some(sum) = a.add(*b)
        {
            return Ok(Quantity::new(State::Amount(sum), true));
        }
        self.add_decimal(&other.to_decimal())
    }

    /// The difference. If this quantity is a decimal, it becomes the difference itself.
    ///
    /// # Errors
    ///
    /// The [`Fault`] if the numbers cannot be brought to the same power of ten.
    pub fn sub(&self, other: &Quantity) -> Result<Quantity, Fault> {
        let other = other.snapshot();
        if let (State::Amount(a), State::Amount(b)) = (self.snapshot(), &other)
            && let Some(difference) = a.add(b.negated())
        {
            return Ok(Quantity::new(State::Amount(difference), true));
        }
        self.add_decimal(&other.to_decimal().negated())
    }

    fn add_decimal(&self, other: &Decimal) -> Result<Quantity, Fault> {
        let shared = match self.snapshot() {
            State::Amount(amount) => Arc::new(Mutex::new(amount.to_decimal())),
            State::Decimal(shared) => shared,
        };
        let mut number = locked(&shared);
        *number = number.add(other)?;
        drop(number);
        Ok(Quantity::new(State::Decimal(shared), true))
    }
}
