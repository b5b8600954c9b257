//! Time zones of CEL's functions: names of the IANA database and fixed offsets.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::super::number;

/// The database of the crate, not that of the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// A name that jiff knows beside those of the database.
const UNKNOWN: &str = "Etc/Unknown";

/// A time zone.
#[derive(Debug, Clone)]
pub enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    /// A zone of the IANA database.
    Named(TimeZone),
}

impl Zone {
    /// The zone of functions without an argument for a zone.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone that an argument names: `America/New_York`, or an offset in hours and minutes such
    /// as `-03:30`. An empty name is UTC, and so is `Local`: a kube-apiserver has no other local
    /// time.
    ///
    /// # Errors
    ///
    /// Go's messages of `time.LoadLocation` and `strconv.Atoi`.
    pub fn parse(text: &str) -> Result<Zone, String> {
        match text.split_once(':') {
            Some((hours, minutes)) => fixed(text, hours, minutes),
            None => named(text),
        }
    }

    /// Seconds east of UTC at a Unix time.
    pub(super) fn offset_at(&self, seconds: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let timestamp = jiff::Timestamp::from_second(seconds).unwrap_or_default();
                i64::from(zone.to_offset(timestamp).seconds())
            }
        }
    }
}

/// Hours and minutes may be any numbers, as in cel-go; the minutes have the sign of the first
/// character.
fn fixed(text: &str, hours: &str, minutes: &str) -> Result<Zone, String> {
    let hours = number::atoi(hours)?;
    let minutes = number::atoi(minutes)?;
    let hours = hours.wrapping_mul(60);
    let offset = if text.starts_with('-') {
        hours.wrapping_sub(minutes)
    } else {
        hours.wrapping_add(minutes)
    };
    // Go's duration of the minutes wraps around in nanoseconds.
    Ok(Zone::Fixed(offset.wrapping_mul(60_000_000_000) / 1_000_000_000))
}

fn named(name: &str) -> Result<Zone, String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(Zone::UTC);
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    // Names differ by case in Go, because they are names of files.
    let is_same = |zone: &TimeZone| zone.iana_name() == Some(name) && name != UNKNOWN;
    let zone = DATABASE.get(name).ok().filter(is_same);
    zone.map(Zone::Named).ok_or_else(|| format!("unknown time zone {name}"))
}
