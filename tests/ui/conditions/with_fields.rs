//! Types of conditions are names.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied)))]
enum WebsiteCondition {
    Applied(String),
}

fn main() {}
