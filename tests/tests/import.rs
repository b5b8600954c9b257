//! Rust types of public definitions, as `windlass import` prints them: compiled, and with the
//! schemas that were imported.
//!
//! `import/fixtures` has small copies of the interesting shapes of public definitions,
//! `import/types` the printed types, `import/exact` those of some with `--exact`. After a change of
//! the generator: `WINDLASS_IMPORT=accept cargo test -p windlass-tests --test import`, twice.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

mod import {
    pub(crate) mod schemas;
}

use std::path::{Path, PathBuf};

use import::schemas::check;
use serde_json::{Value, json};
use windlass::cli::{ImportOptions, import_definitions};
use windlass::crd::CustomResource;

/// Declares the modules of printed types.
macro_rules! printed {
    ($($name:ident $path:literal)*) => {
        $(
            #[path = $path]
            #[rustfmt::skip]
            #[allow(
                dead_code, missing_docs, unreachable_pub, clippy::all, clippy::doc_markdown, rustdoc::bare_urls,
                reason = "printed types"
            )]
            mod $name;
        )*
    };
}

printed! {
    application "import/types/application.rs"
    backup "import/types/backup.rs"
    certificate "import/types/certificate.rs"
    cluster "import/types/cluster.rs"
    clusterpolicy "import/types/clusterpolicy.rs"
    composition "import/types/composition.rs"
    externalsecret "import/types/externalsecret.rs"
    gateway "import/types/gateway.rs"
    helmrelease "import/types/helmrelease.rs"
    httproute "import/types/httproute.rs"
    ipaddresspool "import/types/ipaddresspool.rs"
    kafka "import/types/kafka.rs"
    knativeservice "import/types/knativeservice.rs"
    kustomization "import/types/kustomization.rs"
    names "import/types/names.rs"
    pipeline "import/types/pipeline.rs"
    prometheusrule "import/types/prometheusrule.rs"
    rollout "import/types/rollout.rs"
    scaledobject "import/types/scaledobject.rs"
    servicemonitor "import/types/servicemonitor.rs"
    storageprofile "import/types/storageprofile.rs"
    values "import/types/values.rs"
    virtualservice "import/types/virtualservice.rs"
    words "import/types/words.rs"
    workflow "import/types/workflow.rs"
    exact_backup "import/exact/backup.rs"
    exact_gateway "import/exact/gateway.rs"
    exact_names "import/exact/names.rs"
    exact_rollout "import/exact/rollout.rs"
    exact_storageprofile "import/exact/storageprofile.rs"
    exact_values "import/exact/values.rs"
    exact_words "import/exact/words.rs"
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("fixtures/{name}.yaml"))).unwrap()
}

/// Names of the files in a folder, without their ends.
fn files(of: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder().join(of)).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> =
        entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Compares the printed types with those of a file, or writes them.
fn compare_or_accept(of: &str, names: &[String], exact: bool) {
    let mut different = Vec::new();
    for name in names {
        let options = ImportOptions::default().exact(exact);
        let source = import_definitions(&fixture(name), &options).unwrap().source;
        let path = folder().join(format!("{of}/{name}.rs"));
        if std::env::var_os("WINDLASS_IMPORT").is_some_and(|mode| mode == "accept") {
            std::fs::write(&path, &source).unwrap();
        } else if std::fs::read_to_string(&path).unwrap() != source {
            different.push(format!("{of}/{name}.rs"));
        }
    }
    assert!(different.is_empty(), "the generator prints other types: {different:?}");
}

#[test]
fn the_compiled_types_are_those_that_the_generator_prints() {
    let fixtures = files("fixtures");
    assert!(fixtures.len() >= 24, "{fixtures:?}");
    compare_or_accept("types", &fixtures, false);
    compare_or_accept("exact", &files("exact"), true);
}

/// Declares tests that compare the schema of a type with the imported schema.
macro_rules! equal {
    ($($name:ident $kind:path;)*) => {
        $(
            #[test]
            fn $name() {
                check(&fixture(stringify!($name)), &<$kind>::crd().unwrap(), false);
            }
        )*
    };
}

mod the_schema_of_the_types_is_the_imported_one_or_a_comment_names_the_difference {
    use super::*;

    equal! {
        application application::Application;
        backup backup::Backup;
        certificate certificate::Certificate;
        cluster cluster::Cluster;
        clusterpolicy clusterpolicy::ClusterPolicy;
        composition composition::Composition;
        externalsecret externalsecret::ExternalSecret;
        gateway gateway::Gateway;
        helmrelease helmrelease::HelmRelease;
        httproute httproute::HTTPRoute;
        ipaddresspool ipaddresspool::IPAddressPool;
        kafka kafka::Kafka;
        knativeservice knativeservice::Service;
        kustomization kustomization::Kustomization;
        names names::OptionObject;
        pipeline pipeline::Pipeline;
        prometheusrule prometheusrule::PrometheusRule;
        rollout rollout::Rollout;
        scaledobject scaledobject::ScaledObject;
        servicemonitor servicemonitor::ServiceMonitor;
        storageprofile storageprofile::StorageProfile;
        values values::ValueObject;
        virtualservice virtualservice::VirtualService;
        words words::Word;
        workflow workflow::Workflow;
    }
}

#[test]
fn with_exact_types_nothing_differs_but_for_the_comments() {
    for (name, definition) in [
        ("backup", exact_backup::Backup::crd()),
        ("gateway", exact_gateway::Gateway::crd()),
        ("names", exact_names::OptionObject::crd()),
        ("rollout", exact_rollout::Rollout::crd()),
        ("storageprofile", exact_storageprofile::StorageProfile::crd()),
        ("values", exact_values::ValueObject::crd()),
        ("words", exact_words::Word::crd()),
    ] {
        check(&fixture(name), &definition.unwrap(), true);
    }
}

#[test]
fn labels_and_annotations_of_a_definition_are_kept_but_those_of_tools() {
    let metadata = knativeservice::Service::crd().unwrap().metadata;
    let texts = |all: Option<std::collections::BTreeMap<String, String>>| {
        serde_json::to_value(all.unwrap_or_default()).unwrap()
    };
    let labels = json!({ "app.kubernetes.io/name": "knative-serving", "duck.knative.dev/podspecable": "true" });
    assert_eq!(texts(metadata.labels), labels);
    assert_eq!(texts(metadata.annotations), json!({ "example.dev/owner": "the \"serving\" team" }));
}

#[test]
fn objects_are_read_and_written_without_a_loss() {
    let object = json!({
        "apiVersion": "shapes.example.dev/v1",
        "kind": "Option",
        "metadata": { "name": "a" },
        "spec": {
            "type": "t", "self": "s", "Self": "S", "crate": "c", "$ref": "r", "x-y": "x", "3d": true,
            "hostName": "1", "host-name": "2", "host_name": "3", "HostName": "4", "podIPs": ["p"],
            "match": "a b", "value": { "value": { "string": "v" } }, "rest": "r",
            "unknown": { "kept": 1 },
        },
    });
    let read: names::OptionObject = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    let monitor: servicemonitor::ServiceMonitor = serde_json::from_value(json!({
        "metadata": { "name": "a" },
        "spec": { "selector": {}, "endpoints": [{ "targetPort": "web", "relabelings": [{}] }] },
    }))
    .unwrap();
    let written: Value = serde_json::to_value(&monitor).unwrap();
    let relabelings = json!([{ "action": "replace" }]);
    assert_eq!(
        written["spec"]["endpoints"][0]["relabelings"], relabelings,
        "the default is filled in"
    );
    assert_eq!(written["spec"]["endpoints"][0]["targetPort"], "web");
    assert_eq!(written["spec"].as_object().unwrap().len(), 2, "{written}");
}

#[test]
fn fields_and_values_that_are_words_of_rust_or_no_identifiers_are_kept_apart() {
    let text = r#"{
        "apiVersion": "shapes.example.dev/v1",
        "kind": "Word",
        "metadata": { "name": "a" },
        "spec": {
            "type": "t", "super": "s", "crate": { "k": "v" }, "async": "a", "await": true, "gen": 1, "dyn": 2,
            "self": { "super": "s", "Super": "S", "crate": [{ "Self": true }] }, "yield": 3, "try": 0.5,
            "union": "u", "macro_rules": "m", "_": "1", "__": "2", "_a": "3", "a_": "4", "A": "5", "a": "6", "a-": "7",
            "9lives": "9", "0": "0", "007": "7", "$schema": "s", "-f": "f", "x.y": "1", "x/y": "2", "x y": "3",
            "été": "e", "日本": "n", "fooBar": { "a": "1" }, "foo_bar": { "a": "2" },
            "FooBar": { "b": 3 }, "foo-bar": [{ "c": "4" }], "match": "Self", "enum": "a_b",
            "enumOne": "", "enumNull": "Other2", "enumDefault": "Default", "number": -1, "boolean": true,
            "list": [{ "type": "t", "self": "s" }], "choice": { "self": "s" }
        },
        "status": { "super": 1, "fn": "f" }
    }"#;
    let object: Value = serde_json::from_str(text).unwrap();
    let read: words::Word = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    let read: exact_words::Word = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
    for value in ["+Inf", "-Inf", "1.5", "1_5", "15", "01", "a-b", "a_b", "a b", "aB", "AB", "ab"] {
        let mut object = object.clone();
        object["spec"]["enum"] = value.into();
        let read: words::Word = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), object, "{value}");
    }
}

#[test]
fn an_embedded_resource_keeps_its_type_and_metadata() {
    let object = json!({ "apiVersion": "v1", "kind": "Box", "metadata": { "name": "a" }, "spec": { "size": 2 } });
    let step = json!({ "functionRef": { "name": "f" }, "step": "s", "object": object });
    let step: composition::CompositionPipelineItem = serde_json::from_value(step).unwrap();
    assert_eq!(serde_json::to_value(&step).unwrap()["object"], object);
}
