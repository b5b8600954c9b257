use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::*;
use crate::resource::Segment;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Spec {
    host: String,
    replicas: i32,
    share: f64,
    ports: Vec<Port>,
    tags: std::collections::BTreeMap<String, i32>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Port {
    number: i32,
}

fn spec(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Spec>()
}

const PLAIN: Definition = Definition {
    group: "example.dev",
    version: "v1",
    kind: "Website",
    plural: "websites",
    singular: "website",
    namespaced: true,
    fields: &[Field { name: "spec", schema: spec, ..Field::NONE }],
    ..Definition::NONE
};

const fn column(path: DefinitionField, kind: Option<&'static str>) -> Column {
    Column { name: "X", path, kind, format: None, priority: 0, description: None }
}

fn fault(definition: &Definition) -> String {
    crd(definition).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn columns_name_fields_in_lists_and_maps_by_marks() {
    const COLUMNS: &[Column] = &[
        column(DefinitionField::Text(".spec.ports[*].number"), None),
        column(DefinitionField::Text(".spec.tags.a"), None),
        column(DefinitionField::Text(".metadata.labels.app"), None),
        column(
            DefinitionField::Fields(|| {
                Ok(vec![Segment::Field("spec".into()), Segment::Field("share".into())])
            }),
            None,
        ),
    ];
    let crd = crd(&Definition { columns: COLUMNS, ..PLAIN }).unwrap();
    let columns = crd.spec.versions[0].additional_printer_columns.as_ref().unwrap();
    let types: Vec<_> = columns.iter().map(|column| column.type_.as_str()).collect();
    assert_eq!(types, ["integer", "integer", "string", "number"]);
    assert_eq!(columns[3].json_path, ".spec.share");
    const LIST: &[Column] = &[column(DefinitionField::Text(".spec.ports.number"), None)];
    let fault = fault(&Definition { columns: LIST, ..PLAIN });
    assert!(fault.contains("write `.spec.ports[*].number` for each element"), "{fault}");
}

#[test]
fn types_of_columns_scale_and_selectable_fields_are_compared_with_the_fields() {
    const COLUMNS: &[Column] = &[column(DefinitionField::Text(".spec.host"), Some("integer"))];
    let found = fault(&Definition { columns: COLUMNS, ..PLAIN });
    assert!(found.contains("column `X`: `.spec.host` is of type string"), "{found}");
    const DATE: &[Column] = &[column(DefinitionField::Text(".spec.host"), Some("date"))];
    let (_, warnings) =
        crate::crd::faults::collect_warnings(|| crd(&Definition { columns: DATE, ..PLAIN }));
    assert!(warnings.iter().any(|it| it.contains("kubectl shows `<invalid>`")), "{warnings:?}");
    let scale = Scale {
        spec: DefinitionField::Text(".spec.host"),
        status: DefinitionField::Text(".spec.replicas"),
        selector: Some(DefinitionField::Text(".spec.replicas")),
    };
    let found = fault(&Definition { scale: Some(scale), ..PLAIN });
    assert!(found.contains("`.spec.host` is of type string; `scale` counts"), "{found}");
    assert!(found.contains("`.spec.replicas` is of type integer; the selector"), "{found}");
    const SELECTABLE: &[DefinitionField] =
        &[DefinitionField::Text(".spec.host"), DefinitionField::Text(".spec.ports")];
    let found = fault(&Definition { selectable: SELECTABLE, ..PLAIN });
    assert!(found.contains("selectable: `.spec.ports` is of type array"), "{found}");
    const WHOLE: &[DefinitionField] = &[DefinitionField::Text(".spec")];
    let whole = fault(&Definition { selectable: WHOLE, ..PLAIN });
    assert!(whole.contains("selectable: `.spec` is of type object"), "{whole}");
    assert!(!found.contains(".spec.host"), "{found}");
}

#[derive(JsonSchema)]
#[serde(tag = "type")]
#[expect(dead_code, reason = "only its schema is used")]
enum Source {
    Git { url: String },
    Image { tag: String },
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Found {
    ready: Option<bool>,
    #[serde(flatten)]
    source: Source,
}

#[test]
fn alternatives_of_a_status_that_is_stored_in_part_are_named_as_unchecked() {
    let status = Field {
        name: "status",
        optional: || true,
        schema: |generator| generator.subschema_for::<Found>(),
        in_part: Some(|| Ok(())),
        ..Field::NONE
    };
    let fields = Box::leak(Box::new([status]));
    let (found, remarks) =
        crate::crd::faults::collect_warnings(|| crd(&Definition { fields, ..PLAIN }));
    let schema = serde_json::to_value(found.unwrap().spec.versions[0].schema.clone()).unwrap();
    assert!(schema["openAPIV3Schema"]["properties"]["status"]["oneOf"].is_null(), "{schema}");
    assert!(
        remarks.iter().any(|it| it.starts_with(".status: an API server checks no alternatives")),
        "{remarks:?}"
    );
}

#[test]
fn a_field_without_a_name_in_json_is_a_fault_of_its_key() {
    const SELECTABLE: &[DefinitionField] =
        &[DefinitionField::Fields(|| Err("no name for `x`".to_owned()))];
    let found = fault(&Definition { selectable: SELECTABLE, ..PLAIN });
    assert!(found.contains("selectable: no name for `x`"), "{found}");
}

#[test]
fn rules_deprecation_labels_and_annotations_reach_the_manifest() {
    const RULES: &[Rule] = &[Rule {
        rule: "self.metadata.name == self.spec.host",
        message: Some("the name is the host"),
        message_expression: None,
        reason: Some("FieldValueInvalid"),
        path: Some(DefinitionField::Text(".spec.host")),
        optional_old_self: false,
    }];
    let definition = Definition {
        rules: RULES,
        deprecated: Some(Some("use v2")),
        labels: &[("team", "web")],
        annotations: &[("example.dev/note", "x y")],
        doc: " A site.\n\n - one\n   more\n",
        ..PLAIN
    };
    let crd = serde_json::to_value(crd(&definition).unwrap()).unwrap();
    assert_eq!(crd["metadata"]["labels"], json!({ "team": "web" }));
    assert_eq!(crd["metadata"]["annotations"], json!({ "example.dev/note": "x y" }));
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        (&version["deprecated"], &version["deprecationWarning"]),
        (&json!(true), &json!("use v2"))
    );
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["description"], "A site.\n\n- one\n  more");
    assert_eq!(
        schema["x-kubernetes-validations"],
        json!([{
            "rule": "self.metadata.name == self.spec.host",
            "message": "the name is the host",
            "reason": "FieldValueInvalid",
            "fieldPath": ".spec.host",
        }])
    );
}

#[test]
fn a_filter_and_a_name_of_the_metadata_are_looked_up() {
    const FILTER: &[Column] =
        &[column(DefinitionField::Text(".spec.ports[?(@.nubmer==1)].number"), None)];
    let text = fault(&Definition { columns: FILTER, ..PLAIN });
    assert!(text.contains("has no `nubmer`, it has number"), "{text}");
    const METADATA: &[Column] =
        &[column(DefinitionField::Text(".metadata.creationTimestmp"), Some("date"))];
    let text = fault(&Definition { columns: METADATA, ..PLAIN });
    assert!(text.contains(".metadata has no `creationTimestmp`"), "{text}");
    const FINE: &[Column] = &[
        column(DefinitionField::Text(".spec.ports[?(@.number==1)].number"), None),
        column(DefinitionField::Text(".metadata.creationTimestamp"), Some("date")),
        column(DefinitionField::Text(".spec.*"), None),
    ];
    assert_eq!(fault(&Definition { columns: FINE, ..PLAIN }), "");
}
