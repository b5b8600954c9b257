//! The conditions are an enum.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied)))]
struct WebsiteCondition {
    applied: bool,
}

fn main() {}
