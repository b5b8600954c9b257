//! Brings what is about to be applied into the form that the store keeps, outside of its lock.

use std::sync::Arc;

use super::apply::{Mark, Sighting};
use super::core::Core;
use super::object::Object;
use crate::delta::Delta;

/// What bringing a batch into the kept form did; empty where objects are kept as they come.
#[derive(Default)]
pub(super) struct Conversion {
    /// By place in the batch: the object as it came, if another form of it is kept.
    came: Vec<Option<Arc<Object>>>,
    /// Those that do not decode, and why.
    invalid: Vec<(Arc<Object>, Arc<str>)>,
}

impl Conversion {
    /// The object at that place of the batch as it came.
    pub(super) fn came(&self, at: usize) -> Option<&Arc<Object>> {
        self.came.get(at)?.as_ref()
    }
}

impl Core {
    /// Brings the objects that are new to the store into the form that is kept.
    pub(super) fn keep(&self, deltas: &mut [Delta<Sighting, Mark>]) -> Conversion {
        let mut done = Conversion::default();
        if self.home.mode.is_compact() {
            return done;
        }
        let fresh: Vec<bool> = {
            let state = self.state.read();
            let is_fresh = |delta: &Delta<Sighting, Mark>| matches!(delta, Delta::Put(seen) if !state.holds(&seen.object));
            deltas.iter().map(is_fresh).collect()
        };
        for (delta, is_fresh) in deltas.iter_mut().zip(fresh) {
            let Delta::Put(seen) = delta else {
                done.came.push(None);
                continue;
            };
            let kept = if is_fresh { Some(self.home.keep(&seen.object)) } else { None };
            done.came.push(match kept {
                Some(Ok(kept)) => Some(std::mem::replace(&mut seen.object, kept)),
                Some(Err(why)) => {
                    done.invalid.push((Arc::clone(&seen.object), why.into()));
                    None
                }
                None => None,
            });
        }
        done
    }

    /// After the batch was applied.
    pub(super) fn settle(&self, done: Conversion) {
        for (object, why) in &done.invalid {
            self.note_invalid(object, why);
        }
        #[cfg(feature = "cold")]
        for waited in self.home.press.train() {
            if let Ok(pressed) = self.home.keep(&waited) {
                self.state.write().refit(&waited, &pressed);
            }
        }
    }
}
