//! Owners of series for which several components may ask under the same labels.
//!
//! Two caches of the same kind in an operator would feed the same series: a gauge would then show
//! the value of the last writer, and the end of either cache would remove the series of the other.
//! Lock order: `forget` runs under the lock of [`SeriesOwners`] and takes only locks of the
//! registry.

use std::collections::BTreeMap;

use crate::sync::Mutex;

/// The owners of series whose first label is a name.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct SeriesOwners(Mutex<BTreeMap<Vec<String>, SeriesOwner>>);

/// The owner of a series, and the number of registrations.
#[derive(Debug)]
struct SeriesOwner {
    /// A number that identifies the owner, such as its address: only compared for equality.
    owner: usize,
    /// The name that the owner asked for.
    wanted: String,
    /// Registrations that have not been undone.
    count: usize,
}

impl SeriesOwners {
    /// Registers `owner` as the owner of the series with these labels; repeated calls with the
    /// same labels are counted. If another owner has the series, the first label becomes that of
    /// the first free number: `Pod #2`.
    #[doc(hidden)]
    pub fn enter(&self, owner: usize, labels: &mut [String]) {
        let mut owners = self.0.lock();
        let name = labels.first().cloned().unwrap_or_default();
        let mut number = 1_u32;
        while owners
            .get(&*labels)
            .is_some_and(|entry| (entry.owner, &entry.wanted) != (owner, &name))
            && let Some(first) = labels.first_mut()
        {
            number += 1;
            *first = format!("{name} #{number}");
        }
        let entry = SeriesOwner { owner, wanted: name, count: 0 };
        owners.entry(labels.to_vec()).or_insert(entry).count += 1;
    }

    /// Undoes a call of [`enter`](Self::enter). After the last owner, calls `forget` before another
    /// owner can enter.
    #[doc(hidden)]
    pub fn leave(&self, labels: &[String], forget: impl FnOnce()) {
        let mut owners = self.0.lock();
        match owners.get_mut(labels) {
            Some(entry) if entry.count > 1 => entry.count -= 1,
            _ => {
                owners.remove(labels);
                // Under the lock: a new owner of the same labels would otherwise lose fresh series.
                forget();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_owners_of_one_name_have_series_of_their_own() {
        let owners = SeriesOwners::default();
        let mut names = Vec::new();
        for owner in [1, 1, 2, 3] {
            let mut labels = ["Pod".to_owned(), "pods".to_owned()];
            owners.enter(owner, &mut labels);
            names.push(labels);
        }
        let first = names.iter().map(|labels| labels[0].as_str()).collect::<Vec<_>>();
        assert_eq!(first, ["Pod", "Pod", "Pod #2", "Pod #3"]);
        let mut forgotten = 0;
        names.iter().for_each(|labels| owners.leave(labels, || forgotten += 1));
        assert_eq!(forgotten, 3, "with the last of each");
        let mut labels = ["Pod".to_owned(), "pods".to_owned()];
        owners.enter(2, &mut labels);
        assert_eq!(labels[0], "Pod");
    }

    #[test]
    fn a_name_that_has_a_number_already_is_not_that_of_one_that_got_it() {
        let owners = SeriesOwners::default();
        let given = [(1, "Pod"), (2, "Pod"), (2, "Pod #2"), (2, "Pod")].map(|(owner, name)| {
            let mut labels = [name.to_owned()];
            owners.enter(owner, &mut labels);
            labels[0].clone()
        });
        assert_eq!(given, ["Pod", "Pod #2", "Pod #2 #2", "Pod #2"]);
    }
}
