//! Nothing says when an object is ready.

use windlass::Conditions;

#[derive(Conditions)]
enum WebsiteCondition {
    Applied,
    Available,
}

fn main() {}
