//! Installation of definitions: the comparison with stored ones, and conditions of the latter.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionCondition, CustomResourceDefinitionStatus,
};
use serde_json::{Value, json};

use super::compare::equals_without_defaults;
use super::*;

fn with(conditions: &[(&str, &str)]) -> CustomResourceDefinition {
    let conditions = conditions
        .iter()
        .map(|(kind, status)| CustomResourceDefinitionCondition {
            type_: (*kind).to_owned(),
            status: (*status).to_owned(),
            ..CustomResourceDefinitionCondition::default()
        })
        .collect();
    CustomResourceDefinition {
        status: Some(CustomResourceDefinitionStatus {
            conditions: Some(conditions),
            ..CustomResourceDefinitionStatus::default()
        }),
        ..CustomResourceDefinition::default()
    }
}

#[test]
fn a_definition_is_served_once_it_is_established() {
    assert!(!served(&CustomResourceDefinition::default()).unwrap());
    assert!(!served(&with(&[("NamesAccepted", "True")])).unwrap());
    assert!(served(&with(&[("NamesAccepted", "True"), ("Established", "True")])).unwrap());
}

fn stored_by(version: Option<&str>) -> CustomResourceDefinition {
    let mut definition = with(&[("Established", "True")]);
    let annotation = version.map(|version| (VERSION.to_owned(), version.to_owned()));
    definition.metadata.annotations = Some(annotation.into_iter().collect());
    definition
}

#[test]
fn a_definition_of_a_newer_program_is_left_alone_and_one_of_unknown_age_is_not() {
    let own = stored_by(Some("1.2.0"));
    assert!(is_newer(&stored_by(Some("1.10.0")), &own));
    assert!(!is_newer(&stored_by(Some("1.2.0")), &own));
    assert!(!is_newer(&stored_by(Some("1.2.0-rc.1")), &own));
    assert!(!is_newer(&stored_by(None), &own));
    assert!(!is_newer(&stored_by(Some("2")), &own));
    assert!(!is_newer(&stored_by(Some("1.2.0+linux")), &own));
    let candidate = stored_by(Some("1.2.0-rc.2"));
    for newer in ["1.2.0", "1.2.0-rc.10"] {
        assert!(is_newer(&stored_by(Some(newer)), &candidate), "{newer}");
    }
}

#[test]
fn defaults_of_a_server_are_no_difference_and_surplus_fields_are_one() {
    let own = json!({ "names": { "plural": "sites" }, "schema": { "a": { "maximum": 5 } } });
    let mut stored = own.clone();
    stored["conversion"] = json!({ "strategy": "None" });
    stored["names"]["listKind"] = json!("SiteList");
    assert!(equals_without_defaults(&own, &stored));
    let mut wider = stored.clone();
    wider["schema"]["b"] = json!({});
    assert!(!equals_without_defaults(&own, &wider), "a field that the definition has no more");
    let mut other = stored.clone();
    other["schema"]["a"]["maximum"] = json!(6);
    assert!(!equals_without_defaults(&own, &other));
}

#[test]
fn a_kind_is_served_when_all_of_its_versions_are() {
    let of = |versions: &[(&str, bool)]| {
        let versions: Vec<_> = versions
            .iter()
            .map(|(name, served)| json!({ "name": name, "served": served, "storage": false }))
            .collect();
        let mut definition = with(&[("Established", "True")]);
        definition.spec.versions = serde_json::from_value(json!(versions)).unwrap();
        definition
    };
    let own = of(&[("v1", true), ("v2", true), ("v0", false)]);
    assert!(has_versions_of(&own, &of(&[("v3", true), ("v2", true), ("v1", true)])));
    assert!(!has_versions_of(&own, &of(&[("v1", true)])));
    assert!(!has_versions_of(&own, &of(&[("v1", true), ("v2", false)])));
}

#[test]
fn a_kept_definition_names_its_losses_and_the_parts_that_this_program_misses() {
    let of = |properties: Value, subresources: Value| {
        let mut definition = with(&[("Established", "True")]);
        definition.metadata.name = Some("sites.example.dev".to_owned());
        definition.spec.versions = serde_json::from_value(json!([{
            "name": "v1", "served": true, "storage": true, "subresources": subresources,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
        }]))
        .unwrap();
        definition
    };
    let own = of(json!({ "host": { "type": "string" } }), json!({ "status": {} }));
    let stored = of(json!({ "port": { "type": "integer" } }), json!({}));
    let losses = foreign::losses(&own, &stored);
    let InstallPlan::Keep(Some(kept)) = keep_or_refuse(&own, &stored, &losses) else {
        panic!("it serves the version")
    };
    let missing = "works by it; it has not, so the API server drops from all that is written: \
                   .host of v1; it does not have: the subresource status of v1; declare";
    assert!(kept.text.contains("would take from it: .port of v1; "), "{}", kept.text);
    assert!(kept.text.contains(missing), "{}", kept.text);
}

#[test]
fn names_that_clash_are_an_error_at_once() {
    let error = served(&with(&[("NamesAccepted", "False")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}
