//! Timestamps as cel-go has them: Go's `time.Time` with an offset, from year 1 to 9999.

use super::duration::Duration;
use super::number::INT_OVERFLOW;

mod civil;
mod layout;
mod zone;

use civil::{Civil, SECONDS_PER_DAY};
pub use zone::Zone;

/// Message of a timestamp before year 1 or after year 9999.
pub const TIMESTAMP_OVERFLOW: &str = "timestamp overflow";
/// Message of a text that is no timestamp.
pub const NOT_A_TIMESTAMP: &str =
    "type conversion error from 'string' to 'google.protobuf.Timestamp'";

/// Unix time of `0001-01-01T00:00:00Z`.
const MIN_SECONDS: i64 = -62_135_596_800;
/// Unix time of `9999-12-31T23:59:59Z`.
const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Largest distance from 1970 in seconds, about a billion years.
const MAX_PARTS_SECONDS: u64 = 1 << 55;

/// A place in time. Two are equal if they are the same place; the offset matters only for the text.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: i64,
    offset: i64,
}

/// A part of a timestamp in a time zone, as the functions `getFullYear` and so on return them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `getFullYear`
    FullYear,
    /// `getMonth`, from 0
    Month,
    /// `getDate`: the day of the month from 1
    Date,
    /// `getDayOfMonth`, from 0
    DayOfMonth,
    /// `getDayOfWeek`, from 0, which is Sunday
    DayOfWeek,
    /// `getDayOfYear`, from 0
    DayOfYear,
    /// `getHours`
    Hours,
    /// `getMinutes`
    Minutes,
    /// `getSeconds`
    Seconds,
    /// `getMilliseconds`
    Milliseconds,
}

impl Timestamp {
    /// The timestamp that `timestamp(text)` reads: RFC 3339 with the liberties that Go takes (a
    /// comma before the fraction, an hour of one digit).
    ///
    /// # Errors
    ///
    /// [`NOT_A_TIMESTAMP`], without Go's cause; [`TIMESTAMP_OVERFLOW`] if the timestamp is out of
    /// range.
    pub fn parse(text: &str) -> Result<Timestamp, &'static str> {
        let timestamp = layout::parse(layout::RFC3339, text).map_err(|_| NOT_A_TIMESTAMP)?;
        timestamp.in_range().ok_or(TIMESTAMP_OVERFLOW)
    }

    /// The timestamp that Go's `time.Parse(time.RFC3339, text)` reads.
    ///
    /// # Errors
    ///
    /// Go's message: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
    pub fn parse_rfc3339(text: &str) -> Result<Timestamp, String> {
        layout::parse(layout::RFC3339, text)
    }

    /// The timestamp that `time.Parse` reads with Kubernetes' layout of times with microseconds.
    ///
    /// # Errors
    ///
    /// Go's message.
    pub fn parse_rfc3339_micro(text: &str) -> Result<Timestamp, String> {
        layout::parse(layout::RFC3339_MICRO, text)
    }

    /// The value of a string with `format: date`: a day such as `2024-02-29`. Year 0 is not
    /// refused.
    ///
    /// # Errors
    ///
    /// Go's message of `time.Parse`.
    pub fn parse_schema_date(text: &str) -> Result<Timestamp, String> {
        layout::parse(layout::FULL_DATE, text)
    }

    /// The value of a string with `format: date-time` as read by kube-openapi's
    /// `strfmt.ParseDateTime`: RFC 3339, or the same without a zone, which is then UTC; an empty
    /// text is the Unix epoch.
    ///
    /// # Errors
    ///
    /// Go's message of `time.Parse` for the last form that is tried, that without a zone.
    pub fn parse_schema_date_time(text: &str) -> Result<Timestamp, String> {
        if text.is_empty() {
            return Ok(Timestamp { seconds: 0, nanos: 0, offset: 0 });
        }
        // Forms with milliseconds or microseconds read no text that RFC 3339 does not.
        layout::parse(layout::RFC3339, text).or_else(|_| layout::parse(layout::LOCAL_TIME, text))
    }

    /// The timestamp of a Unix time, `timestamp(int)`.
    ///
    /// # Errors
    ///
    /// [`TIMESTAMP_OVERFLOW`].
    pub fn from_unix(seconds: i64) -> Result<Timestamp, &'static str> {
        Timestamp { seconds, nanos: 0, offset: 0 }.in_range().ok_or(TIMESTAMP_OVERFLOW)
    }

    /// The timestamp of a Unix time with nanoseconds, which may be more than a second or negative.
    /// The years may be out of the range of the other timestamps.
    ///
    /// # Errors
    ///
    /// [`TIMESTAMP_OVERFLOW`] some billion years from now, where Go's time overflows without an
    /// error.
    pub fn from_parts(seconds: i64, nanos: i64) -> Result<Timestamp, &'static str> {
        if seconds.unsigned_abs() > MAX_PARTS_SECONDS {
            return Err(TIMESTAMP_OVERFLOW);
        }
        let seconds = seconds + nanos.div_euclid(NANOS_PER_SECOND);
        Ok(Timestamp { seconds, nanos: nanos.rem_euclid(NANOS_PER_SECOND), offset: 0 })
    }

    /// The Unix time in seconds, `int(timestamp)`.
    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub const fn subsec_nanos(self) -> i64 {
        self.nanos
    }

    /// The later timestamp.
    ///
    /// # Errors
    ///
    /// [`TIMESTAMP_OVERFLOW`].
    pub fn checked_add(self, duration: Duration) -> Result<Timestamp, &'static str> {
        let nanos = self.nanos + duration.as_nanos() % NANOS_PER_SECOND;
        let seconds = self.seconds
            + duration.as_nanos() / NANOS_PER_SECOND
            + nanos.div_euclid(NANOS_PER_SECOND);
        let nanos = nanos.rem_euclid(NANOS_PER_SECOND);
        Timestamp { seconds, nanos, offset: self.offset }.in_range().ok_or(TIMESTAMP_OVERFLOW)
    }

    /// The earlier timestamp.
    ///
    /// # Errors
    ///
    /// [`TIMESTAMP_OVERFLOW`]; [`INT_OVERFLOW`] for the smallest duration, which has no negation.
    pub fn checked_sub(self, duration: Duration) -> Result<Timestamp, &'static str> {
        self.checked_add(duration.checked_neg()?)
    }

    /// The duration from another timestamp to this timestamp.
    ///
    /// # Errors
    ///
    /// [`INT_OVERFLOW`] from 292 years on.
    pub fn duration_since(self, other: Timestamp) -> Result<Duration, &'static str> {
        let seconds = self.seconds - other.seconds;
        // The product alone must fit too, as in cel-go.
        let whole = seconds.checked_mul(NANOS_PER_SECOND).ok_or(INT_OVERFLOW)?;
        whole.checked_add(self.nanos - other.nanos).map(Duration::from_nanos).ok_or(INT_OVERFLOW)
    }

    /// A part in a time zone; without a zone as an argument CEL takes [`Zone::UTC`].
    pub fn part(self, part: Part, zone: &Zone) -> i64 {
        let local = self.seconds + zone.offset_at(self.seconds);
        let (days, second) = (local.div_euclid(SECONDS_PER_DAY), local.rem_euclid(SECONDS_PER_DAY));
        let date = Civil::from_days(days);
        match part {
            Part::FullYear => date.year,
            Part::Month => date.month - 1,
            Part::Date => date.day,
            Part::DayOfMonth => date.day - 1,
            // The Unix epoch was a Thursday.
            Part::DayOfWeek => (days + 4).rem_euclid(7),
            Part::DayOfYear => days - Civil { year: date.year, month: 1, day: 1 }.to_days(),
            Part::Hours => second / 3600,
            Part::Minutes => second / 60 % 60,
            Part::Seconds => second % 60,
            Part::Milliseconds => self.nanos / 1_000_000,
        }
    }

    /// The text in RFC 3339 with up to nine digits of the fraction, in the offset that the text was
    /// read with: `string(timestamp)`.
    pub fn to_rfc3339(self) -> String {
        let local = self.seconds + self.offset;
        let date = Civil::from_days(local.div_euclid(SECONDS_PER_DAY));
        let second = local.rem_euclid(SECONDS_PER_DAY);
        let year_sign = if date.year < 0 { "-" } else { "" };
        let mut out = format!(
            "{year_sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year.unsigned_abs(),
            date.month,
            date.day,
            second / 3600,
            second / 60 % 60,
            second % 60
        );
        if self.nanos != 0 {
            out.push_str(format!(".{:09}", self.nanos).trim_end_matches('0'));
        }
        if self.offset == 0 {
            out.push('Z');
        } else {
            let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.abs() / 60);
            out.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
        out
    }

    /// The text in UTC, in the form of a literal of the timestamp in messages.
    pub fn to_rfc3339_utc(self) -> String {
        Timestamp { offset: 0, ..self }.to_rfc3339()
    }

    fn in_range(self) -> Option<Timestamp> {
        (MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds).then_some(self)
    }

    fn place(self) -> (i64, i64) {
        (self.seconds, self.nanos)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl std::hash::Hash for Timestamp {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}

#[cfg(test)]
mod tests;
