use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, Schema};

type Maybe<T> = Option<T>;

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
pub struct Spec {
    pub host: Maybe<String>,
}

fn main() {
    let _ = SpecApply::new().host(3);
}
