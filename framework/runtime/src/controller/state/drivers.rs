//! The drivers of external resources that a controller has. The name of a driver is a part of the
//! keys of its records.

// DESIGN.md, 245: Drivers that would share a record are refused
// DESIGN.md, 249: The controllers of an operator know the drivers at work on each object

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

/// Most objects of which the driver is kept, by the name of the driver.
const MOST: usize = 10_000;

/// Registry of the drivers that are at work on objects, of all controllers of an operator.
#[derive(Debug, Default)]
pub struct ExternalRegistry(Mutex<Generations>);

/// Drivers by name and uid of the object, in two generations: when the young one is full, the old
/// one is forgotten, so that deleted objects go and objects that are asked for stay.
#[derive(Debug, Default)]
struct Generations {
    young: BTreeMap<(String, String), AtWork>,
    old: BTreeMap<(String, String), AtWork>,
}

/// The driver that was at work first on an object.
#[derive(Debug)]
struct AtWork {
    driver: Weak<()>,
    controller: Arc<str>,
}

/// The drivers of one controller.
#[derive(Debug)]
pub(crate) struct Drivers {
    controller: Arc<str>,
    /// Names of those that are fields of graphs.
    fields: Vec<String>,
    /// By the name of the driver and the uid of the object. Those of this controller alone, unless
    /// it is a part of an operator.
    at_work: OnceLock<Arc<ExternalRegistry>>,
}

impl Drivers {
    /// Creates the drivers of a controller whose graphs have fields with drivers of these names.
    pub(crate) fn new(controller: &Arc<str>, fields: Vec<String>) -> Self {
        Self { controller: Arc::clone(controller), fields, at_work: OnceLock::new() }
    }

    /// Makes the controller one of those that know these drivers; called before the first
    /// reconcile.
    pub(crate) fn share(&self, at_work: &Arc<ExternalRegistry>) {
        // The first ones stay: a controller belongs to one operator.
        let _ = self.at_work.set(Arc::clone(at_work));
    }

    /// Whether records whose keys have that suffix are of a field's driver: its main resource, or a
    /// part of it.
    pub(crate) fn have_field(&self, suffix: &str) -> bool {
        self.fields.iter().any(|name| part_of(name, suffix).is_some())
    }

    /// Returns the controller of another driver of that name, which still exists and is at work on
    /// the object.
    pub(crate) fn another(&self, name: &str, uid: &str, driver: &Arc<()>) -> Option<Arc<str>> {
        let mut at_work = self.at_work.get_or_init(Arc::default).0.lock();
        let key = (name.to_owned(), uid.to_owned());
        let known = at_work.young.remove(&key).or_else(|| at_work.old.remove(&key));
        let entry = known.filter(|known| known.driver.strong_count() > 0).unwrap_or_else(|| {
            AtWork { driver: Arc::downgrade(driver), controller: Arc::clone(&self.controller) }
        });
        let is_other = !std::ptr::eq(entry.driver.as_ptr(), Arc::as_ptr(driver));
        let first = is_other.then(|| Arc::clone(&entry.controller));
        if at_work.young.len() >= MOST / 2 {
            at_work.old = std::mem::take(&mut at_work.young);
        }
        at_work.young.insert(key, entry);
        first
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

    fn drivers(controller: &str, fields: &[&str]) -> Drivers {
        let fields = fields.iter().map(|name| (*name).to_owned());
        Drivers::new(&controller.into(), fields.collect())
    }

    #[test]
    fn a_field_has_the_records_of_its_driver_and_of_all_parts() {
        let found = drivers("shops", &["", "db"]);
        for suffix in ["", "_logs", ".db", ".db_logs"] {
            assert!(found.have_field(suffix), "{suffix}");
        }
        for suffix in [".dbs", ".d", ".copy_logs"] {
            assert!(!found.have_field(suffix), "{suffix}");
        }
        assert!(!drivers("shops", &[]).have_field(""));
    }

    #[test]
    fn an_object_is_of_the_driver_that_was_at_work_first_while_it_exists() {
        let (drivers, one, two) = (drivers("shops", &[]), Arc::new(()), Arc::new(()));
        let is_refused =
            |name: &str, uid: &str, driver: &Arc<()>| drivers.another(name, uid, driver).is_some();
        assert!(!is_refused("", "a", &one) && !is_refused("", "a", &one));
        assert!(is_refused("", "a", &two));
        assert!(!is_refused("db", "a", &two) && !is_refused("", "b", &two));
        drop(one);
        assert!(!is_refused("", "a", &two));
    }

    #[test]
    fn a_driver_of_another_controller_is_found_if_both_are_of_one_operator() {
        let (one, two, driver) = (drivers("one", &[]), drivers("two", &[]), Arc::new(()));
        assert!(one.another("", "a", &driver).is_none());
        assert!(two.another("", "a", &Arc::new(())).is_none(), "of two operators");
        let (one, two, shared) = (drivers("one", &[]), drivers("two", &[]), Arc::default());
        one.share(&shared);
        two.share(&shared);
        assert!(one.another("", "a", &driver).is_none());
        assert_eq!(two.another("", "a", &Arc::new(())).as_deref(), Some("one"));
        assert!(two.another("", "a", &driver).is_none(), "both have the same driver");
    }

    #[test]
    fn of_ten_thousand_objects_those_stay_that_are_asked_for() {
        let (drivers, one, two) = (drivers("shops", &[]), Arc::new(()), Arc::new(()));
        for n in 0..3 * MOST {
            drivers.another("", &n.to_string(), &one);
            drivers.another("", "asked", &one);
        }
        let at_work = drivers.at_work.get().unwrap().0.lock();
        assert!(at_work.young.len() + at_work.old.len() <= MOST);
        drop(at_work);
        assert!(drivers.another("", "asked", &two).is_some());
        assert!(drivers.another("", "0", &two).is_none(), "forgotten");
    }
}
