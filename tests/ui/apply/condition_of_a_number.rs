//! The type of a condition is a text or an enum.

use windlass::conditions::met;

fn main() {
    let _ = met(5, "Serving", "");
}
