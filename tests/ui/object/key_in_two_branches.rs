//! Two keys of a map that are one name in Rust, in two branches.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::object;

fn main() {
    let short = true;
    let _ = object!(ConfigMap { data: { if short { fooBar: "1" } else { foo_bar: "2" } } });
}
