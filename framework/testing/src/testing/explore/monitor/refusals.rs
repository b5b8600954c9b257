//! Refusals of the first attempts of every write.

use std::collections::BTreeMap;

use super::recording::OperatorRequest;

/// The verb of a write, its resource and sub-resource, and the namespace and name of its object.
type RefusedTarget = [String; 5];

/// The attempts that are still refused.
#[derive(Debug)]
pub(super) struct Refusals {
    /// Number of refused attempts of each target.
    of_each: usize,
    tried: BTreeMap<RefusedTarget, usize>,
}

impl Refusals {
    pub(super) fn new(of_each: usize) -> Self {
        Self { of_each, tried: BTreeMap::new() }
    }

    /// Whether a request is refused. Later writes of a target that has succeeded once are not.
    pub(super) fn is_due(&mut self, request: &OperatorRequest) -> bool {
        if self.of_each == 0 || !request.is_write() || !request.is_disturbed() {
            return false;
        }
        let OperatorRequest { verb, resource, subresource, namespace, name, .. } = request;
        let target = [verb, resource, subresource, namespace, name].map(Clone::clone);
        let tried = self.tried.entry(target).or_default();
        *tried += 1;
        *tried <= self.of_each
    }
}
