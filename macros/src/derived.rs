//! Derives of serde below one that implements its traits, which would be second impls.

// DESIGN.md, 292: Serde's derives in the attribute of the derive are two errors of the compiler

use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::{Attribute, Path, Token};

use crate::errors::Errors;

/// The impls that other derives generate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Derived {
    pub(crate) serialize: bool,
    pub(crate) deserialize: bool,
}

impl Derived {
    /// Reads the attributes `#[derive(…)]` that follow. The compiler shows a macro no derives that
    /// stand in its own attribute or above: it reports a second impl at them.
    pub(crate) fn read(attributes: &[Attribute], message: &str, errors: &mut Errors) -> Self {
        let mut derived = Self::default();
        let mut first: Option<Ident> = None;
        for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
            let paths = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
            for name in paths.into_iter().flatten().filter_map(|path| of_serde(&path)) {
                match name == "Serialize" {
                    true => derived.serialize = true,
                    false => derived.deserialize = true,
                }
                first.get_or_insert(name);
            }
        }
        if let Some(name) = first {
            errors.at(name.span(), message);
        }
        derived
    }
}

/// Returns the name of a derive of serde.
fn of_serde(path: &Path) -> Option<Ident> {
    let crates = path.segments.iter().rev().skip(1);
    let is_serde =
        crates.clone().count() < 2 && crates.last().is_none_or(|segment| segment.ident == "serde");
    let name = &path.segments.last()?.ident;
    (is_serde && (name == "Serialize" || name == "Deserialize")).then(|| name.clone())
}
