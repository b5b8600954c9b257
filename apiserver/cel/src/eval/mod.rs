//! Values over JSON, functions and evaluation with a cost budget.
