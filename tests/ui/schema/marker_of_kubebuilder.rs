use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    /// The number of pods.
    ///
    ///  +kubebuilder:validation:Minimum=1
    pub field: i32,
}

fn main() {}
