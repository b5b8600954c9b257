//! Indexes: their definitions, the computation of their values, and their tables.

pub(in crate::store) mod detached_values;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod index;
mod postings;
mod probe;
mod table;
mod values;

pub(in crate::store) use index::{Evaluator, IndexId};
pub use index::{Index, IndexValue};
pub(in crate::store) use postings::Postings;
pub use probe::IndexProbe;
pub(in crate::store) use table::IndexTable;
pub(in crate::store) use values::{IndexPlan, ValueRange, Values};
