//! Schemas of types in unusual places and under unusual names.

use serde::{Deserialize, Serialize};
use windlass::Schema;
use windlass::crd::structural_schema;

/// The framework under another name.
mod facade {
    pub use windlass as operator;
}

mod shadowed {
    #![allow(non_upper_case_globals)]

    use serde::{Deserialize, Serialize};

    pub struct String;
    pub struct Vec;
    pub struct Fields;
    pub struct Schema;
    pub const host: i32 = 1;

    /// A spec.
    #[derive(Clone, Debug, Serialize, Deserialize, windlass::Schema)]
    #[schema(crate = crate::schema::facade::operator)]
    pub struct Spec {
        pub host: ::std::string::String,
        pub fields: ::std::vec::Vec<i32>,
        #[schema(default = 3)]
        pub r#type: i32,
    }
}

macro_rules! spec {
    ($name:ident, $ty:ty, $pattern:literal) => {
        #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
        pub struct $name {
            #[schema(pattern = $pattern)]
            pub field: $ty,
            pub list: Vec<$ty>,
        }
    };
}

spec!(FromMacro, Option<String>, "^a");

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Generic<T>
where
    T: Clone,
{
    pub value: T,
    pub list: Option<Vec<T>>,
}

/// Fields that are words of Rust, named in keys with and without `r#`.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_of(r#in, type))]
#[schema(rule("!has(self.type) || self.type != 'x'", path = r#type))]
pub struct Words {
    pub r#in: Option<String>,
    pub r#type: Option<String>,
    #[schema(list(map, keys(type, r#match)))]
    pub items: Vec<Word>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Word {
    pub r#type: String,
    pub r#match: String,
}

pub fn main() -> Result<(), windlass::Error> {
    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    struct Local {
        #[cfg(any())]
        absent: Missing,
        inner: shadowed::Spec,
        generic: Generic<FromMacro>,
    }

    let schema = structural_schema::<Local>()?.schema;
    let properties = &schema["properties"];
    assert_eq!(properties["inner"]["required"], serde_json::json!(["host", "fields"]));
    assert_eq!(
        properties["generic"]["properties"]["value"]["properties"]["field"]["pattern"],
        "^a"
    );
    assert!(properties["absent"].is_null());

    let words = structural_schema::<Words>()?.schema;
    let rules = words["x-kubernetes-validations"].to_string();
    assert!(rules.contains("[in type]") && rules.contains(r#""fieldPath":".type""#), "{rules}");
    let keys = &words["properties"]["items"]["x-kubernetes-list-map-keys"];
    assert_eq!(*keys, serde_json::json!(["type", "match"]));
    Ok(())
}
