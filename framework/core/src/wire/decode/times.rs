//! Times that jiff cannot hold.
//!
//! The API server stores times up to the end of the year 9999, and "never" is mostly written as
//! 9999-12-31T23:59:59Z. `jiff::Timestamp`, in which k8s-openapi decodes times, ends a day earlier.
//! Such a time is read as 9999-12-30T22:00:00 with the original fraction, which is as far away, and
//! is written as the last second of the year with that fraction. So "never" stays "never" when read
//! and written back unchanged. Only a document that does not decode otherwise pays for this
//! treatment, and only the refused value is replaced: other texts that look like times are left
//! alone.
//!
//! serde does not report the place of a fault behind `#[serde(flatten)]` or in tagged and untagged
//! enums. All values that look like such times are replaced then, and those that the type takes as
//! they are, such as texts, are put back.
//!
//! Not covered: times before the year -9999, which no API server writes.

// DESIGN.md, 74: Times after jiff's maximum are read as the latest representable time

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::DateTime;
use memchr::memmem;
use serde::de::DeserializeOwned;

use crate::wire::text_of;

/// The last second of which every fraction can be held.
const LAST: &str = "9999-12-30T22:00:00";
/// The last second that can be written.
const NEVER: &str = "9999-12-31T23:59:59";
/// Most such times in an object; more are an error.
const MOST: usize = 64;

/// Parses a time; a time that is too late becomes the last that can be held.
#[doc(hidden)]
pub fn read(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| near(text)?.parse().ok())
}

/// Returns the replacement of a time that is too late to be held.
pub(crate) fn near(text: &str) -> Option<String> {
    Some(format!("{LAST}{}Z", far(text)?))
}

/// Returns the fraction, with the point, of a time that is too late to be held; `None` for other
/// texts.
fn far(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (year, rest) = text.split_at(digits(text));
    // Go writes years after 9999 with more digits, after adding the offset.
    if year.len() < 4 || (year.len() == 4 && year != "9999") || year.starts_with('0') {
        return None;
    }
    let (time, zone) = rest.split_at_checked("-12-31T23:59:59".len())?;
    let fraction = zone.strip_prefix('.').map_or(0, |rest| 1 + digits(rest));
    let (fraction, zone) = zone.split_at(fraction);
    let is_zone = zone == "Z" || format!("2026-01-01T00:00:00{zone}").parse::<Timestamp>().is_ok();
    let is_time = time.starts_with('-') && format!("9996{time}").parse::<DateTime>().is_ok();
    // Nanoseconds have nine digits.
    let is_fraction = fraction.is_empty() || (2..=10).contains(&fraction.len());
    (is_zone && is_time && is_fraction).then_some(fraction)
}

/// Decodes `json`; times that are too late to be held are read as the last that can.
#[doc(hidden)]
pub fn decoded<T>(
    json: &[u8],
    decode: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    let mut error = match decode(json) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut json = Cow::Borrowed(json);
    for _ in 0..MOST {
        // Without such a time the error is that of the original bytes: replacing keeps all
        // positions.
        let Some((start, near)) = refused(&json, &error) else { break };
        json.to_mut()[start..start + near.len()].copy_from_slice(near.as_bytes());
        match decode(&json) {
            Ok(value) => return Ok(value),
            Err(next) => error = next,
        }
    }
    without_place(&json, &decode).ok_or(error)
}

/// Decodes a document whose fault is a time of which serde does not report the place.
fn without_place<T>(json: &[u8], decode: impl Fn(&[u8]) -> serde_json::Result<T>) -> Option<T> {
    let places = far_values(json);
    if places.is_empty() || places.len() > MOST {
        return None;
    }
    let mut changed = json.to_vec();
    for (start, near) in &places {
        changed[*start..start + near.len()].copy_from_slice(near.as_bytes());
    }
    let mut value = decode(&changed).ok()?;
    for (start, near) in &places {
        let place = *start..start + near.len();
        changed[place.clone()].copy_from_slice(&json[place.clone()]);
        match decode(&changed) {
            // A text: what looks like a time must not change there.
            Ok(kept) => value = kept,
            Err(_) => changed[place].copy_from_slice(near.as_bytes()),
        }
    }
    Some(value)
}

/// Returns the starts and the replacements of all values that are times too late to be held; at
/// most one more than [`MOST`].
fn far_values(json: &[u8]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(quote) = memchr::memchr(b'"', &json[at..]) {
        let start = at + quote;
        let Some(length) = text_length(&json[start + 1..]) else { break };
        let end = start + 1 + length;
        at = end + 1;
        let is_name = json[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        let text = std::str::from_utf8(&json[start + 1..end]).unwrap_or_default();
        if let Some(near) = near(text).filter(|_| !is_name) {
            found.push((start, replacement(text, &near)));
            if found.len() > MOST {
                break;
            }
        }
    }
    found
}

/// Returns the length of a JSON text up to its closing quote; `None` without one.
fn text_length(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let next = at + memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
        if rest[next] == b'"' {
            return Some(next);
        }
        at = next + 2;
    }
}

/// Decodes `json`, also with times that are too late to be held.
#[doc(hidden)]
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    decoded(json, |json| serde_json::from_str(text_of(json)?))
}

/// Returns the refused text, if the text is such a time: the start and the replacement.
fn refused(json: &[u8], error: &serde_json::Error) -> Option<(usize, String)> {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let line: usize = lines.take(error.line().checked_sub(1)?).map(<[u8]>::len).sum();
    let before = json.get(..line + error.column())?.strip_suffix(b"\"")?;
    let start = memchr::memrchr(b'"', before)?;
    let text = std::str::from_utf8(&before[start + 1..]).ok()?;
    Some((start, replacement(text, &near(text)?)))
}

/// Returns a text in quotes, as long as another in quotes. A shorter one is padded outside of the
/// quotes, so that later positions stay.
fn replacement(text: &str, near: &str) -> String {
    format!("{:<width$}", format!("\"{near}\""), width = text.len() + 2)
}

/// Replaces the last time that can be held by the last that can be written.
#[doc(hidden)]
pub fn encoded(mut json: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(found) = memmem::find(&json[at..], LAST.as_bytes()) {
        let start = at + found;
        at = start + LAST.len();
        let rest = &json[at..];
        let fraction = match rest {
            [b'.', digits @ ..] => {
                1 + digits.iter().take_while(|byte| byte.is_ascii_digit()).count()
            }
            _ => 0,
        };
        let is_whole = start > 0 && json[start - 1] == b'"' && rest[fraction..].starts_with(b"Z\"");
        // Only whole texts: the same digits inside another text are no time.
        if is_whole {
            json[start..at].copy_from_slice(NEVER.as_bytes());
        }
    }
    json
}

/// As [`encoded`], for a value that is not text yet.
#[doc(hidden)]
pub fn encode_value(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) if is_last(text) => text.replace_range(..LAST.len(), NEVER),
        Value::Array(items) => items.iter_mut().for_each(encode_value),
        Value::Object(members) => members.values_mut().for_each(encode_value),
        _ => {}
    }
}

/// Whether the text is the last time that can be held, with any fraction.
fn is_last(text: &str) -> bool {
    let fraction = text.strip_prefix(LAST).and_then(|rest| rest.strip_suffix('Z'));
    fraction.is_some_and(|fraction| {
        let digits = fraction.strip_prefix('.');
        fraction.is_empty()
            || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
    use serde_json::json;

    use super::*;

    fn round_trip<T>(value: &serde_json::Value) -> serde_json::Value
    where
        T: DeserializeOwned + serde::Serialize,
    {
        let decoded: T = from_slice(value.to_string().as_bytes()).unwrap();
        serde_json::from_slice(&encoded(serde_json::to_vec(&decoded).unwrap())).unwrap()
    }

    #[test]
    fn never_is_read_and_written_back_as_it_was() {
        for text in ["9999-12-31T23:59:59Z", "2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z"] {
            assert_eq!(round_trip::<Time>(&json!(text)), text);
            assert_eq!(round_trip::<Timestamp>(&json!(text)), text);
        }
        let text = "9999-12-31T23:59:59.999999Z";
        assert_eq!(round_trip::<MicroTime>(&json!(text)), text);
        let spec = json!({ "acquireTime": text, "renewTime": "9999-12-31T23:59:59.000000Z" });
        assert_eq!(round_trip::<LeaseSpec>(&spec), spec);
    }

    #[test]
    fn whatever_an_api_server_writes_is_read() {
        let last = "9999-12-30T22:00:00Z";
        for (text, read_as) in [
            ("9999-12-31T23:59:59Z", last),
            ("9999-12-31T00:00:00+02:00", "9999-12-30T22:00:00Z"),
            ("9999-12-31T23:59:59-12:00", last),
            ("10000-01-01T11:59:59Z", last),
            ("9999-12-31T23:59:59.999999Z", "9999-12-30T22:00:00.999999Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            let expected: Timestamp = read_as.parse().unwrap();
            assert_eq!(read(text), Some(expected), "{text}");
            let json = json!({ "renewTime": text }).to_string();
            let spec: LeaseSpec = from_slice(json.as_bytes()).unwrap();
            assert_eq!(spec.renew_time, Some(MicroTime(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_as_before() {
        for text in [
            "never",
            "",
            "9999",
            "9999-12-31",
            "9999-13-31T23:59:59Z",
            "9999-12-31T23:59:59",
            "9999-12-31T23:59:59.Z",
            "9999-12-31T23:59:59X",
            "9998-12-31T23:59:59X",
            "9999-12-31T23:59:5\u{e9}9Z",
            "9999-12-31T23:59:59\u{e9}",
            "9999-12-31T23:59:59.\u{e9}Z",
            "99999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
            let json = json!({ "acquireTime": "9999-12-31T23:59:59Z", "renewTime": text });
            let spec = from_slice::<LeaseSpec>(json.to_string().as_bytes());
            assert!(spec.is_err(), "{text}");
        }
    }

    #[test]
    fn texts_that_look_like_times_stay_as_they_are() {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": { "until": "9999-12-31T23:59:59Z" },
            "metadata": {
                "annotations": { "quoted": "say \"9999-12-30T22:00:00Z\"" },
                "creationTimestamp": "9999-12-31T23:59:59Z",
            },
        });
        assert_eq!(round_trip::<ConfigMap>(&map), map);
    }

    #[test]
    fn a_value_is_written_as_its_text_is() {
        let last = "9999-12-30T22:00:00";
        for text in ["Z", ".Z", ".5Z", ".999999999Z", "", "+00:00", ".5", "z", "0Z", ".xZ"] {
            let text = format!("{last}{text}");
            let value = json!({ "a": [{ "until": text }], text.clone(): text });
            let mut written = value.clone();
            encode_value(&mut written);
            let bytes = encoded(serde_json::to_vec(&value).unwrap());
            let mut expected: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            // Names of members stay as they are.
            let whole = expected["a"][0]["until"].clone();
            expected = json!({ "a": [{ "until": whole }], text: whole });
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn never_is_read_where_serde_forgets_the_place() {
        #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            Until { time: Time },
        }
        #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(tag = "kind", content = "value")]
        enum Adjacent {
            Until(Time),
        }
        #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(untagged)]
        enum Untagged {
            Until { until: Time, note: String },
        }
        #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        struct Flat {
            #[serde(flatten)]
            rest: std::collections::BTreeMap<String, Time>,
        }
        let never = "9999-12-31T23:59:59Z";
        let tagged = json!({ "kind": "Until", "time": never });
        assert_eq!(round_trip::<Vec<Tagged>>(&json!([tagged, tagged])), json!([tagged, tagged]));
        let adjacent = json!({ "kind": "Until", "value": never });
        assert_eq!(round_trip::<Adjacent>(&adjacent), adjacent);
        let untagged = json!({ "until": never, "note": never });
        assert_eq!(round_trip::<Untagged>(&untagged), untagged);
        let flat = json!({ "a": never, "b": "2026-01-02T03:04:05Z", "\\\"c": never });
        assert_eq!(round_trip::<Flat>(&flat), flat);
        let Untagged::Until { note, .. } = from_slice(untagged.to_string().as_bytes()).unwrap();
        assert_eq!(note, never, "a text is no time");
    }

    #[test]
    fn an_error_beside_a_far_time_keeps_its_place() {
        let json =
            "{\n\"acquireTime\":\"9999-12-31T23:59:59.999999Z\",\n\"leaseTransitions\": \"x\"}";
        let error = from_slice::<LeaseSpec>(json.as_bytes()).unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 23));
    }

    #[test]
    fn as_many_as_one_object_has_are_read() {
        let times = |count| json!(vec!["9999-12-31T23:59:59Z"; count]).to_string();
        let read = |text: String| from_slice::<Vec<Time>>(text.as_bytes());
        assert_eq!(read(times(64)).unwrap().len(), 64);
        assert!(read(times(65)).is_err(), "with a limit");
    }
}
