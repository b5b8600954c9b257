//! Functions for the root struct of `#[derive(CustomResource)]`: fields that may be absent, and
//! constants that are checked by the compiler.

// DESIGN.md, 217: A type without derives in a kind is one error of the compiler

use serde::de::{Error as _, MapAccess};

use super::status::{self, Missing};
use super::{IndexField, Readable, Written, read};
use crate::resource::path::{TypeOf, Walk};

// Whether a field may be absent is asked of the field's type, not of the spelling: an alias of
// `Option` is an `Option`. The methods of `TypeOf<Option<T>>` come before those of the trait, which
// has all types.

impl<T> TypeOf<Option<T>> {
    /// The value of an absent field.
    pub fn absent(&self) -> Option<Option<T>> {
        Some(None)
    }

    /// Whether the field may be absent.
    pub fn is_optional(&self) -> bool {
        true
    }

    /// Whether the value is left out.
    pub fn is_left_out(&self, value: &Option<T>) -> bool {
        value.is_none()
    }
}

/// Types of fields that are always there.
pub trait AlwaysThere<T> {
    /// An absent field is an error.
    fn absent(&self) -> Option<T> {
        None
    }

    /// Whether the field may be absent.
    fn is_optional(&self) -> bool {
        false
    }

    /// Whether the value is left out.
    fn is_left_out(&self, _: &T) -> bool {
        false
    }
}

impl<T> AlwaysThere<T> for TypeOf<T> {}

// A type that is not `Serialize` has an error of its own, and a second one, that it is not
// `Deserialize` either, would say the same: the bound holds for types that are written alone.

impl<T: serde::Serialize> TypeOf<T> {
    /// Reads the value of a field.
    ///
    /// # Errors
    /// Those of the deserializer; a duplicate field.
    pub fn read_field<'de, A: MapAccess<'de>>(
        &self,
        map: &mut A,
        name: &'static str,
        into: &mut Option<T>,
    ) -> Result<(), A::Error>
    where
        T: Readable<'de>,
    {
        read(map, name, into)
    }

    /// Reads the status with any of the fields absent.
    ///
    /// # Errors
    /// Those of the deserializer; a duplicate field.
    pub fn read_status<'de, A: MapAccess<'de>>(
        &self,
        map: &mut A,
        name: &'static str,
        into: &mut Option<Option<T>>,
        missing: &'static [Missing],
    ) -> Result<(), A::Error>
    where
        T: Readable<'de>,
    {
        status::read_status(map, name, into, missing)
    }
}

impl<T: serde::Serialize + serde::de::DeserializeOwned> TypeOf<T> {
    /// Checks that an empty status can be read.
    ///
    /// # Errors
    /// The reason that serde reports.
    pub fn reads_in_part(&self, missing: &'static [Missing]) -> Result<(), String> {
        status::reads_in_part::<T>(missing)
    }
}

/// Types that serde does not write: the write of the field does not compile.
pub trait NeverWritten<T> {
    /// Never called.
    ///
    /// # Errors
    /// Always.
    fn read_field<'de, A: MapAccess<'de>>(
        &self,
        _: &mut A,
        name: &'static str,
        _: &mut Option<T>,
    ) -> Result<(), A::Error> {
        Err(A::Error::missing_field(name))
    }

    /// Never called.
    ///
    /// # Errors
    /// Always.
    fn read_status<'de, A: MapAccess<'de>>(
        &self,
        _: &mut A,
        name: &'static str,
        _: &mut Option<Option<T>>,
        _: &'static [Missing],
    ) -> Result<(), A::Error> {
        Err(A::Error::missing_field(name))
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    fn reads_in_part(&self, _: &'static [Missing]) -> Result<(), String> {
        Ok(())
    }
}

impl<T> NeverWritten<T> for TypeOf<T> {}

/// [`Default`], with an error text of this crate for the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `Default`, which `#[serde(default)]` takes",
    label = "the value of an absent field is unknown",
    note = "derive `Default` for `{Self}`, or name a function: `#[serde(default = \"function\")]`"
)]
pub trait AbsentValue {
    /// Returns the value of an absent field.
    fn absent_value() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> AbsentValue for T {
    fn absent_value() -> Self {
        T::default()
    }
}

/// Returns the value of an absent field.
pub fn default_of<T: AbsentValue>() -> T {
    T::absent_value()
}

/// Writes a field, unless it is left out.
///
/// # Errors
/// Those of the serializer.
pub fn write_unless<S: serde::ser::SerializeStruct, T: Written>(
    is_left_out: bool,
    out: &mut S,
    name: &'static str,
    value: &T,
) -> Result<(), S::Error> {
    if is_left_out { out.skip_field(name) } else { out.serialize_field(name, value) }
}

/// Returns the value of a field, or the default of an absent field.
///
/// # Errors
/// The field is absent, and may not be.
pub fn required_or<T, E: serde::de::Error>(
    value: Option<T>,
    absent: Option<T>,
    name: &'static str,
) -> Result<T, E> {
    value.or(absent).ok_or_else(|| E::missing_field(name))
}

/// Returns the values of an index that a walk has found.
pub fn index_values<T: IndexField<V>, V>(walk: Walk<'_, T>) -> Vec<V> {
    let mut values = Vec::new();
    walk.for_each(|value| {
        let more = value.index_values();
        if values.is_empty() {
            values = more;
        } else {
            values.extend(more);
        }
    });
    values
}

/// Length of `group/version`.
pub const fn api_version_length(group: &str, version: &str) -> usize {
    group.len() + 1 + version.len()
}

/// The bytes of `group/version`.
pub const fn api_version_bytes<const N: usize>(group: &str, version: &str) -> [u8; N] {
    let (group, version) = (group.as_bytes(), version.as_bytes());
    let mut bytes = [b'/'; N];
    let mut at = 0;
    while at < group.len() {
        bytes[at] = group[at];
        at += 1;
    }
    let mut at = 0;
    while at < version.len() {
        bytes[group.len() + 1 + at] = version[at];
        at += 1;
    }
    bytes
}

/// The text of `group/version`.
pub const fn api_version_text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The pieces are texts, and so is their concatenation.
        Err(_) => "",
    }
}

/// Checks a group that is a constant: a domain in lower case, with a dot, that is not of the
/// Kubernetes project.
pub const fn check_group(group: &str) {
    let bytes = group.as_bytes();
    let mut has_dot = false;
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        let is_word = c.is_ascii_lowercase() || c.is_ascii_digit();
        // A dot or a dash stands between letters.
        let is_between = at > 0 && at + 1 < bytes.len() && bytes[at - 1] != b'.';
        assert!(
            is_word || (is_between && (c == b'-' || bytes[at - 1] != b'-')),
            "the constant is not an API group: use a domain that you own, in lower case, such as `example.dev`"
        );
        has_dot = has_dot || c == b'.';
        at += 1;
    }
    assert!(
        has_dot && bytes.len() <= 253,
        "the constant is not an API group: a domain has at least one dot, such as `example.dev`"
    );
}

/// Checks a version that is a constant: lower-case letters, digits and dashes.
pub const fn check_version(version: &str) {
    let bytes = version.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        let is_word = c.is_ascii_lowercase() || (at > 0 && c.is_ascii_digit());
        assert!(
            is_word || (at > 0 && at + 1 < bytes.len() && c == b'-'),
            "the constant is not a version: use lower-case letters, digits and `-`, such as `v1alpha1`"
        );
        at += 1;
    }
    assert!(
        !bytes.is_empty() && bytes.len() <= 63,
        "the constant is not a version: 1 to 63 letters"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_is_joined_by_the_compiler() {
        const GROUP: &str = "example.dev";
        const BYTES: [u8; api_version_length(GROUP, "v1")] = api_version_bytes(GROUP, "v1");
        assert_eq!(api_version_text(&BYTES), "example.dev/v1");
    }

    #[test]
    fn groups_and_versions_follow_the_api_server() {
        let accepts = |check: fn(&str), text: &'static str| {
            std::panic::catch_unwind(move || check(text)).is_ok()
        };
        for (group, fits) in [
            ("example.dev", true),
            ("1.a-b.c", true),
            ("example", false),
            ("Example.dev", false),
            ("a..b", false),
            ("a-.b", false),
            (".a", false),
            ("", false),
        ] {
            assert_eq!(accepts(check_group, group), fits, "{group}");
        }
        for (version, fits) in
            [("v1", true), ("v1-a", true), ("1v", false), ("V1", false), ("", false)]
        {
            assert_eq!(accepts(check_version, version), fits, "{version}");
        }
    }
}
