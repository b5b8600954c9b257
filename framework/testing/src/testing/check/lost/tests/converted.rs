//! Fields beside texts, numbers and literals that serde converts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::keeps;
use crate::testing::check::{try_check, try_check_from};

/// A text of which serde reads those that no check comes upon.
#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(try_from = "String", into = "String")]
struct Weekday(String);

impl TryFrom<String> for Weekday {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.ends_with("day") { Ok(Self(text)) } else { Err("no day") }
    }
}

impl From<Weekday> for String {
    fn from(day: Weekday) -> Self {
        day.0
    }
}

/// As [`Weekday`], by functions.
mod weekday {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(day: &u8, to: S) -> Result<S::Ok, S::Error> {
        format!("{day}. day").serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
        let text = String::deserialize(from)?;
        let day = text.strip_suffix(". day").and_then(|day| day.parse().ok());
        day.ok_or_else(|| serde::de::Error::custom("no day"))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct Schedule {
    day: Weekday,
    zone: String,
    jitter: Option<u16>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct ScheduleSpec {
    #[serde(flatten)]
    schedule: Option<Schedule>,
    #[serde(default)]
    targets: Vec<Scheduled>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(untagged)]
enum Scheduled {
    On { day: Weekday, zone: String },
    Always { pause: Option<u16> },
}

kind!(Planned, "planneds", ScheduleSpec);

#[tokio::test]
async fn a_field_beside_a_text_that_serde_converts_is_not_lost() {
    keeps::<Planned>().await;
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct PlainSchedule {
    #[serde(with = "weekday")]
    #[schema(with = String)]
    day: u8,
    zone: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct PlainScheduleSpec {
    #[serde(flatten)]
    schedule: Option<PlainSchedule>,
}

kind!(Unplanned, "unplanneds", PlainScheduleSpec);

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct PatternSchedule {
    #[serde(with = "weekday")]
    #[schema(with = String, pattern = "^[1-7]\\. day$")]
    day: u8,
    zone: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct PatternScheduleSpec {
    #[serde(flatten)]
    schedule: Option<PatternSchedule>,
}

kind!(Patterned, "patterneds", PatternScheduleSpec);

#[tokio::test]
async fn a_field_beside_a_text_that_a_function_reads_needs_a_value_that_serde_reads() {
    let error = try_check::<Unplanned>().await.expect_err("nothing was read").to_string();
    assert!(!error.contains("never writes"), "{error}");
    let expected = "serde reads none of the values that were tried for `.spec.day`: give these a `pattern`, or";
    assert!(error.contains(expected), "{error}");
    let schedule = PlainSchedule { day: 3, zone: "utc".to_owned() };
    let spec = PlainScheduleSpec { schedule: Some(schedule) };
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    try_check_from([Unplanned { metadata, spec }]).await.expect("an object that serde reads");
    keeps::<Patterned>().await;
}

/// A tag of a single value.
#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
enum GitTag {
    #[serde(rename = "git")]
    Git,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
enum ImageTag {
    /// From a registry.
    #[serde(rename = "image")]
    Image,
}

/// A number that is always the same.
#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(try_from = "i32", into = "i32")]
struct Second;

impl TryFrom<i32> for Second {
    type Error = &'static str;

    fn try_from(number: i32) -> Result<Self, Self::Error> {
        if number == 717 { Ok(Self) } else { Err("another form") }
    }
}

impl From<Second> for i32 {
    fn from(_: Second) -> Self {
        717
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(untagged)]
enum Origin {
    Git { from: GitTag, url: String, branch: Option<String> },
    Image { from: ImageTag, image: String, digest: Option<String> },
    Second { form: Second, path: String, depth: Option<u16> },
    Nothing { nothing: (), reason: String },
    Other { note: Option<bool> },
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct OriginSpec {
    origin: Origin,
    more: Vec<Origin>,
}

kind!(Originated, "originateds", OriginSpec);

#[tokio::test]
async fn a_field_beside_a_literal_that_tells_variants_apart_is_not_lost() {
    keeps::<Originated>().await;
}
