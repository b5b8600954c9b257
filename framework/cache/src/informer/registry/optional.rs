//! Kinds that an operator can do without.

use windlass_core::resource::ResourceInfo;

use super::{InformerRegistry, RegisteredInformer};

impl InformerRegistry {
    /// Makes the cache of a kind optional, beside the other options. Has no effect on a cache in
    /// use: the user cannot do without that cache.
    ///
    /// Listeners that come later wait for the first list nevertheless, unless they are
    /// [dispensable](crate::informer::Registration::dispensable): other controllers may share the
    /// cache.
    #[doc(hidden)]
    pub fn prefer_optional(&self, info: ResourceInfo) {
        let mut informers = self.inner.informers.lock();
        let options = informers.options.get(&info).cloned().unwrap_or_default();
        let is_used = |one: &RegisteredInformer| {
            one.info == info && one.options == options && one.users.strong_count() > 0
        };
        if !options.is_optional && !informers.registered.iter().any(is_used) {
            informers.preferred_optional.insert(info.clone());
            informers.options.insert(info, options.optional());
        }
    }
}
