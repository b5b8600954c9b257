//! The static estimate of the cost of an expression. No dependencies.
