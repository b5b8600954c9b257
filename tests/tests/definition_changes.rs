//! Changes of a definition: an API server does to stored objects and to clients as the comparison
//! says. On the embedded server by default, and on a real kube-apiserver with
//! `WINDLASS_TEST_SERVER=real`.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::crd::{ChangeKind, changes};
use windlass::resource::{DynamicObject, ResourceInfo, Scope};
use windlass::testing::TestCluster;

const GROUP: &str = "changes.windlass.dev";
/// Case whose value contains null.
const NULL: &str = "null";

/// A change of the schema of `spec.a`.
struct Case {
    name: &'static str,
    old: Value,
    new: Value,
    /// Names that are required before and after.
    required: (Vec<&'static str>, Vec<&'static str>),
    /// Value of `spec.a`; null: the field is absent.
    value: Value,
    /// Change of the stored object.
    patch: Value,
    /// The kind that a server shows, if the comparison is stricter for a reason.
    shown: Option<ChangeKind>,
}

/// Returns a case whose stored object is changed in another field.
fn case(name: &'static str, old: Value, new: Value, value: Value) -> Case {
    let patch = json!({ "spec": { "other": "changed" } });
    let required = (Vec::new(), Vec::new());
    Case { name, old, new, required, value, patch, shown: None }
}

/// The changes and the objects that meet them.
fn cases() -> Vec<Case> {
    let mut cases = tightened();
    cases.extend(changed_data());
    cases.extend(lists_and_rules());
    cases
}

/// Changes by which values are no longer valid, and their reverses.
fn tightened() -> Vec<Case> {
    let text = || json!({ "type": "string" });
    let number = || json!({ "type": "integer" });
    let mut cases = vec![
        case(
            "enum",
            json!({ "type": "string", "enum": ["x", "z"] }),
            json!({ "type": "string", "enum": ["z"] }),
            json!("x"),
        ),
        case("enum added", text(), json!({ "type": "string", "enum": ["z"] }), json!("x")),
        case(
            "enum widened",
            json!({ "type": "string", "enum": ["x"] }),
            json!({ "type": "string", "enum": ["x", "z"] }),
            json!("x"),
        ),
        case("maximum", number(), json!({ "type": "integer", "maximum": 5 }), json!(9)),
        case(
            "exclusive",
            json!({ "type": "integer", "maximum": 9 }),
            json!({ "type": "integer", "maximum": 9, "exclusiveMaximum": true }),
            json!(9),
        ),
        case(
            "maximum raised",
            json!({ "type": "integer", "maximum": 9 }),
            json!({ "type": "integer", "maximum": 10 }),
            json!(9),
        ),
        case("multipleOf", number(), json!({ "type": "integer", "multipleOf": 2 }), json!(9)),
        case("minLength", text(), json!({ "type": "string", "minLength": 2 }), json!("x")),
        case(
            "maxItems",
            json!({ "type": "array", "items": text() }),
            json!({ "type": "array", "items": text(), "maxItems": 1 }),
            json!(["x", "z"]),
        ),
        case(
            "maxProperties",
            json!({ "type": "object", "additionalProperties": text() }),
            json!({ "type": "object", "additionalProperties": text(), "maxProperties": 1 }),
            json!({ "x": "x", "z": "z" }),
        ),
        case("pattern", text(), json!({ "type": "string", "pattern": "^z$" }), json!("x")),
        case("format", text(), json!({ "type": "string", "format": "date" }), json!("x")),
        case(
            "format of numbers",
            number(),
            json!({ "type": "integer", "format": "int32" }),
            json!(5_000_000_000_i64),
        ),
        case(
            "alternatives",
            text(),
            json!({ "type": "string", "anyOf": [{ "maxLength": 0 }, { "minLength": 2 }] }),
            json!("x"),
        ),
        case(
            "negation",
            text(),
            json!({ "type": "string", "not": { "maxLength": 1 } }),
            json!("x"),
        ),
        case("whole numbers", number(), json!({ "type": "number" }), json!(1)),
        case("either", text(), json!({ "x-kubernetes-int-or-string": true }), json!("x")),
    ];
    let below = |kind: Value| json!({ "type": "object", "properties": { "null": kind } });
    let nullable = below(json!({ "type": "string", "nullable": true }));
    let mut null = case(NULL, nullable, below(text()), json!({}));
    // Creates and updates drop a null, as if the field were absent; an apply of a null is refused.
    null.shown = Some(ChangeKind::Compatible);
    cases.push(null);
    let filled =
        |nullable: bool| below(json!({ "type": "string", "nullable": nullable, "default": "x" }));
    cases.push(case("null beside a default", filled(true), filled(false), json!({ "null": null })));
    let mut retyped = case("type", text(), number(), json!("x"));
    // Clients cannot read the new values.
    retyped.shown = Some(ChangeKind::Ratcheted);
    cases.push(retyped);
    cases
}

/// Changes by which data is dropped or filled in.
fn changed_data() -> Vec<Case> {
    let text = || json!({ "type": "string" });
    let map = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let open = || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let closed = || json!({ "type": "object" });
    let fields = |names: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), text())).collect();
        json!({ "type": "object", "properties": fields })
    };
    let required = |mut field: Value, name: &str| {
        field["required"] = json!([name]);
        field
    };
    let mut required_now = case("required", text(), text(), Value::Null);
    required_now.required.1 = vec!["a"];
    let mut required_before = case("no longer required", text(), text(), json!("x"));
    required_before.required.0 = vec!["a"];
    let mut filled = case(
        "required with a default",
        text(),
        json!({ "type": "string", "default": "x" }),
        json!("x"),
    );
    filled.required.1 = vec!["a"];
    let mut below = case(
        "required below",
        fields(&["x", "z"]),
        required(fields(&["x", "z"]), "x"),
        json!({ "z": "z" }),
    );
    // The object that lacks the field stays unchanged; most updates change the object.
    below.shown = Some(ChangeKind::Ratcheted);
    vec![
        case("field removed", fields(&["x", "z"]), fields(&["z"]), json!({ "x": "x", "z": "z" })),
        case("field added", fields(&["x"]), fields(&["x", "z"]), json!({ "x": "x" })),
        case("values of a map", map(), closed(), json!({ "x": "x" })),
        case("unknown fields", open(), closed(), json!({ "x": "x" })),
        case("map to unknown fields", map(), open(), json!({ "x": "x" })),
        case(
            "unknown fields get a schema",
            open(),
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "x": { "type": "integer" } } }),
            json!({ "x": "x" }),
        ),
        case("default added", text(), json!({ "type": "string", "default": "x" }), Value::Null),
        case("default removed", json!({ "type": "string", "default": "x" }), text(), Value::Null),
        case(
            "default changed",
            json!({ "type": "string", "default": "x" }),
            json!({ "type": "string", "default": "z" }),
            Value::Null,
        ),
        required_now,
        required_before,
        below,
        case(
            "embedded",
            open(),
            json!({ "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "x": "x" }),
        ),
    ]
}

/// Changes of list types and rules.
fn lists_and_rules() -> Vec<Case> {
    let list = |kind: &str| json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": kind });
    let number = || json!({ "type": "integer" });
    let rule =
        |rule: &str| json!({ "type": "integer", "x-kubernetes-validations": [{ "rule": rule }] });
    let mut transition = case("transition rule", number(), rule("self >= oldSelf"), json!(9));
    transition.patch = json!({ "spec": { "a": 5 } });
    let mut cases = vec![
        case("rule", number(), rule("self > 10"), json!(9)),
        transition,
        case("rule removed", rule("self > 1"), number(), json!(9)),
    ];
    let mut set = case("set", list("atomic"), list("set"), json!(["x", "x"]));
    // Appliers merge the list from then on.
    set.shown = Some(ChangeKind::Ratcheted);
    cases.push(set);
    cases
}

/// A server with the definition of a case.
struct Place<'a> {
    definitions: Api<CustomResourceDefinition>,
    objects: Api<DynamicObject>,
    cluster: &'a TestCluster,
}

/// The definition of a case; `marker` shows that the new definition is in use.
fn definition(
    plural: &str,
    field: &Value,
    required: &[&str],
    marker: &str,
) -> CustomResourceDefinition {
    let schema = json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object", "required": required,
            "properties": {
                "a": field, "other": { "type": "string" },
                marker: { "type": "string", "default": "there" },
            },
        } },
    });
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": plural.to_uppercase(), "plural": plural },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    }))
    .unwrap()
}

impl Place<'_> {
    async fn until(&self, condition: &str, mut met: impl AsyncFnMut() -> bool) {
        let clock = self.cluster.client().environment().clock.clone();
        let wait = async {
            while !met().await {
                clock.sleep(Duration::from_millis(25)).await;
            }
        };
        assert!(clock.timeout(Duration::from_secs(60), wait).await.is_some(), "never: {condition}");
    }

    /// Waits until objects have the marker.
    async fn serves(&self, name: &str, marker: &str) {
        self.until(marker, async || {
            let probe = self.objects.get_opt(name).await;
            probe.is_ok_and(|object| {
                object.is_some_and(|object| object.rest["spec"][marker] == "there")
            })
        })
        .await;
    }

    /// Returns the kind of change that the server shows.
    async fn observe(
        &self,
        case: &Case,
        new: &CustomResourceDefinition,
    ) -> Result<ChangeKind, String> {
        let mut object = json!({ "metadata": { "name": "stored" }, "spec": { "a": case.value } });
        if case.value.is_null() {
            object["spec"].as_object_mut().unwrap().remove("a");
        }
        if case.name == NULL {
            object["spec"]["a"]["null"] = Value::Null;
        }
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created =
            self.objects.create(&object).await.map_err(|error| format!("create: {error}"))?;
        let name = new.metadata.name.clone().unwrap();
        self.definitions
            .apply(&name, new)
            .force()
            .await
            .map_err(|error| format!("apply: {error}"))?;
        self.serves("stored", "new").await;
        let read = self.objects.get("stored").await.map_err(|error| format!("get: {error}"))?;
        let mut other = object.clone();
        other.metadata.name = Some("other".to_owned());
        let again = self.objects.create(&other).dry_run().await;
        let update = self.objects.patch("stored", Patch::Merge(case.patch.clone())).dry_run().await;
        let value = |object: &DynamicObject| {
            let mut value = object.rest["spec"]["a"].clone();
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|_, field| !field.is_null());
            }
            value
        };
        let is_kept = value(&created) == value(&read)
            && again.as_ref().map_or(true, |again| value(again) == value(&created));
        if let Err(error) = &update
            && again.is_ok()
        {
            eprintln!("{}: {error}", case.name);
        }
        Ok(match (is_kept, again.is_ok(), update.is_ok()) {
            (true, true, true) => ChangeKind::Compatible,
            (true, false, true) => ChangeKind::Ratcheted,
            _ => ChangeKind::Breaking,
        })
    }
}

#[tokio::test]
async fn an_api_server_does_to_objects_as_the_comparison_says() {
    let cluster = TestCluster::start().await;
    if cluster.is_embedded() {
        tokio::time::pause();
    }
    let mut wrong = Vec::new();
    for (at, case) in cases().iter().enumerate() {
        // Letters only: a plural is a DNS label, and an upper-case kind is a word.
        let plural = format!(
            "case{}",
            char::from(b'a' + u8::try_from(at).unwrap() % 26).to_string().repeat(1 + at / 26)
        );
        let old = definition(&plural, &case.old, &case.required.0, "old");
        let new = definition(&plural, &case.new, &case.required.1, "new");
        // The marker is no part of the change.
        let compared = definition(&plural, &case.new, &case.required.1, "old");
        let kinds = changes(&old, &compared);
        let said = kinds.all().iter().map(windlass::crd::DefinitionChange::kind).min();
        let said = said.unwrap_or(ChangeKind::Compatible);
        let expected = case.shown.unwrap_or(said);
        assert!(said <= expected, "{}: the comparison is stricter, or agrees", case.name);
        let info = ResourceInfo {
            group: GROUP.into(),
            version: "v1".into(),
            kind: plural.to_uppercase().into(),
            plural: plural.clone().into(),
            scope: Scope::Namespaced,
        };
        let client = cluster.client();
        let place = Place {
            definitions: client.all(),
            objects: client.dynamic(info, Some(cluster.namespace())),
            cluster: &cluster,
        };
        let name = format!("{plural}.{GROUP}");
        let stored = place.definitions.apply(&name, &old).force().await;
        if let Err(error) = stored {
            wrong.push(format!("{}: {error}", case.name));
            continue;
        }
        place
            .until("it is established", async || {
                let status = place.definitions.get(&name).await.unwrap().status.unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                conditions.iter().any(|one| one.type_ == "Established" && one.status == "True")
                    && place.objects.list().await.is_ok()
            })
            .await;
        match place.observe(case, &new).await {
            Ok(seen) if seen == expected => {}
            Ok(seen) => {
                wrong.push(format!("{}: {expected}, but the server: {seen}", case.name));
            }
            Err(error) => wrong.push(format!("{}: {error}", case.name)),
        }
        place.definitions.delete(&name).await.unwrap();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
