//! Names of a type's fields in Rust and in JSON, for code that the macros generate.

/// A field of a struct, as written in Rust and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// Identifier in Rust, without `r#`.
    pub rust: &'static str,
    /// Name in JSON, after serde's `rename` and `rename_all`.
    pub json: &'static str,
    /// Whether serde flattens the field: the inner fields then stand beside the others.
    pub flattened: bool,
}

/// A struct whose field names are known without decoding anything; implemented by
/// `#[derive(Schema)]`.
pub trait FieldNames {
    /// The fields in the order of their declaration, without skipped fields.
    const FIELDS: &'static [FieldName];
}
