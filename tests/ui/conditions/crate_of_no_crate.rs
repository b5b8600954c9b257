use windlass::Conditions;

#[derive(Conditions, Clone, Copy, Debug)]
#[conditions(crate = nonexistent)]
pub enum WebsiteCondition {
    Serving,
}

fn main() {}
