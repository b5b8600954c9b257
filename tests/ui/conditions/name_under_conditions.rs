use windlass::Conditions;

#[derive(Clone, Copy, Debug, Conditions)]
#[conditions(ready(all(Applied)))]
pub enum SiteCondition {
    #[conditions("example.dev/Applied")]
    Applied,
}

fn main() {}
