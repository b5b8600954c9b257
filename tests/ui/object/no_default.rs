//! A nested type without a default.

use windlass::object;

#[derive(Default)]
struct Site {
    spec: Option<Spec>,
}

struct Spec {
    host: String,
}

fn main() {
    let site = object!(Site { spec: { host: "a" } });
    let _ = site.spec.map(|spec| spec.host);
}
