//! Bound on evaluation work that kube-apiserver's CEL cost does not account for.

// DESIGN.md, 123: Work that the cost of CEL does not pay for has a bound of its own
// DESIGN.md, 124: A call without declared types takes steps, whatever its cost

use std::cell::Cell;

use super::error::EvalError;

/// Bytes that are read in about the time of a step.
const SCANNED: usize = 128;
/// Bytes of a copy that count as a step: copies use memory, too.
const COPIED: usize = 8;
/// Steps of an element of a list that is made.
const ELEMENT: u64 = 4;

/// The steps that an evaluation may still take.
///
/// The cost of kube-apiserver counts the work of an expression, and some work by much too little: a
/// comparison costs a tenth of the size of the smaller list, whatever lies in the lists, and a list
/// that holds another list twice, which again holds a list twice, is small and has exponentially
/// many values. A step is the time of comparing two small values, some 30 ns.
#[derive(Debug)]
pub struct WorkBudget {
    left: Cell<u64>,
    /// Whether steps were refused. A budget can be used up exactly, without a refusal.
    was_exceeded: Cell<bool>,
}

impl WorkBudget {
    /// A budget of that many steps.
    pub fn new(steps: u64) -> WorkBudget {
        WorkBudget { left: Cell::new(steps), was_exceeded: Cell::new(false) }
    }

    /// The steps that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Whether steps were refused because no more were left.
    pub(crate) fn was_exceeded(&self) -> bool {
        self.was_exceeded.get()
    }

    /// Takes steps; an error if fewer are left.
    #[inline]
    pub fn take(&self, steps: u64) -> Result<(), EvalError> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                self.was_exceeded.set(true);
                Err(EvalError::CostLimitExceeded)
            }
        }
    }

    /// Takes the steps of reading a text of this length; none for a short text.
    #[inline]
    pub fn scan(&self, bytes: usize) -> Result<(), EvalError> {
        if bytes < SCANNED { Ok(()) } else { self.take((bytes / SCANNED) as u64) }
    }

    /// Takes the steps of making a text of this length.
    pub fn copy(&self, bytes: usize) -> Result<(), EvalError> {
        self.take((bytes / COPIED) as u64)
    }

    /// Takes the steps of making a list of this length.
    pub fn elements(&self, count: usize) -> Result<(), EvalError> {
        self.take((count as u64).saturating_mul(ELEMENT))
    }
}
