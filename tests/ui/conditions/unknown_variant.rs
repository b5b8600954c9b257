//! A misspelt variant.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Aplied)))]
enum WebsiteCondition {
    Applied,
}

fn main() {}
