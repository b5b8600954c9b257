//! Selection of the objects that an informer reads, and the sources.

use std::sync::Arc;

use crate::informer::CacheOptions;
use crate::reflector::{ApiSource, ListWatch};
use crate::store::Representation;
use windlass_client::client::Client;
use windlass_core::resource::ResourceInfo;

/// The objects that an informer reads.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// The kind.
    pub info: &'a ResourceInfo,
    /// A single namespace, or all.
    pub namespace: Option<&'a str>,
    /// Labels and fields, the form in which objects are cached, the longest frame.
    pub options: &'a CacheOptions,
}

impl Selection<'_> {
    /// Returns the selector of labels, if there is any.
    pub fn labels(&self) -> Option<&str> {
        self.options.labels.as_deref()
    }

    /// Returns the selector of fields, if there is any.
    pub fn fields(&self) -> Option<&str> {
        self.options.fields.as_deref()
    }

    /// Returns whether only metadata is cached, so that nothing else needs to be read.
    pub fn is_metadata_only(&self) -> bool {
        self.options.representation == Representation::Metadata && self.options.transform.is_none()
    }
}

/// Creates the source of a selection.
pub type Sources = Box<dyn Fn(Selection<'_>) -> Arc<dyn ListWatch> + Send + Sync>;

/// Sources that read from an API server.
pub(in crate::informer) fn api_sources(client: Client) -> Sources {
    Box::new(move |wanted| {
        let source = ApiSource::new(client.clone(), wanted.info.clone());
        let source = source.namespace(wanted.namespace);
        let source = source.labels(wanted.labels()).fields(wanted.fields());
        Arc::new(source.metadata_only(wanted.is_metadata_only()))
    })
}
