//! Two variants of one name.

use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied, Also)))]
enum WebsiteCondition {
    Applied,
    #[condition("Applied")]
    Also,
}

fn main() {}
