//! Names of a type's fields in Rust and in JSON, for code that the macros generate.

/// One field of a struct, as it is written in Rust and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// Identifier in Rust, without `r#`.
    pub rust: &'static str,
    /// Name in JSON, after serde's `rename` and `rename_all`.
    pub json: &'static str,
    /// Whether serde flattens the field: its own fields then stand beside it.
    pub flattened: bool,
}

/// A struct whose field names are known without decoding anything; implemented by
/// `#[derive(Schema)]`.
pub trait FieldNames {
    /// The fields in the order of their declaration, without skipped ones.
    const FIELDS: &'static [FieldName];
}
