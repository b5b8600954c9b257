use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub routes: BTreeMap<String, Vec<Route>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Route {
    pub port: i32,
}

fn main() {}
