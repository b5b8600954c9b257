//! Values of an index, computed for objects outside of the store.

use std::fmt;
use std::sync::Arc;

use super::index::{Evaluator, IndexId};
use super::values::{IndexPlan, Values};
use crate::store::object::Object;

/// Computes the values of an index for objects that a listener receives: those before a change and
/// afterwards. Cheap to clone.
#[derive(Clone)]
pub struct IndexProbe {
    id: IndexId,
    name: &'static str,
    plan: Arc<IndexPlan>,
}

impl fmt::Debug for IndexProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IndexProbe").field(&self.name).finish()
    }
}

impl IndexProbe {
    pub(in crate::store) fn new(id: IndexId, name: &'static str, evaluator: &Evaluator) -> Self {
        Self { id, name, plan: Arc::new(IndexPlan::new([evaluator])) }
    }

    /// Whether both compute the same index.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.id == other.id
    }

    /// Returns the values of a cached object, sorted and distinct. May run user code: never call
    /// this under a lock.
    #[must_use]
    pub fn values(&self, object: &Arc<Object>) -> Vec<String> {
        let mut values = Values::default();
        let part = self.plan.evaluate(object, object, &mut values);
        values.of(&part, 0).iter().map(str::to_owned).collect()
    }
}
