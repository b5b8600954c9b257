//! A field whose name in JSON is a word of Rust.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::path;

fn main() {
    let _ = path!(Condition: type);
}
