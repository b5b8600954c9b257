//! Configurations of webhooks: which requests API servers ask about, and where.
//!
//! Files: `registration` has the keys of one webhook, `objects` makes the objects of all.

// DESIGN.md, 202: Configurations are made from the handlers, and fail closed for own kinds only

mod objects;
mod registration;

pub use self::objects::{ConfigurationOptions, Configurations};
pub(crate) use self::objects::{configurations, hash, is_dns_label, namespaces};
pub(crate) use self::registration::Registered;
pub use self::registration::{FailurePolicy, WebhookRegistration};
