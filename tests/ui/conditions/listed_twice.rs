//! A variant has one role.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied, Invalid), stalled_on(Invalid)))]
enum WebsiteCondition {
    Applied,
    Invalid,
}

fn main() {}
