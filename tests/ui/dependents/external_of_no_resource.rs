use windlass::external::{External, Externals};

struct Databases;

struct Maps<E: External> {
    databases: Externals<E>,
}

fn maps(databases: Externals<Databases>) {
    let _ = Maps { databases };
}

fn main() {}
