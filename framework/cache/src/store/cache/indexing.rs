//! Construction of indexes, while readers read and objects change.

use std::sync::Arc;

use super::core::StoreCore;
use crate::store::index::detached_values::refusal;
use crate::store::index::{Evaluator, IndexId, IndexPlan, IndexTable, Values};
use crate::store::object::Object;
use crate::store::slots::Id;
use crate::store::state::StoreState;
use windlass_core::error::Error;

/// Places that are read under a single lock, so that no writer waits for long.
const PLACES: usize = 128;

impl StoreCore {
    /// Builds an index, unless the store has the index. Objects that change meanwhile are indexed
    /// by their change, so a single pass over the others is enough.
    ///
    /// # Errors
    /// The path ends at no value, or at a field that is never kept; or objects are in the store
    /// already and the field was not kept of them. Snapshots whose objects are all
    /// gone do not count: the index finds nothing in them.
    pub(crate) fn ensure_index(&self, id: IndexId, evaluator: &Evaluator) -> Result<(), Error> {
        let built = |state: &StoreState| {
            let table = state.tables.iter().find(|table| table.id == id);
            (table.map(|table| table.is_ready), state.slots.len() > 0 || !state.own.is_empty())
        };
        // With the read lock first: a caller that retries after each refusal must not block
        // readers.
        let (is_ready, is_late) = built(&self.state.read());
        if is_ready == Some(true) {
            return Ok(());
        }
        // Before the write lock is taken: the error is formatted outside of the lock.
        let refused = |is_late| refusal(self.info(), &self.encoder.settings, evaluator, is_late);
        if is_ready.is_none() {
            refused(is_late).map_or(Ok(()), Err)?;
        }
        let too_late = if is_late { None } else { refused(true) };
        {
            let mut state = self.state.write();
            // Looked at again: another caller may have built the index, or the first objects may
            // have come.
            match built(&state) {
                (Some(true), _) => return Ok(()),
                (Some(false), _) => {}
                (None, is_late) => {
                    too_late.filter(|_| is_late).map_or(Ok(()), Err)?;
                    state.install(|hasher| IndexTable::new(id, evaluator.clone(), hasher));
                }
            }
        }
        self.index_all(id, evaluator);
        Ok(())
    }

    /// Indexes all objects in the new table of `id`, and makes the table ready for lookups.
    fn index_all(&self, id: IndexId, evaluator: &Evaluator) {
        let plan = IndexPlan::new([evaluator]);
        let mut from = 0;
        while let Some(objects) = self.objects_from(&mut from) {
            let mut values = Values::default();
            let evaluate = |(id, object): (Id, Arc<Object>)| {
                let part = plan.evaluate(&object, &object, &mut values);
                (id, object, part)
            };
            let objects: Vec<_> = objects.into_iter().map(evaluate).collect();
            let mut state = self.state.write();
            let StoreState { slots, tables, .. } = &mut *state;
            let Some(table) = tables.iter_mut().find(|table| table.id == id) else { break };
            for (id, object, part) in &objects {
                // A change since the read has indexed the object: the table is in the plan already.
                if slots.object(*id).is_some_and(|now| Arc::ptr_eq(now, object)) {
                    table.set(*id, values.of(part, 0), slots);
                }
            }
        }
        let mut state = self.state.write();
        if let Some(table) = state.tables.iter_mut().find(|table| table.id == id) {
            table.is_ready = true;
        }
    }

    /// Returns the objects of the next places and advances `from`; `None` when there are no more
    /// places.
    fn objects_from(&self, from: &mut usize) -> Option<Vec<(Id, Arc<Object>)>> {
        let state = self.state.read();
        let ids = *from..state.slots.places().min(*from + PLACES);
        if ids.is_empty() {
            return None;
        }
        *from = ids.end;
        let object = |id| Some((id as Id, Arc::clone(state.slots.object(id as Id)?)));
        Some(ids.filter_map(object).collect())
    }
}
