//! A type without fields.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _: Pod = object!(Pod);
}
