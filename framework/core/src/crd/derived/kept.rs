//! Schemas of the keys `opaque`, `embedded` and `int_or_string`, which replace that of the field's
//! type.

use schemars::{Schema, SchemaGenerator, json_schema};

pub use crate::crd::shapes::{embedded_object as embedded, int_or_string, object as opaque};

macro_rules! containers {
    ($($of:ident: $list:ident, $map:ident;)*) => {$(
        /// A list of them, replaced as a whole by server-side apply.
        pub fn $list(generator: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "type": "array",
                "items": $of(generator),
                "x-kubernetes-list-type": "atomic"
            })
        }

        /// A map to them.
        pub fn $map(generator: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "object", "additionalProperties": $of(generator) })
        }
    )*};
}

containers! {
    opaque: opaque_list, opaque_map;
    embedded: embedded_list, embedded_map;
    int_or_string: int_or_string_list, int_or_string_map;
}
