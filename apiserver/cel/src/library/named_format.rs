//! Kubernetes' named formats of texts: the checks of names and labels of apimachinery, and those of
//! `strfmt`.

use super::timestamp::Timestamp;
use super::url::Url;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Longest label, label value and name of a qualified name, in bytes.
const MAX_LABEL: usize = 63;
/// Longest subdomain, in bytes.
const MAX_SUBDOMAIN: usize = 253;

/// A format that `format.named` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFormat {
    /// `dns1123Label`
    Dns1123Label,
    /// `dns1123Subdomain`
    Dns1123Subdomain,
    /// `dns1035Label`
    Dns1035Label,
    /// `qualifiedName`
    QualifiedName,
    /// `dns1123LabelPrefix`
    Dns1123LabelPrefix,
    /// `dns1123SubdomainPrefix`
    Dns1123SubdomainPrefix,
    /// `dns1035LabelPrefix`
    Dns1035LabelPrefix,
    /// `labelValue`
    LabelValue,
    /// `uri`
    Uri,
    /// `uuid`
    Uuid,
    /// `byte`
    Byte,
    /// `date`
    Date,
    /// `datetime`
    DateTime,
}

impl NamedFormat {
    /// The format with this name.
    pub fn by_name(name: &str) -> Option<NamedFormat> {
        Some(match name {
            "dns1123Label" => NamedFormat::Dns1123Label,
            "dns1123Subdomain" => NamedFormat::Dns1123Subdomain,
            "dns1035Label" => NamedFormat::Dns1035Label,
            "qualifiedName" => NamedFormat::QualifiedName,
            "dns1123LabelPrefix" => NamedFormat::Dns1123LabelPrefix,
            "dns1123SubdomainPrefix" => NamedFormat::Dns1123SubdomainPrefix,
            "dns1035LabelPrefix" => NamedFormat::Dns1035LabelPrefix,
            "labelValue" => NamedFormat::LabelValue,
            "uri" => NamedFormat::Uri,
            "uuid" => NamedFormat::Uuid,
            "byte" => NamedFormat::Byte,
            "date" => NamedFormat::Date,
            "datetime" => NamedFormat::DateTime,
            _ => return None,
        })
    }

    /// Length of the regular expression that the cost of a check counts.
    pub fn regex_size(self) -> u64 {
        match self {
            NamedFormat::Dns1123Label
            | NamedFormat::Dns1035Label
            | NamedFormat::Dns1123LabelPrefix
            | NamedFormat::Dns1035LabelPrefix => 30,
            NamedFormat::Dns1123Subdomain
            | NamedFormat::QualifiedName
            | NamedFormat::Dns1123SubdomainPrefix => 60,
            NamedFormat::LabelValue => 40,
            NamedFormat::Uri => 1103,
            NamedFormat::Uuid => 70,
            NamedFormat::Byte => 84,
            NamedFormat::Date | NamedFormat::DateTime => 71,
        }
    }

    /// The errors of a text; none if it has the format.
    pub fn validate(self, text: &str) -> Vec<String> {
        match self {
            NamedFormat::Dns1123Label => dns1123_label(text),
            NamedFormat::Dns1123Subdomain => subdomain(text, "characters"),
            NamedFormat::Dns1035Label => dns1035_label(text),
            NamedFormat::QualifiedName => qualified_name(text),
            NamedFormat::Dns1123LabelPrefix => dns1123_label(&masked(text)),
            NamedFormat::Dns1123SubdomainPrefix => subdomain(&masked(text), "characters"),
            NamedFormat::Dns1035LabelPrefix => dns1035_label(&masked(text)),
            NamedFormat::LabelValue => label_value(text),
            NamedFormat::Uri => Url::check(text).err().into_iter().collect(),
            NamedFormat::Uuid => refused(is_uuid(text), "does not match the UUID format"),
            NamedFormat::Byte => refused(is_base64(text), "invalid base64"),
            NamedFormat::Date => refused(is_date(text), "invalid date"),
            NamedFormat::DateTime => refused(is_date_time(text), "invalid datetime"),
        }
    }
}

fn refused(is_valid: bool, message: &str) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![message.to_owned()] }
}

/// A prefix of a generated name as apimachinery checks it. A dash at its end may be followed by
/// more; the server takes the character before the dash away, too, whatever it is, and puts an `a`
/// in the place of both.
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let end = rest.len() - 1;
            let boundary =
                (0..=end).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or_default();
            // The rest of a character whose last byte is taken away fits no format, and keeps its
            // length.
            let remains = "!".repeat(end - boundary);
            format!("{}{remains}a", rest.get(..boundary).unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

fn too_long(max: usize, unit: &str) -> String {
    format!("must be no more than {max} {unit}")
}

fn mismatch(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    let examples = examples.join(" or ");
    format!("{message} (e.g. {examples}regex used for validation is '{pattern}')")
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether a text is not empty, begins and ends as `is_end` says, and has dashes besides.
fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| is_lower_alphanumeric(*byte));
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_LABEL {
        errors.push(too_long(MAX_LABEL, "characters"));
    }
    if is_label(text) {
        return errors;
    }
    errors.push(if text.split('.').all(is_label) {
        "must not contain dots".to_owned()
    } else {
        let message = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                       start and end with an alphanumeric character";
        mismatch(message, LABEL, &["my-name", "123-abc"])
    });
    errors
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_SUBDOMAIN {
        errors.push(too_long(MAX_SUBDOMAIN, unit));
    }
    if !text.split('.').all(is_label) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                       and must start and end with an alphanumeric character";
        errors.push(mismatch(message, SUBDOMAIN, &["example.com"]));
    }
    errors
}

fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_LABEL {
        errors.push(too_long(MAX_LABEL, "characters"));
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        let message = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                       alphabetic character, and end with an alphanumeric character";
        errors.push(mismatch(message, LABEL_1035, &["my-name", "abc-123"]));
    }
    errors
}

fn is_label_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn qualified_name(text: &str) -> Vec<String> {
    const MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    let pattern = |message: &str| mismatch(message, LABEL_KEY, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let of_prefix = subdomain(prefix, "bytes");
                errors.extend(of_prefix.into_iter().map(|error| format!("prefix part {error}")));
            }
            name
        }
        _ => {
            let text = pattern(MESSAGE);
            let more = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {text} {more}")];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL {
        errors.push(format!("name part {}", too_long(MAX_LABEL, "bytes")));
    }
    if !is_label_key(name) {
        errors.push(format!("name part {}", pattern(MESSAGE)));
    }
    errors
}

fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_LABEL {
        errors.push(too_long(MAX_LABEL, "bytes"));
    }
    if !text.is_empty() && !is_label_key(text) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                       and must start and end with an alphanumeric character";
        errors.push(mismatch(message, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// A UUID of any version; each dash may be left out.
fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else { return false };
        if !part.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// Base64 in the standard alphabet with padding and without line breaks; not the empty text.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

fn is_date(text: &str) -> bool {
    Timestamp::parse_schema_date(text).is_ok()
}

/// A date, a `t` in either case, and a time; the text behind another `t` is not looked at.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut parts = text.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time(time),
        _ => false,
    }
}

/// `hh:mm:ss`, a fraction behind any character, and a zone.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let bounds = [(0, "23"), (3, "59"), (6, "59")];
    let is_clock = is_pattern(clock, "00:00:00")
        && bounds.iter().all(|(at, max)| clock.get(*at..at + 2).is_some_and(|part| part <= *max));
    let mut chars = rest.chars();
    let has_mark = chars.next().is_some_and(|mark| mark != '\n');
    let fraction = chars.as_str();
    let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_fraction = has_mark && after.len() < fraction.len();
    is_clock && (is_zone(rest) || has_fraction && is_zone(after))
}

fn is_zone(text: &str) -> bool {
    text == "z" || is_pattern(text, "+00:00") || is_pattern(text, "-00:00")
}

/// Whether a text has a digit for each 0 of a pattern, and the other characters of the pattern.
fn is_pattern(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_formats_or_not() {
        let cases = [
            ("dns1123Label", "web-1", true),
            ("dns1123Label", "Web", false),
            ("dns1123Subdomain", "a.b-c.d", true),
            ("dns1123Subdomain", "a..b", false),
            ("dns1035Label", "1a", false),
            ("dns1123LabelPrefix", "web-", true),
            ("dns1123LabelPrefix", "web_-", true),
            ("dns1123LabelPrefix", "-", false),
            ("qualifiedName", "example.com/My_name", true),
            ("qualifiedName", "a/b/c", false),
            ("labelValue", "", true),
            ("labelValue", "a-", false),
            ("uri", "https://example.com/a", true),
            ("uri", "a b", false),
            ("uuid", "123E4567e89b-12d3-a456426614174000", true),
            ("uuid", "123e4567-e89b-12d3-a456-42661417400", false),
            ("byte", "aGVsbG8=", true),
            ("byte", "", false),
            ("byte", "a===", false),
            ("date", "2024-02-29", true),
            ("date", "2023-02-29", false),
            ("datetime", "2024-02-29T23:59:59.5Z", true),
            ("datetime", "2024-02-29t23:59:59x5+02:00 x", false),
            ("datetime", "2024-02-29t23:59:59x5+02:00t", true),
            ("datetime", "2024-02-29T24:00:00Z", false),
        ];
        for (name, text, is_valid) in cases {
            let errors = NamedFormat::by_name(name).unwrap().validate(text);
            assert_eq!(errors.is_empty(), is_valid, "{name} {text}: {errors:?}");
        }
    }

    #[test]
    fn lengths_are_characters_or_bytes_as_the_server_says() {
        let long = "a".repeat(64);
        let cases = [
            ("dns1123Label", "must be no more than 63 characters"),
            ("labelValue", "must be no more than 63 bytes"),
            ("qualifiedName", "name part must be no more than 63 bytes"),
        ];
        for (name, expected) in cases {
            assert_eq!(NamedFormat::by_name(name).unwrap().validate(&long), [expected], "{name}");
        }
    }

    #[test]
    fn a_qualified_name_has_a_name_and_at_most_one_prefix() {
        let long = "k".repeat(64);
        for (value, expected) in [
            ("a", &[][..]),
            ("example.com/A.b_c-9", &[]),
            ("", &["name part must be non-empty", "name part must consist"]),
            ("/a", &["prefix part must be non-empty"]),
            ("Example/a", &["prefix part a lowercase RFC 1123 subdomain"]),
            ("a..b/c", &["prefix part a lowercase RFC 1123 subdomain"]),
            ("-a", &["name part must consist"]),
            ("a.", &["name part must consist"]),
            ("a/b/c", &["a valid label key must consist"]),
            (long.as_str(), &["name part must be no more than 63 bytes"]),
        ] {
            let errors = NamedFormat::QualifiedName.validate(value);
            assert_eq!(errors.len(), expected.len(), "{value}: {errors:?}");
            for (error, expected) in errors.iter().zip(expected) {
                assert!(error.starts_with(expected), "{value}: {error}");
            }
        }
    }
}
