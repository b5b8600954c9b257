//! A text that was computed, for bytes.

use k8s_openapi::api::core::v1::Secret;
use windlass::object;

fn main() {
    let token = String::from("pass");
    let _ = object!(Secret { data: { "token": token } });
}
