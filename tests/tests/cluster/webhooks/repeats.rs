//! Handlers that repeat rules of the schema.

use serde::{Deserialize, Serialize};
use windlass::environment::Environment;
use windlass::path;
use windlass::prelude::*;
use windlass::testing::check_webhooks;

use super::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "repeats.example.dev", version = "v1", namespaced)]
struct Kiosk {
    metadata: ObjectMeta,
    spec: KioskSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule("self.least <= self.most", message = "least is at most most"))]
struct KioskSpec {
    #[schema(min = 0, max = 100)]
    least: i32,
    #[schema(min = 0, max = 100)]
    most: i32,
    #[schema(min = 1, max = 50)]
    replicas: i32,
    #[schema(length(max = 20))]
    owner: String,
    #[schema(items(max = 4))]
    ports: Vec<Port>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Port {
    #[schema(min = 1, max = 9000)]
    number: i32,
}

/// Repeats three rules, and has two of its own.
struct KioskRules;

impl Validate for KioskRules {
    type Object = Kiosk;

    async fn validate(&self, kiosk: &Kiosk, _: &Admission) -> AdmissionResponse {
        let (mut response, spec) = (AdmissionResponse::allowed(), &kiosk.spec);
        // As the schema says.
        if spec.replicas > 50 {
            response.invalid(path!(Kiosk: spec.replicas), spec.replicas, "must be at most 50");
        }
        for (at, port) in spec.ports.iter().enumerate() {
            if !(1..=9000).contains(&port.number) {
                response.invalid(format!("spec.ports[{at}].number"), port.number, "is no port");
            }
        }
        if spec.least > spec.most {
            response.invalid(path!(Kiosk: spec.least), spec.least, "must be at most `most`");
        }
        // Stricter than the schema, and about something else.
        if spec.ports.len() > 1 {
            response.too_many(path!(Kiosk: spec.ports), spec.ports.len(), 1);
        }
        if spec.owner == "abc.example" {
            response.forbidden(path!(Kiosk: spec.owner), "left");
        }
        response
    }
}

fn kiosk() -> Kiosk {
    let ports = vec![Port { number: 80 }];
    let spec = KioskSpec { least: 1, most: 5, replicas: 2, owner: "shop".into(), ports };
    Kiosk { metadata: ObjectMeta { name: Some("kiosk".into()), ..ObjectMeta::default() }, spec }
}

/// Returns the fields of the remarks about a handler.
async fn repeated(webhooks: Webhooks) -> (Vec<String>, String) {
    let handler = webhooks.build(&Environment::system()).unwrap();
    let report = check_webhooks([kiosk()], &handler).await;
    let fields = report.repeated().iter().map(|remark| remark.split(':').next().unwrap_or(""));
    (fields.map(str::to_owned).collect(), report.to_string())
}

#[tokio::test]
async fn rules_that_a_handler_repeats_are_remarks_and_stricter_ones_are_not() {
    let (fields, report) = repeated(Webhooks::new().validating(KioskRules)).await;
    assert_eq!(fields, ["spec.least", "spec.ports[].number", "spec.replicas"], "{report}");
    assert!(report.contains("seem to repeat 3 of the rules"), "{report}");
    assert!(report.contains("least is at most most"), "the rule is named: {report}");
}

/// Judges nothing by fields.
struct Refusing;

impl Validate for Refusing {
    type Object = Kiosk;

    async fn validate(&self, _: &Kiosk, _: &Admission) -> AdmissionResponse {
        AdmissionResponse::deny("never")
    }
}

#[tokio::test]
async fn a_handler_that_names_no_field_or_judges_no_creation_repeats_nothing() {
    let updates = WebhookRegistration::new().operations([Operation::Update]);
    for webhooks in [
        Webhooks::new().validating(Refusing),
        Webhooks::new().validating_with(KioskRules, updates),
        Webhooks::new(),
    ] {
        let (fields, report) = repeated(webhooks).await;
        assert!(fields.is_empty(), "{report}");
        assert!(report.contains("\n0 objects that break one rule"), "{report}");
    }
}
