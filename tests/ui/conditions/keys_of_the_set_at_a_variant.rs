//! The type of a condition stands in `#[condition("…")]`.

use windlass::conditions::ConditionType;
use windlass::Conditions;

#[derive(Conditions)]
#[conditions(ready(all(Applied)))]
enum WebsiteCondition {
    #[conditions("SiteApplied")]
    Applied,
}

fn main() {
    println!("{}", WebsiteCondition::Applied.as_str());
}
