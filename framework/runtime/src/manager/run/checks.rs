//! Checks of an operator's settings before the start.

// DESIGN.md, 162: `Reconciling`, `Stalled` and `Paused` belong to the controller of `Ready`
// DESIGN.md, 178: The type of an outcome condition is kept as a declared one is
// DESIGN.md, 245: Drivers that would share a record are refused

use std::collections::BTreeSet;

use super::super::manifests::check_namespaces;
use crate::controller::ErasedController;
use crate::manager::Manager;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// Longest reporter name that Kubernetes allows in an Event.
const LONGEST_NAME: usize = 63;

/// Checks that names are valid and unique: they label metrics, logs and probes.
pub(in crate::manager) fn names(manager: &Manager) -> Result<(), Error> {
    let check_unique = |parts: &str, names: Vec<&str>| {
        let mut seen = BTreeSet::new();
        match names.iter().find(|name| !seen.insert(**name)) {
            None => Ok(()),
            Some(name) => {
                let text =
                    format!("two {parts} are called {name:?}; give one of them another name");
                Err(Error::new(ErrorKind::Config, text))
            }
        }
    };
    manager.controllers.iter().try_for_each(|one| check_controller_name(one.name()))?;
    check_namespaces(manager)?;
    check_unique("controllers", manager.controllers.iter().map(|one| one.name()).collect())?;
    check_unique("runnables", manager.runnables.iter().map(|one| one.name()).collect())?;
    let clusters = manager.clusters.iter().map(|one| one.name());
    check_unique("clusters", clusters.chain(["local"]).collect())?;
    let mut numbers = BTreeSet::new();
    match manager.clusters.iter().find(|one| !numbers.insert(one.id())) {
        None => Ok(()),
        Some(one) => {
            let text = format!(
                "the cluster {:?} has the same number as another; give it another name",
                one.name()
            );
            Err(Error::new(ErrorKind::Config, text))
        }
    }
}

/// Checks that no two controllers of the same kind keep a condition of the same type: each would
/// undo the writes of the other, without end.
pub(in crate::manager) fn conditions(manager: &Manager) -> Result<(), Error> {
    for (other, one, kind) in of_one_kind(manager) {
        let theirs = other.kept_conditions();
        let kept = one.kept_conditions();
        let Some(type_) = kept.iter().find(|type_| theirs.contains(*type_)) else { continue };
        let text = format!(
            "the controllers {:?} and {:?} both keep the condition `{type_}` of {}, and would \
             rewrite it for ever; give one of them another type: another `outcome_condition`, or \
             conditions with a root of its own, `#[conditions(root = \"…\")]`, and with types that \
             the other does not have",
            other.name(),
            one.name(),
            kind.group_resource()
        );
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(())
}

/// Returns each two controllers of one kind.
fn of_one_kind(
    manager: &Manager,
) -> impl Iterator<Item = (&dyn ErasedController, &dyn ErasedController, &ResourceInfo)> {
    manager.controllers.iter().enumerate().flat_map(|(place, one)| {
        let kind = one.planned_kind();
        let before = manager.controllers.iter().take(place);
        before.filter_map(move |other| {
            let (kind, its) = (kind?, other.planned_kind()?);
            let is_same = its.group == kind.group && its.kind == kind.kind;
            is_same.then_some((&**other, &**one, kind))
        })
    })
}

/// Checks that no two drivers of external resources of one kind have the same name: they would share the records on an
/// object, and each would take the resource of the other for its own.
pub(in crate::manager) fn drivers(manager: &Manager) -> Result<(), Error> {
    let shared = |who: &str, name: &str, kind: &ResourceInfo| {
        let name = match name {
            "" => "no name".to_owned(),
            name => format!("the name {name:?}"),
        };
        let text = format!(
            "{who} drivers of external resources of {} that have {name}, and would take each other's resources for their \
             own; give the newer one a name that no other has, by `Externals::named`: a driver that is deployed keeps \
             its name",
            kind.group_resource()
        );
        Err(Error::new(ErrorKind::Config, text))
    };
    for one in &manager.controllers {
        let Some(kind) = one.planned_kind() else { continue };
        let (names, mut seen) = (one.driver_names(), BTreeSet::new());
        if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
            let who =
                format!("two fields of the controller {:?} have one driver, or two", one.name());
            return shared(&who, name, kind);
        }
    }
    for (other, one, kind) in of_one_kind(manager) {
        let theirs = other.driver_names();
        if let Some(name) = one.driver_names().iter().find(|name| theirs.contains(*name)) {
            let who = format!("the controllers {:?} and {:?} have", other.name(), one.name());
            return shared(&who, name, kind);
        }
    }
    Ok(())
}

/// Checks that a shadow has a client for dry runs.
pub(super) fn shadow(manager: &Manager) -> Result<(), Error> {
    if manager.shadow.is_none() || manager.client.is_dry_run() {
        return Ok(());
    }
    let text = "cannot follow a running operator: the client of the manager writes; build the manager \
                and its controllers with `client.dry_run()`";
    Err(Error::new(ErrorKind::Usage, text))
}

/// Checks the name of a controller: an API server refuses Events whose reporter has a name of
/// another form, and some such names as field managers.
fn check_controller_name(controller: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    let is_valid = (1..=LONGEST_NAME).contains(&controller.len())
        && controller.chars().all(|c| is_plain(c) || matches!(c, '-' | '_' | '.'))
        && controller.starts_with(is_plain)
        && controller.ends_with(is_plain);
    if is_valid {
        return Ok(());
    }
    let text = format!(
        "a controller is called {controller:?}, and the API server would refuse its Events; give it a \
         name of at most {LONGEST_NAME} ASCII letters, digits, `-`, `_` and `.` that begins and ends with \
         a letter or a digit (`ControllerBuilder::name`)"
    );
    Err(Error::new(ErrorKind::Config, text))
}
