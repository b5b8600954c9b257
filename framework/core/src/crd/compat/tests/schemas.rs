//! Changes of schemas.

use super::*;

/// The changes when the schema of the field `a` becomes `new`, and back.
#[track_caller]
fn field(old: Value, new: Value, there: &[&str], back: &[&str]) {
    let of = |field: &Value| definition(&json!({ "type": "object", "properties": { "a": field } }));
    check(&of(&old), &of(&new), there, back);
}

/// The changes when the schema of `spec` becomes `new`, and back.
#[track_caller]
fn spec(old: Value, new: Value, there: &[&str], back: &[&str]) {
    check(&definition(&old), &definition(&new), there, back);
}

#[test]
fn fields_are_added_and_removed() {
    let a = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let none = json!({ "type": "object" });
    spec(a.clone(), none, &["field-removed .spec.a"], &["field-added .spec.a"]);
    let b = json!({ "type": "object", "properties": { "b": { "type": "string" } } });
    let old = read(&definition(&a));
    let renamed = changes(&old, &read(&definition(&b)));
    let text = renamed.to_string();
    assert!(text.contains("(renamed to `b`, which is new and of the same shape?)"), "{text}");
}

#[test]
fn required_fields_need_a_default() {
    let of = |field: Value, required: Value| json!({ "type": "object", "properties": { "a": field }, "required": required });
    let (text, filled) = (json!({ "type": "string" }), json!({ "type": "string", "default": "x" }));
    spec(
        of(text.clone(), json!([])),
        of(text.clone(), json!(["a"])),
        &["required-added .spec.a"],
        &["required-removed .spec.a"],
    );
    let none = json!({ "type": "object" });
    let there = ["required-added .spec.a"];
    spec(none.clone(), of(text, json!(["a"])), &there, &["field-removed .spec.a"]);
    let there = ["required-with-default .spec.a"];
    spec(none, of(filled, json!(["a"])), &there, &["field-removed .spec.a"]);
}

#[test]
fn types_are_widened_or_changed() {
    let of = |kind: &str| json!({ "type": kind });
    let changed = ["type-changed .spec.a"];
    field(of("string"), of("integer"), &changed, &changed);
    field(of("integer"), of("number"), &["type-widened .spec.a"], &changed);
    let either = json!({ "x-kubernetes-int-or-string": true });
    field(of("string"), either.clone(), &["type-widened .spec.a"], &changed);
    field(of("number"), either, &changed, &changed);
}

#[test]
fn the_same_union_is_written_with_and_without_alternatives() {
    let plain = json!({ "x-kubernetes-int-or-string": true });
    let written = json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
    });
    field(plain.clone(), written, &[], &[]);
    let pattern = json!({
        "x-kubernetes-int-or-string": true,
        "allOf": [{ "anyOf": [{ "type": "integer" }, { "type": "string" }] }, { "pattern": "x" }],
    });
    field(plain, pattern, &["pattern-changed .spec.a"], &["constraint-removed .spec.a"]);
}

#[test]
fn choices_of_an_optional_field_may_stand_in_all_of() {
    let plain = json!({ "type": "string", "enum": ["x"] });
    let optional =
        json!({ "type": "string", "nullable": true, "allOf": [{ "enum": ["x", null] }] });
    field(plain, optional, &["nullable-added .spec.a"], &["nullable-removed .spec.a"]);
}

#[test]
fn defaults_are_values_that_clients_rely_on() {
    let of = |default: Value| {
        let mut field = json!({ "type": "integer" });
        if !default.is_null() {
            field["default"] = default;
        }
        field
    };
    let changed = ["default-changed .spec.a"];
    field(of(json!(1)), of(json!(2)), &changed, &changed);
    let removed = ["default-removed .spec.a"];
    field(of(json!(1)), of(Value::Null), &removed, &["default-added .spec.a"]);
}

#[test]
fn choices_are_narrowed_and_widened() {
    let of = |values: Value| json!({ "type": "string", "enum": values });
    let (narrow, wide) = (["enum-narrowed .spec.a"], ["enum-widened .spec.a"]);
    field(of(json!(["x", "y"])), of(json!(["x"])), &narrow, &wide);
    field(json!({ "type": "string" }), of(json!(["x"])), &narrow, &wide);
    let both = ["enum-narrowed .spec.a", "enum-widened .spec.a"];
    field(of(json!(["x", "y"])), of(json!(["x", "z"])), &both, &both);
}

#[test]
fn bounds_of_lists_change_nothing_where_no_list_belongs() {
    let text = json!({ "type": "string", "format": "ipv4" });
    let closed = json!({ "type": "string", "format": "ipv4", "minItems": 1, "maxItems": 0 });
    field(text, closed, &[], &[]);
}

#[test]
fn bounds_are_tightened_and_loosened() {
    let (tight, loose) = (["bound-tightened .spec.a"], ["bound-loosened .spec.a"]);
    for (key, old, new) in [
        ("minimum", json!(1), json!(2)),
        ("minItems", json!(1), json!(2)),
        ("minLength", json!(1), json!(2)),
        ("minProperties", json!(1), json!(2)),
        ("maximum", json!(2), json!(1)),
        ("maxItems", json!(2), json!(1)),
        ("maxLength", json!(2), json!(1)),
        ("maxProperties", json!(2), json!(1)),
        ("multipleOf", json!(2), json!(4)),
    ] {
        let kind = match key.get(3..) {
            Some("Items") => "array",
            Some("Length") => "string",
            Some("Properties") => "object",
            _ => "integer",
        };
        let of = |value: &Value| {
            let mut field = json!({ "type": kind });
            field[key] = value.clone();
            if kind == "array" {
                field["items"] = json!({ "type": "string" });
            }
            field
        };
        field(of(&old), of(&new), &tight, &loose);
    }
    let of = |excluded: bool| {
        json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": excluded, "maximum": 9,
                "exclusiveMaximum": excluded })
    };
    let twice = |rule: &'static str| [rule, rule];
    field(of(false), of(true), &twice(tight[0]), &twice(loose[0]));
    // A bound of nothing is none.
    let zero = json!({ "type": "string", "minLength": 0 });
    field(json!({ "type": "string" }), zero, &[], &[]);
    // Bounds are floating-point numbers in some tools.
    let (one, whole) =
        (json!({ "type": "integer", "maximum": 1.0 }), json!({ "type": "integer", "maximum": 1 }));
    field(one, whole, &[], &[]);
}

#[test]
fn patterns_and_formats_are_added_changed_and_removed() {
    let removed = ["constraint-removed .spec.a"];
    for (key, rule) in
        [("pattern", "pattern-changed .spec.a"), ("format", "format-changed .spec.a")]
    {
        let of = |value: &str| {
            let mut field = json!({ "type": "string" });
            field[key] = json!(value);
            field
        };
        field(json!({ "type": "string" }), of("date"), &[rule], &removed);
        field(of("date"), of("uri"), &[rule], &[rule]);
    }
    let long = json!({ "type": "integer", "format": "int64" });
    field(json!({ "type": "integer" }), long, &[], &[]);
}

#[test]
fn alternatives_may_exclude_objects() {
    let of = |key: &str, names: &[&str]| {
        let branches: Vec<Value> = names.iter().map(|name| json!({ "required": [name] })).collect();
        let mut field = json!({ "type": "object" });
        field[key] = json!(branches);
        field
    };
    let (changed, removed) = (["combination-changed .spec.a"], ["constraint-removed .spec.a"]);
    field(json!({ "type": "object" }), of("oneOf", &["x"]), &changed, &removed);
    field(of("oneOf", &["x"]), of("oneOf", &["x", "y"]), &changed, &changed);
    field(of("anyOf", &["x", "y"]), of("anyOf", &["x"]), &changed, &removed);
}

#[test]
fn null_is_allowed_or_not() {
    let nullable = json!({ "type": "string", "nullable": true });
    let (removed, added) = (["nullable-removed .spec.a"], ["nullable-added .spec.a"]);
    field(nullable, json!({ "type": "string" }), &removed, &added);
    let of = |nullable: bool| json!({ "type": "string", "nullable": nullable, "default": "x" });
    field(of(true), of(false), &["null-defaulted .spec.a"], &added);
}

#[test]
fn fields_of_any_name_are_kept_or_not() {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let (removed, added) = (["open-fields-removed .spec.a.*"], ["open-fields-added .spec.a.*"]);
    field(open.clone(), json!({ "type": "object" }), &removed, &added);
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    field(map.clone(), json!({ "type": "object" }), &removed, &added);
    field(map, open.clone(), &added, &removed);
    let described = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": { "x": { "type": "string" } },
    });
    let there = ["field-described .spec.a.x"];
    field(open, described, &there, &["constraint-removed .spec.a.x"]);
}

/// Ratcheting accepts a stored value that is unchanged; it neither keeps a field that the schema
/// drops nor an absence that a default fills.
#[test]
fn a_schema_for_a_field_without_one_may_drop_fill_in_and_bind_values() {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let described = |x: Value| {
        let mut described = open.clone();
        described["properties"] = json!({ "x": x });
        described
    };
    let inner = json!({ "type": "array", "items": {
        "type": "object",
        "properties": { "y": { "type": "integer", "default": 1 } },
        "x-kubernetes-validations": [{ "rule": "self.y >= oldSelf.y" }],
    } });
    let there = [
        "field-described .spec.a.x",
        "open-fields-removed .spec.a.x.*",
        "transition-rule-added .spec.a.x[]",
        "default-added .spec.a.x[].y",
    ];
    let lost = ["constraint-removed .spec.a.x", "default-removed .spec.a.x[].y"];
    field(open.clone(), described(inner), &there, &lost);
    let filled = described(json!({ "type": "string", "default": "a" }));
    let there = ["field-described .spec.a.x", "default-added .spec.a.x"];
    let lost = ["constraint-removed .spec.a.x", "default-removed .spec.a.x"];
    field(open.clone(), filled, &there, &lost);
}

#[test]
fn values_of_maps_and_elements_of_lists_are_compared() {
    let map = |kind: &str| json!({ "type": "object", "additionalProperties": { "type": kind } });
    let changed = ["type-changed .spec.a.*"];
    field(map("string"), map("integer"), &changed, &changed);
    let list = |kind: &str| json!({ "type": "array", "items": { "type": kind } });
    let changed = ["type-changed .spec.a[]"];
    field(list("string"), list("integer"), &changed, &changed);
}

#[test]
fn appliers_depend_on_list_types_and_map_types() {
    let list = |kind: &str, key: &str| {
        json!({
            "type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": [key],
            "items": { "type": "object", "required": ["x", "y"], "properties": {
                "x": { "type": "string" }, "y": { "type": "string" },
            } },
        })
    };
    let changed = ["list-type-changed .spec.a"];
    field(list("map", "x"), list("map", "y"), &changed, &changed);
    let mut atomic = list("atomic", "x");
    atomic.as_object_mut().unwrap().remove("x-kubernetes-list-map-keys");
    field(list("map", "x"), atomic.clone(), &changed, &changed);
    let mut none = atomic.clone();
    none.as_object_mut().unwrap().remove("x-kubernetes-list-type");
    field(atomic, none, &[], &[]);
    let map = |kind: &str| json!({ "type": "object", "x-kubernetes-map-type": kind });
    let changed = ["map-type-changed .spec.a"];
    field(map("atomic"), map("granular"), &changed, &changed);
    field(json!({ "type": "object" }), map("granular"), &[], &[]);
}

#[test]
fn embedded_objects_have_their_own_fields() {
    let of = |embedded: bool| {
        json!({
            "type": "object", "x-kubernetes-embedded-resource": embedded,
            "properties": { "spec": { "type": "object" } },
        })
    };
    let removed = [
        "field-removed .spec.a.apiVersion",
        "field-removed .spec.a.kind",
        "field-removed .spec.a.metadata",
        "embedded-object-removed .spec.a",
    ];
    field(of(true), of(false), &removed, &["embedded-object-added .spec.a"]);
}

#[test]
fn the_kind_and_the_name_of_an_embedded_object_are_compared() {
    let of = |kind: Value, name: Value| {
        json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {
                "kind": kind,
                "metadata": { "type": "object", "properties": { "name": name } },
            },
        })
    };
    let text = json!({ "type": "string" });
    let pod = of(json!({ "type": "string", "enum": ["Pod"] }), text.clone());
    let job = of(json!({ "type": "string", "enum": ["Job"] }), text.clone());
    let narrowed = ["enum-narrowed .spec.a.kind"];
    let other = ["enum-narrowed .spec.a.kind", "enum-widened .spec.a.kind"];
    field(pod.clone(), job, &other, &other);
    let any = json!({ "type": "object", "x-kubernetes-embedded-resource": true });
    field(any.clone(), pod, &narrowed, &["enum-widened .spec.a.kind"]);
    let short = of(text.clone(), json!({ "type": "string", "maxLength": 5 }));
    let there = ["bound-tightened .spec.a.metadata.name"];
    field(any, short, &there, &["bound-loosened .spec.a.metadata.name"]);
}

#[test]
fn rules_are_added_removed_and_reworded() {
    let of = |rule: Value| {
        json!({ "type": "object", "x-kubernetes-validations": [rule],
                "properties": { "x": { "type": "integer" } } })
    };
    let plain = json!({ "type": "object", "properties": { "x": { "type": "integer" } } });
    let rule = json!({ "rule": "self.x > 1", "message": "too small" });
    let (added, removed) = (["rule-added .spec.a"], ["rule-removed .spec.a"]);
    field(plain.clone(), of(rule.clone()), &added, &removed);
    let transition = json!({ "rule": "self.x >= oldSelf.x" });
    field(plain, of(transition.clone()), &["transition-rule-added .spec.a"], &removed);
    let reworded = ["rule-reworded .spec.a"];
    let other = json!({ "rule": "self.x > 1", "message": "is too small" });
    field(of(rule), of(other), &reworded, &reworded);
    let mut optional = transition.clone();
    optional["optionalOldSelf"] = json!(true);
    let both = ["transition-rule-added .spec.a", "rule-removed .spec.a"];
    field(of(transition), of(optional), &both, &both);
}

#[test]
fn descriptions_are_for_people() {
    let of = |text: &str| json!({ "type": "string", "description": text });
    let changed = ["description-changed .spec.a"];
    field(of("Old."), of("New."), &changed, &changed);
}

#[test]
fn choices_of_an_optional_field_may_stand_in_one_alternative() {
    let plain = json!({ "type": "string", "nullable": true, "enum": ["a", "b"] });
    let alternative =
        json!({ "type": "string", "nullable": true, "anyOf": [{ "enum": ["a", "b"] }] });
    field(plain.clone(), alternative.clone(), &[], &[]);
    let fewer = json!({ "type": "string", "nullable": true, "anyOf": [{ "enum": ["a"] }] });
    field(plain, fewer, &["enum-narrowed .spec.a"], &["enum-widened .spec.a"]);
}

#[test]
fn defaults_and_list_types_of_a_field_that_is_kept_without_a_schema_are_lost() {
    let item = json!({ "type": "object", "required": ["k"], "properties": {
        "k": { "type": "string" }, "v": { "type": "string", "default": "x" },
    } });
    let described = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "a": { "type": "string", "default": "x" },
        "l": { "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
    } });
    let kept = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let found = super::between(&definition(&described), &definition(&kept));
    let expected = [
        "default-removed .spec.a",
        "list-type-changed .spec.l",
        "default-removed .spec.l[].v",
        "constraint-removed .spec.a",
        "constraint-removed .spec.l",
    ];
    for expected in expected {
        assert!(found.iter().any(|it| it == expected), "{expected} in {found:?}");
    }
}
