use windlass::path;

fn main() {
    let _ = path!(spec.node_name);
}
