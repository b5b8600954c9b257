//! Types that are written as another type: newtypes, and types that serde converts.

#![allow(dead_code)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_macros::Schema;

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
struct Lowercase(String);

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
struct Described(#[schema(pattern = "^[a-z]*$")] String);

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "u8", into = "u8")]
struct Percent(u8);

impl TryFrom<u8> for Percent {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        if number <= 100 { Ok(Self(number)) } else { Err("above 100") }
    }
}

impl From<Percent> for u8 {
    fn from(value: Percent) -> Self {
        value.0
    }
}

macro_rules! converted {
    ($($ty:ident)*) => { $(
        impl TryFrom<String> for $ty {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                let is_lower = text.chars().all(|c| c.is_ascii_lowercase());
                if is_lower { Ok(Self(text)) } else { Err("not in lower case") }
            }
        }

        impl From<$ty> for String {
            fn from(value: $ty) -> Self {
                value.0
            }
        }
    )* };
}
converted! { Lowercase Described Documented Titled Bounded }

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
#[schema(docs = "https://example.dev")]
struct Documented(#[schema(transform = untouched)] String);

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
struct Titled(#[schema(extend("x-other" = 1))] String);

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
struct Bounded(#[schema(extend("enum" = ["a", "b"]))] String);

fn untouched(_: &mut schemars::Schema) {}

#[derive(Serialize, Deserialize, Schema)]
struct Parsed {
    name: Lowercase,
    described: Described,
    #[schema(immutable)]
    kept: Lowercase,
    share: Percent,
    listen: std::net::SocketAddr,
    peers: Vec<std::net::SocketAddrV4>,
    #[schema(pattern = "^127[.]0[.]0[.]1:[0-9]{1,4}$")]
    debug: Option<std::net::SocketAddr>,
    documented: Documented,
    titled: Titled,
    bounded: Bounded,
}

#[test]
fn values_that_serde_parses_are_warned_of_unless_their_schema_says_how() {
    let found = crate::crd::structural_schema::<Parsed>().unwrap();
    let named: Vec<&str> = found
        .warnings
        .iter()
        .filter_map(|text| Some(text.split_once(" of the value")?.0))
        .collect();
    assert_eq!(
        named,
        [
            ".documented: serde makes `Documented`",
            ".kept: serde makes `Lowercase`",
            ".listen: serde makes `SocketAddr`",
            ".name: serde makes `Lowercase`",
            ".peers.[]: serde makes `SocketAddrV4`",
            ".share: serde makes `Percent`",
            ".titled: serde makes `Titled`",
        ],
        "{:?}",
        found.warnings
    );
    assert!(!found.schema.to_string().contains("x-windlass"), "{}", found.schema);
}

#[derive(Serialize, Deserialize, Schema)]
struct Door {
    name: String,
}

#[derive(Serialize, Deserialize, Schema)]
struct Doors(#[schema(list(map, keys(name)))] Vec<Door>);

#[derive(Serialize, Deserialize, Schema)]
#[serde(transparent)]
struct Gates {
    #[schema(list(map, keys(name)))]
    gates: Vec<Door>,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
struct Notes(#[schema(opaque)] BTreeMap<String, String>);

impl From<BTreeMap<String, String>> for Notes {
    fn from(notes: BTreeMap<String, String>) -> Self {
        Self(notes)
    }
}

impl From<Notes> for BTreeMap<String, String> {
    fn from(notes: Notes) -> Self {
        notes.0
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct House {
    doors: Doors,
    gates: Gates,
    notes: Notes,
}

#[test]
fn the_keys_of_a_newtype_apply_where_it_is_used() {
    let found = crate::crd::structural_schema::<House>().unwrap().schema;
    for list in ["doors", "gates"] {
        let list = &found["properties"][list];
        assert_eq!(list["x-kubernetes-list-type"], "map", "{list}");
        assert_eq!(list["x-kubernetes-list-map-keys"], serde_json::json!(["name"]), "{list}");
    }
    // A map to texts: each value is kept, whatever it is.
    let notes = &found["properties"]["notes"];
    assert_eq!(notes["x-kubernetes-preserve-unknown-fields"], true, "{notes}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Keyed {
    flags: BTreeMap<bool, String>,
    letters: Option<std::collections::HashMap<char, String>>,
    names: BTreeMap<String, String>,
    nested: BTreeMap<String, Option<Vec<BTreeMap<bool, u8>>>>,
}

#[test]
fn keys_of_maps_that_only_serde_checks_are_warned_of() {
    let found = crate::crd::structural_schema::<Keyed>().unwrap();
    assert_eq!(
        found.warnings,
        [
            ".flags: an API server does not check that the keys of a map are `true` or `false`; a rule checks the keys of a map \
             with a bound: `#[schema(properties(max = 100))]`",
            ".letters: an API server does not check that the keys of a map are single characters; a rule checks the keys of a \
             map with a bound: `#[schema(properties(max = 100))]`",
            ".nested.*.[]: an API server does not check that the keys of a map are `true` or `false`",
        ]
    );
    assert!(!found.schema.to_string().contains("x-windlass"), "{}", found.schema);
    let alone = crate::crd::structural_schema::<Box<BTreeMap<std::net::Ipv4Addr, bool>>>().unwrap();
    let expected = ": an API server does not check that the keys of a map are IP addresses";
    assert!(alone.warnings.iter().any(|warning| warning.ends_with(expected)), "{alone:?}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Link {
    a: Option<Box<Link>>,
    b: Option<Box<Link>>,
    c: Option<Box<Link>>,
    d: Option<Box<Link>>,
    e: Option<Box<Link>>,
    f: Option<Box<Link>>,
    g: Option<Box<Link>>,
    h: Option<Box<Link>>,
    i: Option<Box<Link>>,
    j: Option<Box<Link>>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Links {
    link: Link,
}

#[test]
fn further_places_of_a_type_that_contains_itself_are_counted() {
    let found = crate::crd::structural_schema::<Links>().unwrap();
    let last = found.warnings.last().unwrap();
    assert_eq!(found.warnings.len(), 9, "{:?}", found.warnings);
    assert!(
        last.starts_with(".link: the type `Link` contains itself, and is cut at 2 further"),
        "{last}"
    );
}

#[derive(Serialize, Deserialize, Schema)]
enum Never {}

#[derive(Serialize, Deserialize, Schema)]
struct Impossible {
    never: Never,
}

#[test]
fn a_field_of_an_enum_without_variants_is_an_error_that_says_so() {
    let error = crate::crd::structural_schema::<Impossible>().unwrap_err().to_string();
    let expected = ".never: its schema allows no value at all; give the field another type";
    assert!(error.contains(expected), "{error}");
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: u8,
}

#[derive(Serialize, Deserialize, Schema)]
struct Keeps {
    #[schema(preserve)]
    strict: Strict,
}

#[test]
fn fields_that_are_kept_where_serde_refuses_them_are_warned_of() {
    let found = crate::crd::structural_schema::<Keeps>().unwrap();
    assert_eq!(
        found.warnings,
        [
            ".strict: an API server keeps fields that the type does not list (`preserve`), and serde refuses them \
             (`deny_unknown_fields`); remove one of the two"
        ]
    );
}
