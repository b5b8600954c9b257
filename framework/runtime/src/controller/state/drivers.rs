//! The drivers of external resources that a controller has. The name of a driver is a part of the
//! keys of its records.

// DESIGN.md, 245: Drivers that would share a record are refused

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Most objects of which the driver is kept.
const MOST: usize = 10_000;

/// The drivers of one controller.
#[derive(Debug, Default)]
pub(crate) struct Drivers {
    /// Names of those that are fields of graphs.
    fields: Vec<String>,
    /// Driver that was at work first, by its name and the uid of the object.
    first: Mutex<BTreeMap<(String, String), Weak<()>>>,
}

impl Drivers {
    /// Creates the drivers of a controller whose graphs have fields with drivers of these names.
    pub(crate) fn new(fields: Vec<String>) -> Self {
        Self { fields, first: Mutex::default() }
    }

    /// Whether records whose keys have that suffix are of a field's driver: its main resource, or a
    /// part of it.
    pub(crate) fn have_field(&self, suffix: &str) -> bool {
        self.fields.iter().any(|name| part_of(name, suffix).is_some())
    }

    /// Whether another driver of that name, which still exists, is at work on the object.
    pub(crate) fn have_another(&self, name: &str, uid: &str, driver: &Arc<()>) -> bool {
        let (mut first, key) = (self.first.lock(), (name.to_owned(), uid.to_owned()));
        if let Some(known) = first.get(&key).and_then(Weak::upgrade) {
            return !Arc::ptr_eq(&known, driver);
        }
        if first.len() >= MOST {
            first.retain(|_, driver| driver.strong_count() > 0);
        }
        if first.len() < MOST {
            first.insert(key, Arc::downgrade(driver));
        }
        false
    }
}

/// Returns the part of a driver whose keys have that suffix: `.NAME` of a driver with a name,
/// `_PART` of a part. The main resource is the empty part; `None` for another driver.
pub(crate) fn part_of<'a>(name: &str, suffix: &'a str) -> Option<&'a str> {
    let found =
        if name.is_empty() { suffix } else { suffix.strip_prefix('.')?.strip_prefix(name)? };
    if found.is_empty() { Some("") } else { found.strip_prefix('_') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_records_of_its_driver_and_of_all_parts() {
        let drivers = Drivers::new(vec![String::new(), "db".to_owned()]);
        for suffix in ["", "_logs", ".db", ".db_logs"] {
            assert!(drivers.have_field(suffix), "{suffix}");
        }
        for suffix in [".dbs", ".d", ".copy_logs"] {
            assert!(!drivers.have_field(suffix), "{suffix}");
        }
        assert!(!Drivers::default().have_field(""));
    }

    #[test]
    fn an_object_is_of_the_driver_that_was_at_work_first_while_it_exists() {
        let (drivers, one, two) = (Drivers::default(), Arc::new(()), Arc::new(()));
        assert!(!drivers.have_another("", "a", &one) && !drivers.have_another("", "a", &one));
        assert!(drivers.have_another("", "a", &two));
        assert!(!drivers.have_another("db", "a", &two) && !drivers.have_another("", "b", &two));
        drop(one);
        assert!(!drivers.have_another("", "a", &two));
    }

    #[test]
    fn the_drivers_of_at_most_ten_thousand_objects_are_kept() {
        let (drivers, one) = (Drivers::default(), Arc::new(()));
        for n in 0..=MOST {
            drivers.have_another("", &n.to_string(), &one);
        }
        assert_eq!(drivers.first.lock().len(), MOST);
    }
}
