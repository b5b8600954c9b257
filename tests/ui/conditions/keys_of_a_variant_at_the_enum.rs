//! `#[condition("…")]` stands at a variant.

use windlass::conditions::ConditionType;
use windlass::Conditions;

#[derive(Conditions)]
#[condition("SiteApplied")]
#[conditions(ready(all(Applied)))]
enum WebsiteCondition {
    Applied,
}

fn main() {
    println!("{}", WebsiteCondition::Applied.as_str());
}
