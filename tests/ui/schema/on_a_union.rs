use windlass::Schema;

#[derive(Schema)]
pub union Spec {
    pub a: i32,
    pub b: u32,
}

fn main() {}
