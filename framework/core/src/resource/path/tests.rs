use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde::{Deserialize, Serialize};

use super::*;

#[test]
fn notations_of_a_path_escape_their_own_characters() {
    let segments = vec![
        Segment::Field("metadata".into()),
        Segment::Field("annotations".into()),
        Segment::Field("example.dev/a~b".into()),
        Segment::Item(2),
    ];
    let path = json_path(&segments);
    assert_eq!(path, r".metadata.annotations.example\.dev/a~b[2]");
    assert_eq!(parsed(&path), Ok(segments.clone()));
    let pointer = segment::json_pointer(&segments);
    assert_eq!(pointer.as_deref(), Some("/metadata/annotations/example.dev~1a~0b/2"));
    assert_eq!(segment::json_pointer(&[Segment::Each]), None);
}

#[test]
fn a_text_is_read_as_kubectl_reads_it() {
    let names = |path: &str| json_path(&parsed(path).unwrap_or_default());
    assert_eq!(names(".spec.ports[*].number"), ".spec.ports[*].number");
    assert_eq!(names(".spec.ports[0:2].number"), ".spec.ports[*].number");
    assert_eq!(names(".metadata.labels['app.dev/x']"), r".metadata.labels.app\.dev/x");
    let filter = r#".status.conditions[?(@.type=="a[.]b")].status"#;
    assert_eq!(names(filter), filter);
    for condition in ["@.type", "@.a == 1.5", "@.a=='='", "@.a != true", "@.a>=@.b", "@.a == 'b'"] {
        let path = format!(".status.conditions[?({condition})].status");
        assert_eq!(names(&path), path);
    }
    for (wrong, part) in [
        ("spec.host", "begins with a dot"),
        (".spec..host", "a name is missing"),
        (".spec.ports[0", "not closed"),
        (".spec.ports[x]", "`[x]` is neither"),
        (".status.conditions[?(@.type=Ready)].status", "compares by `==`, not by `=`"),
        (".status.conditions[?(@.type=>1)]", "not by `=>`"),
        (".status.conditions[?(@.type==Ready)].status", "`Ready` in the filter"),
        (".status.conditions[?(type==\"Ready\")].status", "`type` in the filter"),
        (".status.conditions[?@.type==\"Ready\"]", "needs parentheses"),
        (".status.conditions[?(@.type==\"Ready)]", "is not closed"),
    ] {
        let fault = parsed(wrong).expect_err(wrong);
        assert!(fault.contains(part), "{wrong}: {fault}");
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    host_name: Option<String>,
    #[serde(rename = "kind")]
    r#type: Option<String>,
    ports: Option<Vec<Option<Port>>>,
    by_name: BTreeMap<String, Port>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Port {
    number: i32,
}

struct Table {
    spec: Spec,
    other: Other,
}

impl FieldNames for Table {
    const FIELDS: &'static [FieldName] = &[
        FieldName { rust: "spec", json: "theSpec", flattened: false },
        FieldName { rust: "other", json: "", flattened: true },
    ];
}

struct Other {
    unknown: String,
}

macro_rules! source {
    ($walk:ident) => {{
        #[allow(unused_imports)]
        use super::{Declared as _, Probed as _, Undeclared as _};
        (&&&$walk.container()).field_source()
    }};
}

macro_rules! walk {
    ($root:ty; $($field:ident),+) => {
        |walk: Walk<'_, $root>| {
            #[allow(unused_imports)]
            use super::Inner as _;
            $(
                let walk = walk.inner().inner().inner();
                let source = source!(walk);
                let walk = walk.field(source, stringify!($field).trim_start_matches("r#"), |value| &value.$field);
            )+
            walk.inner().inner().inner()
        }
    };
}

#[test]
fn names_come_from_a_table_or_from_serde() {
    let host: FieldPath<Table, String> = FieldPath::of(walk!(Table; spec, host_name));
    assert_eq!(host.json_path().unwrap(), ".theSpec.hostName");
    let cluster_ip: FieldPath<Service, String> = FieldPath::of(walk!(Service; spec, cluster_ip));
    assert_eq!(cluster_ip.json_pointer().unwrap(), "/spec/clusterIP");
    let pods: FieldPath<Deployment, String> =
        FieldPath::of(walk!(Deployment; spec, template, spec, node_name));
    assert_eq!(format!("{pods:?}"), ".spec.template.spec.nodeName");
}

#[test]
fn a_field_without_a_name_in_json_is_an_error_that_names_it() {
    let path: FieldPath<Table, String> = FieldPath::of(walk!(Table; spec, r#type));
    let error = path.segments().unwrap_err().to_string();
    assert!(error.contains("field `type`") && error.contains("`Spec` (hostName, kind"), "{error}");
    let path: FieldPath<Table, String> = FieldPath::of(walk!(Table; other, unknown));
    let error = path.segments().unwrap_err().to_string();
    assert!(error.contains("the field `unknown` is not known, because `Other`"), "{error}");
}

#[test]
fn values_are_found_through_options_lists_and_maps() {
    let port = |number| Port { number };
    let spec = Spec {
        host_name: Some("a.example".into()),
        ports: Some(vec![Some(port(80)), Some(port(443))]),
        by_name: BTreeMap::from([("http".into(), port(8080))]),
        ..Spec::default()
    };
    let numbers: FieldPath<Spec, i32> = FieldPath::of(|walk| {
        walk.step(|spec| &spec.ports).inner().each().inner().step(|port| &port.number)
    });
    assert_eq!(numbers.values(&spec), [&80, &443]);
    assert_eq!(numbers.get(&spec), Some(&80));
    assert_eq!(numbers.values(&Spec::default()), Vec::<&i32>::new());
    let second: FieldPath<Spec, i32> = FieldPath::of(|walk| {
        walk.step(|spec| &spec.ports).inner().item(1).inner().step(|port| &port.number)
    });
    assert_eq!(second.get(&spec), Some(&443));
    let http: FieldPath<Spec, i32> =
        FieldPath::of(|walk| walk.step(|spec| &spec.by_name).key("http").step(|port| &port.number));
    assert_eq!(http.get(&spec), Some(&8080));
    let names: FieldPath<Spec, String> =
        FieldPath::of(|walk| walk.step(|spec| &spec.by_name).keys());
    assert_eq!(names.values(&spec), ["http"]);
}

#[test]
fn a_selector_escapes_the_characters_that_separate_its_parts() {
    let node: FieldPath<Pod, String> = FieldPath::of(walk!(Pod; spec, node_name));
    assert_eq!(node.equals(r"a,b=c\").unwrap(), r"spec.nodeName=a\,b\=c\\");
    assert_eq!(node.not_equals("a").unwrap(), "spec.nodeName!=a");
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    VerySlow,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerySlow")
    }
}

#[derive(Debug, Deserialize)]
struct Moded {
    mode: String,
}

#[test]
fn a_selector_has_a_variant_by_its_name_in_json_and_refuses_what_is_no_scalar() {
    let mode: FieldPath<Moded, Mode> = FieldPath::of(|walk| {
        walk.field(|_| Ok(JsonName::Named("mode")), "mode", |_| &Mode::VerySlow)
    });
    assert_eq!(mode.equals(Mode::VerySlow).unwrap(), "mode=very-slow");
    static NUMBERS: Vec<i32> = Vec::new();
    let list: FieldPath<Moded, Vec<i32>> =
        FieldPath::of(|walk| walk.field(|_| Ok(JsonName::Named("mode")), "mode", |_| &NUMBERS));
    let error = list.equals([1]).unwrap_err().to_string();
    assert!(error.contains("`.mode`") && error.contains("no text, number or boolean"), "{error}");
    assert_eq!(Moded { mode: String::new() }.mode, "");
}

#[test]
fn a_short_name_keeps_parameters() {
    assert_eq!(short_name::<Option<Vec<String>>>(), "Option<Vec<String>>");
}

#[test]
fn a_name_with_a_character_that_ends_names_is_escaped() {
    for name in ["a,b", "q w", "x[0]", "$", "@", "a}b", "a.b"] {
        let segments = vec![Segment::Field("m".to_owned()), Segment::Field(name.to_owned())];
        let path = json_path(&segments);
        assert_eq!(parsed(&path), Ok(segments), "{path}");
    }
    assert_eq!(json_path(&[Segment::Field("a,b".to_owned())]), ".a\\,b");
}

#[test]
fn a_column_is_read_as_kubectl_reads_it() {
    let field = |name: &str| Segment::Field(name.to_owned());
    let names = Ok(vec![field("m"), field("a.b")]);
    assert_eq!(parsed(".m['a.b']"), names);
    assert_eq!(parsed_column(r".m['a\.b']"), names);
    assert_eq!(parsed_column(".m['a','b']"), Ok(vec![field("m"), Segment::Each]));
    for (wrong, part) in [
        (".m['a.b']", r"write `.a\.b`"),
        (".m['x[0]']", r"write `.x\[0\]`"),
        (".m['a,b']", r"write `.a\,b`"),
        (".m.a,b", "needs a backslash"),
        (".m.q w", "needs a backslash"),
    ] {
        let fault = parsed_column(wrong).expect_err(wrong);
        assert!(fault.contains(part), "{wrong}: {fault}");
    }
}
