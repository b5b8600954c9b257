//! Versions of a definition: those that come and go, the stored one, and the features of each.

use serde_json::Value;

use super::change::DefinitionChange;
use super::node::{SchemaAtPath, list, text};
use super::rule::CompatRule;
use super::schema;

/// Largest number of fields that a text names.
const MOST_NAMED: usize = 5;

/// Compares all versions; `stored` are those in which objects are stored, if they are known.
pub(super) fn compare(
    old: &Value,
    new: &Value,
    stored: &[String],
    found: &mut Vec<DefinitionChange>,
) {
    for version in list(&old["versions"]) {
        let name = text(&version["name"]);
        let is_stored = version["storage"] == true || stored.iter().any(|stored| stored == name);
        let same = list(&new["versions"]).iter().find(|new| new["name"] == version["name"]);
        let of_version = |rule, subject: &str, text: &str| {
            DefinitionChange::of_part(rule, subject.to_owned(), text.to_owned()).of_version(name)
        };
        match same {
            Some(same) => compare_version(name, version, same, found),
            None if version["served"] == true => {
                let subject = format!("the served version {name}");
                found.push(of_version(
                    CompatRule::VersionRemoved,
                    &subject,
                    "the version is removed",
                ));
            }
            None if is_stored => {
                let subject = format!("the version {name}, in which objects are stored");
                let text = "the version, in which objects are stored, is removed";
                found.push(of_version(CompatRule::VersionRemoved, &subject, text));
            }
            None => found.push(of_version(
                CompatRule::UnusedVersionRemoved,
                "",
                "the version, which was not served, is removed",
            )),
        }
    }
    for version in list(&new["versions"]) {
        if !list(&old["versions"]).iter().any(|old| old["name"] == version["name"]) {
            let added = "the version is new".to_owned();
            let added = DefinitionChange::of_part(CompatRule::VersionAdded, String::new(), added);
            found.push(added.of_version(text(&version["name"])));
        }
    }
    compare_storage(old, new, found);
}

/// Compares two versions of one name. The schema of a version that is no longer served is not
/// compared: all its requests fail.
fn compare_version(name: &str, old: &Value, new: &Value, found: &mut Vec<DefinitionChange>) {
    let before = found.len();
    match (old["served"] == true, new["served"] == true) {
        (true, false) => {
            let text = "the version is no longer served".to_owned();
            let subject = format!("the served version {name}");
            found.push(DefinitionChange::of_part(CompatRule::VersionUnserved, subject, text));
        }
        (was_served, is_served) => {
            if is_served && !was_served {
                let text = "the version is served".to_owned();
                found.push(DefinitionChange::of_part(
                    CompatRule::VersionServed,
                    String::new(),
                    text,
                ));
            }
            compare_features(old, new, found);
            let root = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
            let (old, new) = (root(old), root(new));
            schema::compare(SchemaAtPath::root(&old), SchemaAtPath::root(&new), found);
        }
    }
    if new["deprecated"] == true && old["deprecated"] != true {
        let text = "the version is deprecated".to_owned();
        found.push(DefinitionChange::of_part(CompatRule::VersionDeprecated, String::new(), text));
    }
    for change in &mut found[before..] {
        change.version = Some(name.to_owned());
    }
}

/// Compares subresources, selectable fields and columns.
fn compare_features(old: &Value, new: &Value, found: &mut Vec<DefinitionChange>) {
    let mut add = |rule, subject: String, text: String| {
        found.push(DefinitionChange::of_part(rule, subject, text));
    };
    for subresource in ["status", "scale"] {
        let has = |version: &Value| version["subresources"][subresource].is_object();
        let subject = format!("the subresource {subresource}");
        match (has(old), has(new)) {
            (true, false) => {
                add(
                    CompatRule::SubresourceRemoved,
                    subject.clone(),
                    format!("{subject} is removed"),
                );
            }
            (false, true) => {
                let is_status = subresource == "status";
                let rule =
                    if is_status { CompatRule::StatusSeparated } else { CompatRule::ScaleAdded };
                add(rule, String::new(), format!("{subject} is new"));
            }
            _ => {}
        }
    }
    let scale = |version: &Value| version["subresources"]["scale"].clone();
    let (old_scale, new_scale) = (scale(old), scale(new));
    for path in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
        let (old, new) = (text(&old_scale[path]), text(&new_scale[path]));
        if new_scale.is_object() && !old.is_empty() && old != new {
            let text = format!("`{path}` changes from {old:?} to {new:?}");
            add(CompatRule::ScaleChanged, String::new(), text);
        } else if old_scale.is_object() && old.is_empty() && !new.is_empty() {
            add(CompatRule::ScaleAdded, String::new(), format!("`{path}` {new:?} is new"));
        }
    }
    let selectable = |version: &Value| -> Vec<String> {
        let fields = list(&version["selectableFields"]).iter();
        fields.map(|field| text(&field["jsonPath"]).to_owned()).collect()
    };
    let (old_fields, new_fields) = (selectable(old), selectable(new));
    for path in old_fields.iter().filter(|path| !new_fields.contains(path)) {
        let subject = format!("the selectable field {path}");
        add(CompatRule::SelectableFieldRemoved, subject.clone(), format!("{subject} is removed"));
    }
    for path in new_fields.iter().filter(|path| !old_fields.contains(path)) {
        let text = format!("the selectable field {path} is new");
        add(CompatRule::SelectableFieldAdded, String::new(), text);
    }
    if list(&old["additionalPrinterColumns"]) != list(&new["additionalPrinterColumns"]) {
        let text = "the columns of `kubectl get` change".to_owned();
        add(CompatRule::ColumnsChanged, String::new(), text);
    }
}

/// Compares the storage versions. Without a webhook, an object is stored with the fields that the
/// schema of the storage version keeps.
fn compare_storage(old: &Value, new: &Value, found: &mut Vec<DefinitionChange>) {
    let storage = |spec: &Value| {
        list(&spec["versions"]).iter().find(|version| version["storage"] == true).cloned()
    };
    let (Some(before), Some(after)) = (storage(old), storage(new)) else { return };
    if before["name"] == after["name"] {
        return;
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let (old_schema, new_schema) = (schema(&before), schema(&after));
    let mut lost = Vec::new();
    if new["conversion"]["strategy"] != "Webhook" {
        schema::compare(
            SchemaAtPath::root(&old_schema),
            SchemaAtPath::root(&new_schema),
            &mut lost,
        );
    }
    let pruned = |change: &&DefinitionChange| match change.rule {
        CompatRule::FieldRemoved | CompatRule::OpenFieldsRemoved => true,
        CompatRule::FieldDescribed => !change.subject.is_empty(),
        _ => false,
    };
    let paths: Vec<&str> = lost.iter().filter(pruned).map(DefinitionChange::path).collect();
    let (from, to) = (text(&before["name"]), text(&after["name"]));
    let mut text = format!("the storage version changes from {from} to {to}");
    if paths.is_empty() {
        let change =
            DefinitionChange::of_part(CompatRule::StorageVersionChanged, String::new(), text);
        return found.push(change);
    }
    let mut named = paths[..paths.len().min(MOST_NAMED)].join(", ");
    if paths.len() > MOST_NAMED {
        named = format!("{named} and {} more", paths.len() - MOST_NAMED);
    }
    text = format!("{text}, whose schema does not have {named}");
    let lost = format!("{named} as stored in {from} (here objects are stored in {to})");
    found.push(DefinitionChange::of_part(CompatRule::StorageVersionLossy, lost, text));
}
