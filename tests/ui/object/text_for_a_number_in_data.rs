//! A text for a number in the `data` of a type of the user's own that is called `Secret`.

use std::collections::BTreeMap;

use windlass::object;

#[derive(Default)]
struct Secret {
    data: BTreeMap<String, i32>,
}

fn main() {
    let _ = object!(Secret { data: { "retries": "3" } }).data;
}
