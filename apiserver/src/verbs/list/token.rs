//! Positions of lists: the tokens with which clients ask for the next page.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::go;
use crate::status::ApiError;

/// Version of the form of tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// Go's decoder, which passes over the bits behind the last byte.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Continue token: the beginning of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContinueToken {
    /// Revision of the list; negative for a list that continues with the present state.
    pub(super) revision: i64,
    /// First key that was not shown yet, without the namespace of the list.
    pub(super) start: String,
}

impl ContinueToken {
    /// Returns the token in upstream's encoding.
    pub(super) fn encode(&self) -> String {
        let text = json!({"v": VERSION, "rv": self.revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(text.to_string())
    }

    /// Reads a token.
    pub(super) fn decode(text: &str) -> Result<Self, ApiError> {
        Self::read(text).map_err(|why| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        })
    }

    /// Reads a token; the error is the end of upstream's text.
    fn read(text: &str) -> Result<Self, String> {
        let bytes = decode_base64(text)
            .map_err(|at| format!(": illegal base64 data at input byte {at}"))?;
        let token: Value = serde_json::from_slice(&bytes)
            .map_err(|why| format!(": {}", go::json_error(&why, &bytes)))?;
        let (version, revision, start) = fields(&token).map_err(|why| format!(": json: {why}"))?;
        if version != VERSION {
            return Err(format!(": server does not recognize this encoded version {version}"));
        }
        if revision == 0 {
            return Err(format!(": incorrect encoded start resourceVersion (version {VERSION})"));
        }
        if start.is_empty() {
            return Err(format!(": encoded start key empty (version {VERSION})"));
        }
        // Keys are paths: one that names another level of the tree is refused.
        let key = start.strip_prefix('/').unwrap_or(start);
        let is_clean = |part: &str| !matches!(part, "" | "." | "..");
        if !key.is_empty() && !key.split('/').all(is_clean) {
            return Err(format!(": {start}"));
        }
        Ok(Self { revision, start: key.to_owned() })
    }
}

/// Returns version, revision and start of a token, or the text of Go's decoder about the first of
/// another type. Null is no value of any field.
fn fields(token: &Value) -> Result<(&str, i64, &str), String> {
    let Value::Object(all) = token else {
        if token.is_null() {
            return Ok(("", 0, ""));
        }
        return Err(format!(
            "cannot unmarshal {} into Go value of type storage.continueToken",
            go_type(token)
        ));
    };
    let (mut version, mut revision, mut start) = ("", 0, "");
    for (name, value) in all.iter().filter(|(_, value)| !value.is_null()) {
        let refuse = |field: &str, wanted: &str| {
            let held = match value {
                Value::Number(number) if wanted == "int64" => format!("number {number}"),
                _ => go_type(value).to_owned(),
            };
            format!(
                "cannot unmarshal {held} into Go struct field continueToken.{field} of type {wanted}"
            )
        };
        match name.to_lowercase().as_str() {
            "v" => version = value.as_str().ok_or_else(|| refuse("v", "string"))?,
            "rv" => revision = value.as_i64().ok_or_else(|| refuse("rv", "int64"))?,
            "start" => start = value.as_str().ok_or_else(|| refuse("start", "string"))?,
            _ => {}
        }
    }
    Ok((version, revision, start))
}

/// Returns the name that Go's decoder has for the type of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Decodes a text as Go does; the error is the position that Go names.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    // The ends of lines are passed over, and count in positions.
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if let Some(at) = text.bytes().position(|byte| !is_letter(byte) && !is_end(&byte)) {
        return Err(at);
    }
    let letters: Vec<u8> = text.bytes().filter(|byte| !is_end(byte)).collect();
    // A single letter behind the last four is no byte.
    LENIENT.decode(letters).map_err(|_| text.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_encoding() {
        let token = ContinueToken { revision: 7, start: "ns/a\0".to_owned() };
        assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
    }

    #[test]
    fn a_token_that_names_another_level_of_the_tree_is_refused() {
        for start in ["../x", "a/../b", ".", "a/", "//a", "a//b"] {
            let bad = ContinueToken { revision: 7, start: start.to_owned() };
            let error = ContinueToken::decode(&bad.encode()).unwrap_err();
            let wanted = format!("invalid continue token: continue key is not valid: {start}");
            assert_eq!((error.code(), error.message()), (400, wanted.as_str()));
        }
        let error = ContinueToken::decode("!!").unwrap_err();
        assert!(error.message().starts_with("invalid continue token: continue key is not valid: "));
    }

    #[test]
    fn tokens_are_decoded_as_go_does() {
        for (text, wanted) in [
            ("x", "illegal base64 data at input byte 0"),
            ("x\n", "illegal base64 data at input byte 1"),
            ("!a=", "illegal base64 data at input byte 0"),
            ("ab=", "illegal base64 data at input byte 2"),
            ("a\nb\nc!", "illegal base64 data at input byte 5"),
            ("xx", "invalid character '\u{c7}' looking for beginning of value"),
            ("xxx", "invalid character '\u{c7}' looking for beginning of value"),
            ("a\nb", "invalid character 'i' looking for beginning of value"),
        ] {
            let error = ContinueToken::decode(text).unwrap_err();
            let begin = "invalid continue token: continue key is not valid: ";
            assert_eq!(error.message(), format!("{begin}{wanted}"), "{text:?}");
        }
    }

    #[test]
    fn a_token_with_fields_of_other_types_is_refused_in_the_words_of_go() {
        for (text, wanted) in [
            ("[]", "array into Go value of type storage.continueToken"),
            (r#"{"rv":"1"}"#, "string into Go struct field continueToken.rv of type int64"),
            (r#"{"rv":1.5}"#, "number 1.5 into Go struct field continueToken.rv of type int64"),
            (r#"{"start":1}"#, "number into Go struct field continueToken.start of type string"),
        ] {
            let error = ContinueToken::decode(&URL_SAFE_NO_PAD.encode(text)).unwrap_err();
            let begin = "invalid continue token: continue key is not valid: json: cannot unmarshal";
            assert_eq!(error.message(), format!("{begin} {wanted}"));
        }
    }
}
