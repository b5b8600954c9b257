//! Conversion of objects into the forms in which their kinds are kept.
//!
//! Settings ([`StoreSettings`], [`Representation`], [`Transform`]), and the encoder that follows them.

// DESIGN.md, 58: Types are not asked which fields they read

#[cfg(feature = "cold")]
mod compressor;
mod encoder;
mod fields;
mod mode;
mod projected;
mod representation;
mod transform;

pub(in crate::store) use encoder::Encoder;
pub use mode::StoreSettings;
pub use representation::Representation;
pub use transform::Transform;
