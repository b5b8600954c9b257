//! `Ready` is computed.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied)))]
enum WebsiteCondition {
    Applied,
    Ready,
}

fn main() {}
