//! Schedules of `CronJobs`: five fields, or a name such as `@daily`.

use jiff::civil::DateTime;
use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// Most minutes that are looked at for the next time: five years, as upstream's library looks.
const HORIZON: i64 = 5 * 366;

/// A parsed schedule: a bit for each minute, hour, day, month and weekday.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether days and weekdays are restricted: then either may match.
    is_either: bool,
    zone: TimeZone,
}

impl Schedule {
    /// Parses a schedule in a time zone; UTC without one.
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Option<Self> {
        let zone = match zone {
            Some(name) => TimeZone::get(name).ok()?,
            None => TimeZone::UTC,
        };
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        // Both 0 and 7 are Sunday.
        let weekday = field(weekdays, 0, 7, &WEEKDAYS)?;
        Some(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: (weekday | weekday >> 7) & 0x7f,
            is_either: !is_star(days) && !is_star(weekdays),
            zone,
        })
    }

    /// Returns the first time after `after`, in seconds since 1970.
    pub(super) fn next(&self, after: i64) -> Option<i64> {
        let start = Timestamp::from_second(after).ok()?.to_zoned(self.zone.clone());
        let mut day = start.date();
        for _ in 0..HORIZON {
            if self.is_day(day) {
                let found = self.times(day).find(|at| *at > after);
                if found.is_some() {
                    return found;
                }
            }
            day = day.checked_add(1.day()).ok()?;
        }
        None
    }

    /// Whether a day is in the schedule.
    fn is_day(&self, day: jiff::civil::Date) -> bool {
        let has = |bits: u64, number: i8| bits & (1 << number) != 0;
        let by_day = has(self.days, day.day());
        let by_weekday = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        let fits = if self.is_either { by_day || by_weekday } else { by_day && by_weekday };
        fits && has(self.months, day.month())
    }

    /// Iterates over the times of a day, in seconds since 1970.
    fn times(&self, day: jiff::civil::Date) -> impl Iterator<Item = i64> + '_ {
        let hours = (0..24_i8).filter(|hour| self.hours & (1 << hour) != 0);
        let all = hours.flat_map(|hour| (0..60_i8).map(move |minute| (hour, minute)));
        all.filter(|(_, minute)| self.minutes & (1 << minute) != 0).filter_map(
            move |(hour, minute)| {
                let time: DateTime = day.at(hour, minute, 0, 0);
                let zoned = self.zone.to_ambiguous_zoned(time).compatible().ok()?;
                // A time that the change to summer time skips is none.
                (zoned.datetime() == time).then(|| zoned.timestamp().as_second())
            },
        )
    }
}

const MONTHS: [&str; 13] =
    ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether a field restricts nothing: one of its parts is a star, without a step or with that of 1.
fn is_star(field: &str) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        matches!(range, "*" | "?") && step.parse() == Ok(1_usize)
    })
}

/// Parses a field: numbers, names, ranges and steps, separated by commas.
fn field(text: &str, least: u32, most: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| {
        let text = text.to_lowercase();
        let named = names.iter().position(|name| !name.is_empty() && *name == text);
        let number = named.and_then(|at| u32::try_from(at).ok()).or_else(|| text.parse().ok())?;
        (least..=most).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().ok().filter(|it| *it > 0)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            // 7 is a name of Sunday only.
            None if range == "*" || range == "?" => {
                (least, if names == WEEKDAYS { 6 } else { most })
            }
            // `5/10` runs to the end.
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return None;
        }
        bits |= (first..=last).step_by(step.unwrap_or(1)).fold(0_u64, |bits, at| bits | 1 << at);
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let after = after.parse::<Timestamp>().unwrap().as_second();
        let next = Schedule::parse(schedule, None).unwrap().next(after);
        next.map_or("never".to_owned(), |at| Timestamp::from_second(at).unwrap().to_string())
    }

    #[test]
    fn the_next_time_is_behind_the_last() {
        // A Thursday.
        let after = "2026-01-01T00:00:00Z";
        for (schedule, wanted) in [
            ("* * * * *", "2026-01-01T00:01:00Z"),
            ("*/15 * * * *", "2026-01-01T00:15:00Z"),
            ("5/20 3 * * *", "2026-01-01T03:05:00Z"),
            ("0 0 * * *", "2026-01-02T00:00:00Z"),
            ("@hourly", "2026-01-01T01:00:00Z"),
            ("0 9-17/4 * * mon-FRI", "2026-01-01T09:00:00Z"),
            ("0 0 * * 7", "2026-01-04T00:00:00Z"),
            ("0 0 13 * 5", "2026-01-02T00:00:00Z"),
            ("0 0 13 * *", "2026-01-13T00:00:00Z"),
            // Either fits, unless one has a star without a step.
            ("0 0 */10 * 0", "2026-01-04T00:00:00Z"),
            ("0 0 */1 * 0", "2026-01-04T00:00:00Z"),
            ("0 0 13,* * 0", "2026-01-04T00:00:00Z"),
            ("0 0 20 * */6", "2026-01-03T00:00:00Z"),
            ("0 0 29 feb *", "2028-02-29T00:00:00Z"),
            ("0 0 31 2 *", "never"),
        ] {
            assert_eq!(next(schedule, after), wanted, "{schedule}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for schedule in ["", "* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "x * * * *"] {
            assert_eq!(Schedule::parse(schedule, None), None, "{schedule}");
        }
        assert_eq!(Schedule::parse("* * * * *", Some("No/Where")), None);
    }
}
