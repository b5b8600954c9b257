//! Conversion of objects into the forms in which their kinds are kept.
//!
//! Settings ([`StoreSettings`], [`Representation`], [`Transform`]), and the encoder that follows
//! them.

// DESIGN.md, 58: Types are not asked which fields they read

#[cfg(feature = "cold")]
mod compressor;
mod encoder;
mod fields;
mod projected;
mod representation;
mod settings;
mod transform;

pub(in crate::store) use encoder::Encoder;
pub use representation::Representation;
pub use settings::StoreSettings;
pub use transform::Transform;
