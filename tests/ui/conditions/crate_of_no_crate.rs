use windlass::Conditions;

#[derive(Conditions, Clone, Copy, Debug)]
#[conditions(ready(all(Serving)), crate = nonexistent)]
pub enum WebsiteCondition {
    Serving,
}

fn main() {}
