//! A time of an object, kept as the text of the server.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{Error, ErrorKind};
use crate::wire::times;

/// A time in an object, kept as the text of the server, for fields of your own types.
///
/// Servers store times up to the end of the year 9999, which often means "never";
/// `jiff::Timestamp`, and k8s-openapi's `Time` and `MicroTime` with it, ends a day earlier. A field
/// of those types reads such a time as 9999-12-30T22:00:00Z and is written back as the last second
/// of that year. This type keeps the text, so that the time is written back letter by letter. Two
/// values are equal when their texts are.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::ApiTime;
///
/// let until: ApiTime = "9999-12-31T12:00:00Z".parse()?;
/// assert_eq!(until.as_str(), "9999-12-31T12:00:00Z");
/// assert!(until.at() > jiff::Timestamp::now());
/// # Ok::<(), windlass::Error>(())
/// ```
///
/// As a field of a custom resource the schema of this type is `type: string, format: date-time`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiTime {
    /// The text as written by the server.
    text: String,
    /// The moment, within the range of jiff.
    at: Timestamp,
}

impl ApiTime {
    /// Returns the moment. A time too late for jiff is the last second of which jiff holds every
    /// fraction.
    ///
    /// For comparisons and arithmetic; write the value back unchanged by keeping the `ApiTime`.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the text of the server.
    ///
    /// RFC 3339, with as many digits of a second as the server sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The text is jiff's: RFC 3339 in UTC, with as many digits as the time has.
impl From<Timestamp> for ApiTime {
    fn from(at: Timestamp) -> Self {
        Self { text: at.to_string(), at }
    }
}

impl FromStr for ApiTime {
    type Err = Error;

    /// Reads an RFC 3339 time.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for any other text.
    fn from_str(text: &str) -> Result<Self, Error> {
        let at = times::read(text).ok_or_else(|| {
            let text = format!("{text:?} is not a time; write it as 2026-01-02T03:04:05Z");
            Error::new(ErrorKind::Usage, text)
        })?;
        Ok(Self { text: text.to_owned(), at })
    }
}

impl fmt::Display for ApiTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ApiTime {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ApiTime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        // The value may be part of a secret: the error does not repeat the value.
        text.parse().map_err(|_| de::Error::custom("no RFC 3339 time"))
    }
}

impl JsonSchema for ApiTime {
    fn schema_name() -> Cow<'static, str> {
        "ApiTime".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_back_letter_by_letter() {
        for text in ["9999-12-31T12:00:00Z", "2026-01-02T03:04:05+02:00", "0001-01-01T00:00:00Z"] {
            let time: ApiTime = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(&time).unwrap(), text);
            assert_eq!(time.to_string(), text);
        }
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            (ApiTime::from(now).as_str(), ApiTime::from(now).at()),
            ("1970-01-01T00:00:00Z", now)
        );
    }

    #[test]
    fn what_is_no_time_is_refused_without_its_value() {
        let error = serde_json::from_str::<ApiTime>(r#""canary""#).unwrap_err().to_string();
        assert!(error.contains("no RFC 3339 time") && !error.contains("canary"), "{error}");
    }
}
