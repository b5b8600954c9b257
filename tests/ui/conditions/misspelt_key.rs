//! A misspelt role.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied), stalled_if(Invalid)))]
enum WebsiteCondition {
    Applied,
    Invalid,
}

fn main() {}
