use windlass::path;

fn main() {
    let _ = path!(Pot: spec.node_name);
}
