//! Types of conditions are names.

use windlass::ConditionType;

#[derive(ConditionType)]
enum WebsiteCondition {
    Ready,
    Failed(String),
    #[condition("no domain/Reachable")]
    Reachable,
}

fn main() {}
