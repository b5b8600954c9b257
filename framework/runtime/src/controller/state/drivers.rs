//! The drivers of external resources that a controller has. The name of a driver is a part of the keys of its records.

// DESIGN.md, 245: Drivers that would share a record are refused

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Most names of which the driver is kept; a controller has a few.
const MOST: usize = 64;

/// The drivers of one controller.
#[derive(Debug, Default)]
pub(crate) struct Drivers {
    /// Names of those that are fields of graphs.
    fields: Vec<String>,
    /// Number of the driver that was at work first, by its name.
    first: Mutex<BTreeMap<String, u64>>,
}

impl Drivers {
    /// Creates the drivers of a controller whose graphs have fields with drivers of these names.
    pub(crate) fn new(fields: Vec<String>) -> Self {
        Self { fields, first: Mutex::default() }
    }

    /// Whether records whose keys have that suffix are of a field's driver: its main resource, or a part of it.
    pub(crate) fn have_field(&self, suffix: &str) -> bool {
        self.fields.iter().any(|name| part_of(name, suffix).is_some())
    }

    /// Whether a driver of that name is at work that has another number.
    pub(crate) fn have_another(&self, name: &str, number: u64) -> bool {
        let mut first = self.first.lock();
        if let Some(first) = first.get(name) {
            return *first != number;
        }
        if first.len() < MOST {
            first.insert(name.to_owned(), number);
        }
        false
    }
}

/// Returns the part of a driver whose keys have that suffix: `.NAME` of a driver with a name, `_PART` of a part. The main
/// resource is the empty part; `None` for another driver.
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
    fn a_name_is_of_the_driver_that_was_at_work_first() {
        let drivers = Drivers::default();
        assert!(!drivers.have_another("", 1) && !drivers.have_another("", 1));
        assert!(drivers.have_another("", 2) && !drivers.have_another("db", 2));
        for n in 0..2 * MOST {
            drivers.have_another(&n.to_string(), 3);
        }
        assert_eq!(drivers.first.lock().len(), MOST);
    }
}
