//! A literal without its type.

use windlass::object;

fn main() {
    let _ = object!({ metadata: { name: "a" } });
}
