use windlass::webhook::Webhooks;

struct Rules;

fn main() {
    let _ = Webhooks::new().validating(Rules);
}
