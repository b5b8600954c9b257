//! Faults of the embedded server, for tests: requests that fail, hang, or come late, and watches
//! that stand still.
//!
//! The types are those of the server's crate, which a test need not depend on.
//! [`TestCluster::server`] has the further levers: `compact()`, `backup()` and `restore()`.
//!
//! ```no_run
//! # extern crate windlass_testing as windlass;
//! use windlass::testing::TestCluster;
//! use windlass::testing::faults::{Fault, FaultAction};
//!
//! # async fn example() {
//! let cluster = TestCluster::builder().embedded().start().await;
//! let faults = cluster.server().faults();
//! // The second creation of a ConfigMap is executed, and its answer is lost.
//! let lost = faults.add(Fault::new(FaultAction::ExecuteThenDrop).on("create").resource("configmaps").after(1));
//! faults.lag_watches("configmaps", std::time::Duration::from_secs(10));
//! // The operator runs here.
//! assert_eq!(lost.hits(), 1);
//! # }
//! ```
//!
//! [`TestCluster::server`]: super::TestCluster::server

pub use windlass_apiserver::faults::{Fault, FaultAction, FaultHandle, Faults};

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::testing::TestCluster;

    #[tokio::test]
    async fn a_fault_strikes_the_requests_that_it_names() {
        let cluster = TestCluster::builder().embedded().start().await;
        let refused =
            Fault::new(FaultAction::Answer(422)).on("create").resource("configmaps").after(1);
        let refused = cluster.server().faults().add(refused);
        let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
        for name in ["a", "b", "c"] {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(name.to_owned());
            let code = maps.create(&map).await.err().and_then(|error| error.code());
            assert_eq!(code, (name == "b").then_some(422));
        }
        assert_eq!(refused.hits(), 1);
    }
}
