use serde_json::{Value, json};

use super::{Schema, ValidationResult, check_crd};

fn widget() -> Schema {
    Schema::compile(&json!({
        "type": "object", "required": ["spec"],
        "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "host": {"type": "string", "minLength": 3, "maxLength": 8, "pattern": "^[a-z]+$"},
            "enum": {"type": "string", "enum": ["a", "b"]},
            "ienum": {"type": "integer", "enum": [1, 2]},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3, "minItems": 1},
            "lmap": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}},
            "obj": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2, "minProperties": 1},
            "ios": {"x-kubernetes-int-or-string": true},
            "num": {"type": "number", "multipleOf": 2},
            "i32": {"type": "integer", "format": "int32"},
            "i64": {"type": "integer", "format": "int64"},
            "when": {"type": "string", "format": "date-time"},
            "def": {"type": "string", "default": "dd"},
            "nul": {"type": "string", "nullable": true},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "any": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "all": {"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]},
            "not": {"type": "string", "not": {"enum": ["x"]}},
            "preserve": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
        }}}
    }))
}

/// Prunes, defaults and validates like a create; returns the causes as `reason|field|message`.
fn create(spec: Value) -> Vec<String> {
    let mut spec = spec;
    if spec.is_object() && spec.get("size").is_none() {
        spec["size"] = json!(1);
    }
    let mut object = json!({"apiVersion": "g/v1", "kind": "Widget", "metadata": {}, "spec": spec});
    let schema = widget();
    schema.prune(&mut object);
    schema.default(&mut object);
    let causes = schema.validate(&object, None).causes;
    causes.iter().map(|c| format!("{}|{}|{}", c.reason, c.field, c.message)).collect()
}

/// The expected causes are the answer of kube-apiserver 1.36.3 for the same schema.
#[test]
fn violations_are_reported_with_the_texts_of_a_real_server() {
    let table: &[(Value, &[&str])] = &[
        (
            json!({"size": 0}),
            &[
                "FieldValueInvalid|spec.size|Invalid value: 0: spec.size in body should be greater than or equal to 1",
            ],
        ),
        (
            json!({"size": 11}),
            &[
                "FieldValueInvalid|spec.size|Invalid value: 11: spec.size in body should be less than or equal to 10",
            ],
        ),
        (
            json!({"size": "x"}),
            &[
                "FieldValueTypeInvalid|spec.size|Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"size": 1.5}),
            &[
                "FieldValueTypeInvalid|spec.size|Invalid value: \"number\": spec.size in body must be of type integer: \"number\"",
                "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer (default format) in spec.size",
            ],
        ),
        (json!({"size": null}), &["FieldValueRequired|spec.size|Required value"]),
        (
            json!({"host": "ab"}),
            &[
                "FieldValueInvalid|spec.host|Invalid value: \"ab\": spec.host in body should be at least 3 chars long",
            ],
        ),
        (
            json!({"host": "abcdefghij"}),
            &["FieldValueTooLong|spec.host|Too long: may not be more than 8 bytes"],
        ),
        (
            json!({"host": "ABC"}),
            &[
                "FieldValueInvalid|spec.host|Invalid value: \"ABC\": spec.host in body should match '^[a-z]+$'",
            ],
        ),
        (
            json!({"enum": "c"}),
            &[
                "FieldValueNotSupported|spec.enum|Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ],
        ),
        (
            json!({"ienum": 3}),
            &[
                "FieldValueNotSupported|spec.ienum|Unsupported value: 3: supported values: \"1\", \"2\"",
            ],
        ),
        (
            json!({"when": "yesterday"}),
            &[
                "FieldValueTypeInvalid|spec.when|Invalid value: \"yesterday\": spec.when in body must be of type date-time: \"yesterday\"",
            ],
        ),
        (
            json!({"tags": []}),
            &[
                "FieldValueInvalid|spec.tags|Invalid value: 0: spec.tags in body should have at least 1 items",
            ],
        ),
        (json!({"tags": ["a", "a"]}), &["FieldValueDuplicate|spec.tags[1]|Duplicate value: \"a\""]),
        (
            json!({"tags": ["a", "b", "c", "d"]}),
            &["FieldValueTooMany|spec.tags|Too many: 4: must have at most 3 items"],
        ),
        (
            json!({"tags": [1, "a"]}),
            &[
                "FieldValueTypeInvalid|spec.tags[0]|Invalid value: \"integer\": spec.tags[0] in body must be of type string: \"integer\"",
            ],
        ),
        (
            json!({"lmap": [{"name": "a"}, {"name": "a"}]}),
            &["FieldValueDuplicate|spec.lmap[1]|Duplicate value: {\"name\":\"a\"}"],
        ),
        (json!({"lmap": [{"v": 1}]}), &["FieldValueRequired|spec.lmap[0].name|Required value"]),
        (
            json!({"obj": {}}),
            &[
                "FieldValueInvalid|spec.obj|Invalid value: 0: spec.obj in body should have at least 1 properties",
            ],
        ),
        (
            json!({"obj": {"a": "b", "c": "d", "e": "f"}}),
            &["FieldValueTooMany|spec.obj|Too many: 3: must have at most 2 items"],
        ),
        (
            json!({"obj": {"a": 1}}),
            &[
                "FieldValueTypeInvalid|spec.obj.a|Invalid value: \"integer\": spec.obj.a in body must be of type string: \"integer\"",
            ],
        ),
        (
            json!({"ios": true}),
            &[
                "FieldValueTypeInvalid|spec.ios|Invalid value: \"boolean\": spec.ios in body must be of type integer,string: \"boolean\"",
            ],
        ),
        (
            json!({"ios": 1.5}),
            &[
                "FieldValueTypeInvalid|spec.ios|Invalid value: \"number\": spec.ios in body must be of type integer,string: \"number\"",
            ],
        ),
        (
            json!({"num": 3}),
            &[
                "FieldValueInvalid|spec.num|Invalid value: 3: spec.num in body should be a multiple of 2",
            ],
        ),
        (
            json!({"i32": 3_000_000_000_u64}),
            &[
                "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer with format int32 in spec.i32",
            ],
        ),
        (
            json!({"i64": 1e20}),
            &[
                "FieldValueTypeInvalid|spec.i64|Invalid value: \"float64\": spec.i64 in body must be of type int64: \"float64\"",
                "FieldValueInvalid|<nil>|Invalid value: \"\": Checked value must be of type integer with format int64 in spec.i64",
            ],
        ),
        (
            json!({"one": {}}),
            &[
                "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid",
                "FieldValueRequired|spec.one.a|Required value",
            ],
        ),
        (
            json!({"one": {"a": "x", "b": "y"}}),
            &[
                "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({"any": {}}),
            &[
                "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.any\" must validate at least one schema (anyOf)",
                "FieldValueRequired|spec.any.a|Required value",
            ],
        ),
        (
            json!({"all": "a"}),
            &[
                "FieldValueInvalid|spec.all|Invalid value: \"a\": spec.all in body should be at least 2 chars long",
                "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.all\" must validate all the schemas (allOf)",
            ],
        ),
        (
            json!({"not": "x"}),
            &[
                "FieldValueInvalid|<nil>|Invalid value: \"\": \"spec.not\" must not validate the schema (not)",
            ],
        ),
        (
            json!({"emb": {}}),
            &[
                "FieldValueRequired|spec.emb.apiVersion|Required value",
                "FieldValueRequired|spec.emb.kind|Required value",
            ],
        ),
        (
            json!(5),
            &[
                "FieldValueTypeInvalid|spec|Invalid value: \"integer\": spec in body must be of type object: \"integer\"",
            ],
        ),
        (json!({"ios": "5", "nul": null, "i64": 9_223_372_036_854_775_807_i64}), &[]),
    ];
    for (spec, expected) in table {
        assert_eq!(&create(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn unknown_fields_are_pruned_and_named() {
    let mut object = json!({
        "apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "a"}, "extra": 1,
        "spec": {"size": 1, "bogus": {"a": 1}, "lmap": [{"name": "a", "x": 1}],
                 "preserve": {"any": {"thing": null}}, "emb": {"kind": "X", "metadata": {"name": "n"}}}
    });
    let unknown = widget().prune(&mut object);
    assert_eq!(unknown, ["extra", "spec.bogus", "spec.lmap[0].x"]);
    assert_eq!(
        object["spec"],
        json!({"size": 1, "lmap": [{"name": "a"}], "preserve": {"any": {"thing": null}},
               "emb": {"kind": "X", "metadata": {"name": "n"}}})
    );
}

#[test]
fn a_null_becomes_the_default_or_vanishes_unless_it_is_allowed() {
    let mut object = json!({"spec": {"size": 1, "def": null, "host": null, "nul": null}});
    let schema = widget();
    schema.prune(&mut object);
    schema.default(&mut object);
    assert_eq!(object, json!({"spec": {"size": 1, "def": "dd", "nul": null}}));
}

#[test]
fn unchanged_invalid_values_are_tolerated_on_update_and_changed_ones_are_not() {
    let schema = widget();
    let with = |size: i64, host: &str| json!({"spec": {"size": size, "host": host}});
    assert!(schema.validate(&with(50, "abc"), Some(&with(50, "abcd"))).causes.is_empty());
    assert_eq!(schema.validate(&with(51, "abc"), Some(&with(50, "abc"))).causes.len(), 1);
    let list = |v: Value| json!({"spec": {"size": 1, "lmap": v}});
    let old = list(json!([{"name": "a", "v": "bad"}]));
    let new = list(json!([{"name": "b", "v": 1}, {"name": "a", "v": "bad"}]));
    assert!(schema.validate(&new, Some(&old)).causes.is_empty(), "items correlate by key");
}

#[test]
fn rules_run_on_valid_objects_and_tolerate_what_has_not_changed() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [{"rule": "self.a < 5", "message": "too large"}],
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}));
    let causes = schema.validate(&json!({"spec": {"a": "x"}}), None).causes;
    assert_eq!(causes.len(), 2);
    assert_eq!(causes[1].field, "<nil>");
    assert!(
        causes[1]
            .message
            .starts_with("Invalid value: null: some validation rules were not checked")
    );
    let causes = schema.validate(&json!({"spec": {"a": 7}}), None).causes;
    assert_eq!((causes.len(), causes[0].field.as_str()), (1, "spec"));
    assert_eq!(causes[0].message, "Invalid value: too large");
    assert_eq!(schema.validate(&json!({"spec": {"a": 4}}), None), ValidationResult::default());
    let old = json!({"spec": {"a": 7}, "x": 1});
    let result = schema.validate(&json!({"spec": {"a": 7}, "x": 2}), Some(&old));
    assert!(result.causes.is_empty());
    assert_eq!(result.tolerated, ["spec: Invalid value: too large"]);
}

#[test]
fn patterns_mean_what_they_mean_in_go() {
    let matches = |pattern: &str, text: &str| {
        super::pattern::SchemaPattern::compile(pattern, &Default::default()).matches(text)
    };
    assert!(!matches("^\\d$", "٣"), "digits are ASCII");
    assert!(!matches("^\\w$", "é"));
    assert!(matches("^[a&&b]+$", "a&b"), "no set operators");
    assert!(matches("^[a--]", "a") || super::pattern::error("^[a--]").is_some());
    assert!(matches("^\\Qa.b\\E$", "a.b") && !matches("^\\Qa.b\\E$", "axb"));
    assert!(matches("^a{,2}$", "a{,2}"), "not a repetition");
    assert!(matches("^[[:alpha:]]+$", "abc"));
    assert!(matches("^(?i)ab$", "AB"));
    assert!(matches("^(?P<x>a|b)(?:c)?$", "bc"));
    assert!(matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b"));
    for bad in ["([", "(?=a)", "a**", "*a", "a{1001}", "\\1", "\\y", "(", ")", "(?x)a", "a{2}{3}"] {
        assert!(super::pattern::error(bad).is_some(), "{bad} must be refused");
    }
    let text = super::pattern::error("([").unwrap_or_default();
    assert_eq!(text, "error parsing regexp: missing closing ]: `[`");
    let text = super::pattern::error("(?=a)").unwrap_or_default();
    assert_eq!(text, "error parsing regexp: invalid or unsupported Perl syntax: `(?=`");
}

#[test]
fn formats_accept_and_refuse_as_upstream_does() {
    let table = [
        ("ipv4", "1.2.3.4", "1.2.3"),
        ("ipv4", "01.2.003.0", "1.2.3.256"),
        ("ipv4", "::ffff:01.2.3.4", "1.2.3.4.5"),
        ("ipv4", "1.2.3.4", "::1"),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "010.0.0.0/8", "10.0.0./8"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("uri", "https://x/y", "x"),
        ("email", "a@b.c", "x"),
        ("hostname", "a-b.example", "a-b.c"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "x"),
        ("byte", "aGk=", "!"),
        ("date", "2020-02-29", "2021-02-29"),
        ("date-time", "2020-01-01T00:00:00.5Z", "yesterday"),
        ("duration", "1h30m", "x"),
        ("duration", "22 ns", "22 parsecs"),
        ("duration", "P1D", "P1X"),
        ("duration", "after 5 weekdays", "99999999999999999999 s 5 s"),
        ("duration", "3 Hr", "3 n"),
        ("mac", "00:11:22:33:44:55", "x"),
        ("isbn", "0321751043", "0321751044"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("hexcolor", "#fff", "#ff"),
        ("byte", "QR==", ""),
        ("uri", "http://[fe80::1%25en0]:80/a b", "http://[::1"),
        ("uri", "postgres://a:1,b:2/%C3%A9", "http://a:1:2/"),
        ("uri", "mailto:%", "http://h/%zz"),
        ("uri", "https://u:p%40@h?%", "https://h<%41>/"),
        ("email", "\"a b\" <a@[::1]> (c (d))", "a@[1.2.3.04]"),
        ("email", "One: <a@b>;", "Two: a@b, c@d;"),
        ("email", ".a. <a@b>", ".a@b"),
        ("mac", "4111111111111111", "00:11:22:33:44:55:66"),
        ("creditcard", "4111-1111-1111-1111", "2020-01-01T00:00:00Z"),
        ("ssn", "111-11-1111", "111111111"),
        ("isbn", "0-9752298-0-X", "0-9752298-0-x"),
        ("date-time", "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:60Z"),
        ("duration", "9999999999h", "9999999999.h"),
        ("cidr", "::/0128", "::/129"),
    ];
    for (format, good, bad) in table {
        assert!(super::formats::valid(format, good), "{format} {good}");
        assert!(!super::formats::valid(format, bad), "{format} {bad}");
    }
}

fn crd(change: impl FnOnce(&mut Value)) -> Value {
    let mut crd = json!({
        "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object"}}}}}]}
    });
    change(&mut crd);
    crd
}

fn faults(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let causes = check_crd(&crd(change), None);
    causes.iter().map(|c| format!("{}|{}|{}", c.reason, c.field, c.message)).collect()
}

fn field(schema: Value) -> Vec<String> {
    let shorten = |s: String| s.replace("spec.validation.openAPIV3Schema.properties[x]", "X");
    faults(|c| {
        c["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"] = schema;
    })
    .into_iter()
    .map(shorten)
    .collect()
}

#[test]
fn a_plain_crd_is_accepted_and_may_leave_names_to_their_defaults() {
    assert!(faults(|_| {}).is_empty());
    assert!(faults(|c| c["spec"]["names"] = json!({"plural": "foos", "kind": "Foo"})).is_empty());
}

#[test]
fn a_crd_with_bad_names_or_versions_is_refused() {
    assert_eq!(
        faults(|c| c["metadata"]["name"] = json!("bar.ex.com")),
        [
            "FieldValueInvalid|metadata.name|Invalid value: \"bar.ex.com\": must be spec.names.plural+\".\"+spec.group"
        ]
    );
    assert_eq!(
        faults(|c| c["spec"]["scope"] = json!("Foo")),
        [
            "FieldValueNotSupported|spec.scope|Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\""
        ]
    );
    assert_eq!(
        faults(|c| c["spec"]["versions"][0]["storage"] = json!(false)),
        [
            "FieldValueInvalid|spec.versions|Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            "FieldValueInvalid|status.storedVersions|Invalid value: null: must have at least one stored version"
        ]
    );
    assert_eq!(faults(|c| c["spec"] = Value::Null).len(), 9);
    assert_eq!(
        faults(|c| c["spec"]["versions"][0]["schema"] = json!({})),
        ["FieldValueRequired|spec.versions[0].schema.openAPIV3Schema|Required value"]
    );
}

#[test]
fn schemas_that_are_not_structural_are_refused() {
    let table: &[(Value, &[&str])] = &[
        (
            json!({}),
            &[
                "FieldValueRequired|X.type|Required value: must not be empty for specified object fields",
            ],
        ),
        (
            json!({"type": "strng"}),
            &[
                "FieldValueNotSupported|X.type|Unsupported value: \"strng\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ],
        ),
        (
            json!({"type": "array"}),
            &["FieldValueRequired|X.items|Required value: must be specified"],
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            &["FieldValueForbidden|X.anyOf[0].type|Forbidden: must be empty to be structural"],
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            &[],
        ),
        (json!({"type": "object", "anyOf": [{"properties": {"q": {"minLength": 1}}}]}), &[]),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            &[
                "FieldValueInvalid|X.x-kubernetes-preserve-unknown-fields|Invalid value: false: must be true or undefined",
            ],
        ),
        (
            json!({"type": "string", "default": 5}),
            &[
                "FieldValueTypeInvalid|X.default|Invalid value: \"integer\":  in body must be of type string: \"integer\"",
            ],
        ),
        (
            json!({"type": "object", "default": {"q": 1}}),
            &["FieldValueInvalid|X.default|Invalid value: {\"q\":1}: must not have unknown fields"],
        ),
        (
            json!({"type": "string", "pattern": "(["}),
            &[
                "FieldValueInvalid|X.pattern|Invalid value: \"([\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
            ],
        ),
        (json!({"$ref": "#/x"}), &["FieldValueForbidden|X.$ref|Forbidden: $ref is not supported"]),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            &[
                "FieldValueRequired|X.items.properties[a].default|Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
            &[
                "FieldValueInvalid|X.items.x-kubernetes-map-type|Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": " "}]}),
            &[
                "FieldValueRequired|X.x-kubernetes-validations[0].rule|Required value: rule is not specified",
            ],
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(&field(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn what_a_junctor_at_the_root_speaks_of_must_be_specified_outside() {
    let found = faults(|c| {
        c["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["anyOf"] =
            json!([{"properties": {"q": {"minLength": 1}}}]);
    });
    let path = "spec.validation.openAPIV3Schema";
    assert_eq!(
        found,
        [format!(
            "FieldValueRequired|{path}.properties[q]|Required value: because it is defined in {path}.anyOf[0].properties[q]"
        )]
    );
}

#[test]
fn kind_and_group_of_an_established_crd_cannot_change() {
    let mut old = crd(|_| {});
    old["status"] = json!({"storedVersions": ["v1"], "conditions": [{"type": "Established", "status": "True"}]});
    let mut new = old.clone();
    new["spec"]["names"]["kind"] = json!("Bar");
    let causes = check_crd(&new, Some(&old));
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, "spec.names.kind");
    new["spec"]["versions"][0]["name"] = json!("v2");
    let fields: Vec<String> = check_crd(&new, Some(&old)).into_iter().map(|c| c.field).collect();
    assert_eq!(fields, ["spec.names.kind", "status.storedVersions[0]"]);
}

#[test]
fn the_head_of_an_embedded_resource_must_be_readable() {
    let fault =
        |emb: Value| widget().embedded_fault(&json!({"kind": 5, "spec": {"size": 1, "emb": emb}}));
    assert_eq!(fault(json!({"apiVersion": "v1", "kind": "X", "metadata": {}})), None);
    assert_eq!(
        fault(json!({"apiVersion": 5})).as_deref(),
        Some("spec.emb.apiVersion: Invalid value: 5: must be a string")
    );
    assert_eq!(
        fault(json!({"metadata": 5})).as_deref(),
        Some(
            "spec.emb.metadata: Invalid value: 5: json: cannot unmarshal number into Go value of type v1.ObjectMeta"
        )
    );
}

#[test]
fn integers_are_compared_with_limits_as_integers() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {
        "large": {"type": "integer", "format": "int64", "maximum": 9_223_372_036_854_774_784_u64},
    }}));
    let refused = |value: &Value| !schema.validate(value, None).causes.is_empty();
    assert!(!refused(&json!({"large": 9_223_372_036_854_774_784_i64})));
    assert!(refused(&json!({"large": 9_223_372_036_854_775_000_i64})), "one number as floats");
}

#[test]
fn whole_numbers_are_compared_with_the_limit_that_go_casts() {
    // Texts of kube-apiserver 1.36.3.
    let table = [
        (json!({"maximum": 1e19}), json!(1), "less than or equal to -9223372036854775808"),
        (json!({"maximum": 0.5}), json!(1), "less than or equal to 0"),
        (json!({"minimum": 2.5}), json!(1), "greater than or equal to 2"),
        (json!({"multipleOf": 2.5}), json!(3), "a multiple of 2"),
        (json!({"multipleOf": 1e20}), json!(3), "must be positive: -9223372036854775808"),
        (json!({"multipleOf": -2.5}), json!(3.5), "must be positive: -2.5"),
        (json!({"multipleOf": 2.5}), json!(3.5), "a multiple of 2.5"),
    ];
    for (mut limits, value, text) in table {
        limits["type"] = json!("number");
        let causes = Schema::compile(&limits).validate(&value, None).causes;
        assert!(causes.iter().any(|cause| cause.message.contains(text)), "{limits} {causes:?}");
    }
    let schema = Schema::compile(&json!({"type": "number", "minimum": 1e300}));
    assert!(schema.validate(&json!(1), None).causes.is_empty());
    assert!(!schema.validate(&json!(1.5), None).causes.is_empty());
    let schema = Schema::compile(&json!({"type": "number", "multipleOf": 0.1}));
    assert!(schema.validate(&json!(0.3), None).causes.is_empty());
}
