//! An enum has no fields to leave out.

use windlass::ApplyConfiguration;

#[derive(ApplyConfiguration)]
enum Mode {
    Fast,
}

fn main() {
    let _ = Mode::Fast;
}
