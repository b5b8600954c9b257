//! Models of kinds, and the faults of their attributes.

use syn::{DeriveInput, parse_quote};

use super::attrs::ResourceAttrs;
use super::check;
use super::model::{ResourceModel, RootField};
use crate::doc_comments::Doc;
use crate::errors::Errors;
use crate::path::PathStep;

fn model(input: &DeriveInput) -> (ResourceModel, Vec<String>) {
    let mut errors = Errors::default();
    let attrs = ResourceAttrs::read(&input.attrs, &mut errors);
    let model = ResourceModel::new(input, attrs, &mut errors);
    check::check(&model, &mut errors);
    let texts = errors.texts();
    errors.finish();
    (model, texts)
}

#[test]
fn names_that_are_not_given_follow_from_the_kind() {
    let (model, faults) = model(&parse_quote! {
        /// A policy.
        #[resource(group = "example.dev", version = "v1", cluster, short = ["np", "p"])]
        #[resource(short = "pol")]
        pub struct NetPolicy { pub metadata: ObjectMeta, pub spec: Spec }
    });
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(model.kind.value, "NetPolicy");
    assert_eq!(model.singular.value, "netpolicy");
    assert_eq!(model.plural.value, "netpolicies");
    assert_eq!(model.api_version().as_deref(), Some("example.dev/v1"));
    assert!(matches!(&model.doc, Doc::Text(text) if text == "A policy."), "{:?}", model.doc);
    assert!(!model.namespaced);
    let short: Vec<_> = model.short.iter().map(|short| short.value.as_str()).collect();
    assert_eq!(short, ["np", "p", "pol"]);
}

#[test]
fn an_option_is_optional_however_it_is_spelt() {
    let (model, _) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        struct A {
            metadata: ObjectMeta,
            spec: Spec,
            status: ::core::option::Option<Status>,
            last_words: String,
        }
    });
    assert!(model.field("status").is_some_and(|status| status.optional));
    assert!(model.field("spec").is_some_and(|spec| !spec.optional));
    assert_eq!(model.field("last_words").map(|field| field.json.value.as_str()), Some("lastWords"));
}

#[test]
fn all_faults_are_told_at_once() {
    let (_, faults) = model(&parse_quote! {
        #[resource(gruop = "example.dev", version = 1, namespaced, namespaced, short = "W S")]
        struct A { spec: Spec, status: Status }
    });
    let expected = [
        "unknown key `gruop`; did you mean `group`?",
        "`version` takes a text: `version = \"…\"`",
        "duplicate key `namespaced`: it is set above",
    ];
    for text in expected {
        assert!(faults.iter().any(|fault| fault == text), "{text} not in {faults:#?}");
    }
    assert!(!faults.iter().any(|fault| fault.contains("missing")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("`W S`")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("`metadata: ObjectMeta`")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("Option<Status>")), "{faults:#?}");
}

#[test]
fn a_column_has_a_heading_and_a_field_in_any_form() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        #[resource(column(spec.host_name), column("Phase", status.phase, priority = 1))]
        #[resource(column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"))]
        #[resource(column(spec.a, name = "B"), column(path = spec.x, name = "X"))]
        #[resource(column(metadata.labels["app"], name = "App"), column(spec.ports[0].number))]
        struct A { metadata: ObjectMeta, spec: Spec, status: Option<Status> }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let texts: Vec<_> = model
        .columns
        .iter()
        .map(|column| {
            let name = column.name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
            (name, column.place.as_ref().map(PathStep::text).unwrap_or_default())
        })
        .collect();
    let expected = [
        ("Host Name", "spec.host_name"),
        ("Phase", "status.phase"),
        ("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("B", "spec.a"),
        ("X", "spec.x"),
        ("App", "metadata.labels[\"app\"]"),
        ("Number", "spec.ports[0].number"),
    ];
    let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
    assert_eq!(texts, expected);
}

#[test]
fn the_root_takes_the_attributes_of_serde_that_a_definition_can_say() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        #[serde(rename_all = "snake_case")]
        struct A {
            metadata: ObjectMeta,
            #[serde(rename = "data")]
            content: Content,
            #[serde(default, skip_serializing_if = "Extra::is_empty")]
            extra: Extra,
            #[serde(default = "more::most")]
            most_of: u8,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            status: Option<Status>,
        }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let json = |name: &str| model.field(name).map(|field| field.json.value.clone());
    assert_eq!(json("content").as_deref(), Some("data"));
    assert_eq!(json("most_of").as_deref(), Some("most_of"));
    let extra = model.field("extra").map(|it| (it.default.is_some(), it.skip_if.is_some()));
    assert_eq!(extra, Some((true, true)));
    let most = model.field("most_of").and_then(RootField::default_path);
    assert_eq!(most.map(|path| path.to_string()).as_deref(), Some("more :: most"));
    // What an `Option` says already is left out.
    let status = model.field("status").map(|it| (it.default.is_some(), it.skip_if.is_some()));
    assert_eq!(status, Some((false, false)));
}

#[test]
fn a_name_for_both_ways_is_one_name() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        #[serde(rename_all(serialize = "snake_case", deserialize = "snake_case"))]
        struct Website {
            metadata: ObjectMeta,
            #[serde(rename(serialize = "data", deserialize = "data"))]
            spec: Spec,
            most_of: u8,
        }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let names: Vec<&str> = model.fields.iter().map(|field| field.json.value.as_str()).collect();
    assert_eq!(names, ["data", "most_of"]);
}

#[test]
fn a_function_that_leaves_out_more_than_none_stays() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        struct A {
            metadata: ObjectMeta,
            #[serde(skip_serializing_if = "port::is_none")]
            port: Option<i32>,
            #[serde(skip_serializing_if = "std::option::Option::is_none")]
            host: Option<String>,
            #[serde(default = "most", skip_serializing_if = "Option::is_none")]
            most: Option<i32>,
        }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let skips = |name: &str| model.field(name).map(|field| field.skip_if.is_some());
    assert_eq!(
        (skips("port"), skips("host"), skips("most")),
        (Some(true), Some(false), Some(true))
    );
}

#[test]
fn an_attribute_of_serde_that_the_root_cannot_have_is_one_fault() {
    let of_field = [
        ("flatten", "the object itself takes no `flatten`: "),
        ("flatten", "flatten inside of those types"),
        ("with = \"m\"", "a type of your own"),
        ("skip_serializing_if = \"f\"", "give the field `#[serde(default)]` as well"),
        ("defualt", "did you mean `default`?"),
    ];
    let of_struct = [
        ("deny_unknown_fields", "the object itself takes no `deny_unknown_fields`: "),
        ("deny_unknown_fields", "stay readable"),
        ("untagged", "by `apiVersion` and `kind`"),
        ("content = \"c\"", "by `apiVersion` and `kind`"),
        ("expecting = \"a site\"", "name the kind"),
        ("rename_all_fields = \"camelCase\"", "write `rename_all`"),
        ("rename_all = \"snakecase\"", "did you mean `snake_case`?"),
        ("default", "on the fields that may be absent"),
    ];
    for (key, text) in of_field {
        let key: proc_macro2::TokenStream = key.parse().unwrap();
        let (_, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            struct A { metadata: ObjectMeta, #[serde(#key)] content: Content }
        });
        let [only] = faults.as_slice() else { panic!("{key}: {faults:#?}") };
        assert!(only.contains(text), "{key}: {only}");
    }
    for (key, text) in of_struct {
        let key: proc_macro2::TokenStream = key.parse().unwrap();
        let (_, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            #[serde(#key)]
            struct A { metadata: ObjectMeta, content: Content }
        });
        let [only] = faults.as_slice() else { panic!("{key}: {faults:#?}") };
        assert!(only.contains(text), "{key}: {only}");
    }
}

#[test]
fn a_column_of_a_usual_word_shows_the_field_of_that_name_if_there_is_one() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        #[resource(column(age), column(ready))]
        struct Horse { metadata: ObjectMeta, age: i32 }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let [age, ready] = model.columns.as_slice() else { panic!("{:?}", model.columns) };
    assert!(matches!(&age.place, Some(PathStep::Fields(_))) && age.kind.is_none(), "{age:?}");
    assert!(matches!(&ready.place, Some(PathStep::Text(_))), "{ready:?}");
}

#[test]
fn markers_of_go_on_the_kind_are_answered_by_its_keys() {
    let (_, faults) = model(&parse_quote! {
        /// A site.
        /// +kubebuilder:resource:shortName=ws,scope=Namespaced
        /// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
        #[resource(group = "example.dev", version = "v1", namespaced)]
        struct Website {
            metadata: ObjectMeta,
            /// The wanted state.
            /// +optional
            spec: Spec,
        }
    });
    assert_eq!(faults.len(), 3, "{faults:#?}");
    for text in ["`column(\"Host\", spec.host)`", "`short = \"ws\"`", "make it an `Option`"] {
        assert!(faults.iter().any(|fault| fault.contains(text)), "{text} not in {faults:#?}");
    }
}

#[test]
fn markers_of_go_on_a_root_field_name_no_key_that_it_cannot_have() {
    let answers = [
        ("+nullable", "make it an `Option`"),
        ("+required", "it is required unless it is an `Option` or has `#[serde(default)]`"),
        ("+kubebuilder:validation:Required", "it is required unless"),
        ("+k8s:required", "it is required unless"),
        ("+listType=map", "on a field of a nested type, write `list(map, keys(name))`"),
        ("+mapType=atomic", "on a field of a nested type, write `map(granular)`"),
        ("+k8s:minimum=1", "on a field of a nested type, write `min = 1`"),
        ("+kubebuilder:validation:items:MaxLength=3", "on a field of a nested type, write"),
        ("+k8s:immutable", "on a field of a nested type, write `immutable`"),
        ("+default=3", "only: write `#[serde(default)]`"),
        ("+genclient", "clients take every kind"),
    ];
    for (line, text) in answers {
        let (_, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            struct A { metadata: ObjectMeta, #[doc = #line] content: Content }
        });
        let [only] = faults.as_slice() else { panic!("{line}: {faults:#?}") };
        assert!(only.contains(text), "{line}: {only}");
    }
}

#[test]
fn a_warning_has_characters_that_go_prints() {
    let outcome = |warning: &str| {
        let (_, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced, deprecated = #warning)]
            struct A { metadata: ObjectMeta, spec: Spec }
        });
        faults.len()
    };
    for printed in ["use v2", "Größe é e\u{301}", "\u{1f600}", "\u{fe0f}", "日本", "\u{e0100}"]
    {
        assert_eq!(outcome(printed), 0, "{printed:?}");
    }
    let refused = [
        "\n\u{a0}\u{ad}\u{600}\u{61c}\u{6dd}\u{70f}\u{180e}\u{200b}\u{200d}",
        "\u{2028}\u{202e}\u{2060}\u{206f}\u{e000}\u{feff}\u{fffb}\u{e0001}\u{f0000}\u{10ffff}",
    ];
    for c in refused.concat().chars() {
        assert_eq!(outcome(&format!("use{c}v2")), 1, "{c:?}");
    }
}

#[test]
fn an_index_names_fields_or_a_json_path() {
    let (model, faults) = model(&parse_quote! {
        #[resource(group = "example.dev", version = "v1", namespaced)]
        #[index(by_host = spec.host, by_port: i32 = spec.ports[].number)]
        #[index(by_phase: Phase = status?.phase, by_path = ".spec.host")]
        struct A { metadata: ObjectMeta, spec: Spec, status: Option<Status> }
    });
    assert!(faults.is_empty(), "{faults:?}");
    let texts: Vec<_> = model.indexes.iter().map(|index| index.source.text()).collect();
    assert_eq!(texts, ["spec.host", "spec.ports[].number", "status.phase", ".spec.host"]);
}
