//! The list of everything that a set of crates exports, read from their sources.
//!
//! rustdoc prints the same by a nightly compiler only. Names are resolved through `use`, globs and
//! modules of the crates given; traits implemented for a type are not listed. Items of every
//! feature are listed, those of `#[cfg(test)]` and `#[doc(hidden)]` are not. For an item that a
//! macro call makes, the list has the name without the kind.

mod list;
mod modules;
mod names;
mod workspace;

pub use list::Listing;
pub use workspace::published_crates;

use std::path::PathBuf;

/// A crate to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrateSource {
    /// Name in paths, such as `windlass_macros`.
    pub name: String,
    /// Path of `lib.rs`.
    pub root: PathBuf,
}

/// Returns the public items of these crates.
///
/// # Errors
/// A file that cannot be read or parsed, by path.
pub fn public_items(crates: &[CrateSource]) -> Result<Listing, String> {
    let forest = modules::Forest::read(crates)?;
    Ok(list::listing(&forest))
}
