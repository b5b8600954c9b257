use std::collections::BTreeMap;

use windlass::object;

#[derive(Default)]
pub struct Plan {
    pub resources: BTreeMap<String, String>,
}

fn main() {
    let _ = object!(Plan { resources: { limits: "1" } });
}
