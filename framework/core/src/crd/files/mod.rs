//! Definitions as texts: read from YAML, and cut down for tools that limit their size.

mod descriptions;
mod read;

pub use descriptions::{cut_descriptions, json_size};
pub use read::definitions_from_yaml;

/// Largest size in bytes of a definition that `kubectl apply` can apply without `--server-side`:
/// `kubectl` copies the object into an annotation, and annotations have 256 KiB.
pub const APPLY_LIMIT: usize = 256 * 1024;

#[cfg(test)]
mod tests;
