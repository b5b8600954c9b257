//! Times of a schedule: minutes of UTC that fit five fields.

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;

use crate::v1::Schedule;

/// Days in which a schedule is searched for the next time; 29 February comes within eight years.
const DAYS: usize = 8 * 366 + 1;

/// Returns the numbers of a field, such as `*/15`, `1-5`, `10/20` (from 10 on) or `0,30`.
fn parse(field: &str, least: i8, most: i8) -> Result<Vec<i8>, String> {
    let wrong = || {
        format!(
            "{field:?} is not `*`, `N`, `N-M`, one of them with `/STEP`, or a list, within {least} and {most}"
        )
    };
    let number = |text: &str| text.parse::<i8>().ok().filter(|n| (least..=most).contains(n));
    let mut all = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().map_err(|_| wrong())?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from).ok_or_else(wrong)?, number(to).ok_or_else(wrong)?),
            None => {
                let from = number(range).ok_or_else(wrong)?;
                (from, if step.is_some() { most } else { from })
            }
        };
        let step = step.unwrap_or(1);
        if from > to || step == 0 {
            return Err(wrong());
        }
        all.extend((from..=to).step_by(step));
    }
    Ok(all)
}

/// Whether a field restricts nothing: one of its parts is a star, without a step or with that of 1.
fn is_star(field: &str) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        range == "*" && step.parse() == Ok(1_usize)
    })
}

impl Schedule {
    /// Checks each field; the errors have the names of their fields.
    pub(crate) fn faults(&self) -> Vec<(&'static str, &str, String)> {
        let fields = [
            ("minute", &self.minute, 0, 59),
            ("hour", &self.hour, 0, 23),
            ("dayOfMonth", &self.day_of_month, 1, 31),
            ("month", &self.month, 1, 12),
            ("dayOfWeek", &self.day_of_week, 0, 6),
        ];
        let check = |(name, text, least, most)| {
            let text: &String = text;
            parse(text, least, most).err().map(|fault| (name, text.as_str(), fault))
        };
        fields.into_iter().filter_map(check).collect()
    }

    /// Returns the first time after another time; `None` for a date that does not exist. If days of
    /// the month and days of the week are both restricted, either fits, as in cron and
    /// Kubernetes.
    pub(crate) fn next(&self, after: Timestamp) -> Result<Option<Timestamp>, String> {
        let (minutes, hours) = (parse(&self.minute, 0, 59)?, parse(&self.hour, 0, 23)?);
        let (days, months) = (parse(&self.day_of_month, 1, 31)?, parse(&self.month, 1, 12)?);
        let weekdays = parse(&self.day_of_week, 0, 6)?;
        let is_either = !is_star(&self.day_of_month) && !is_star(&self.day_of_week);
        let after = after.to_zoned(TimeZone::UTC).datetime();
        for date in after.date().series(k8s_openapi::jiff::Span::new().days(1)).take(DAYS) {
            let weekday = date.weekday().to_sunday_zero_offset();
            let (is_day, is_weekday) = (days.contains(&date.day()), weekdays.contains(&weekday));
            let fits = if is_either { is_day || is_weekday } else { is_day && is_weekday };
            if !fits || !months.contains(&date.month()) {
                continue;
            }
            let times =
                hours.iter().flat_map(|hour| minutes.iter().map(move |minute| (*hour, *minute)));
            let times = times.map(|(hour, minute)| date.at(hour, minute, 0, 0));
            // Lists are in no order.
            if let Some(time) = times.filter(|time| *time > after).min() {
                let time = time.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?;
                return Ok(Some(time.timestamp()));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, after: &str) -> Option<String> {
        let schedule: Schedule = text.parse().unwrap();
        let next = schedule.next(after.parse().unwrap()).unwrap();
        next.map(|time| time.to_string())
    }

    #[test]
    fn the_next_time_fits_every_field() {
        let after = "2026-01-31T23:59:30Z";
        assert_eq!(next("* * * * *", after).unwrap(), "2026-02-01T00:00:00Z");
        assert_eq!(next("*/15 8-9 * * 1-5", after).unwrap(), "2026-02-02T08:00:00Z");
        assert_eq!(next("40,20 5,3 * * *", after).unwrap(), "2026-02-01T03:20:00Z");
        assert_eq!(next("0 0 29 2 *", after).unwrap(), "2028-02-29T00:00:00Z");
        assert_eq!(next("0 0 31 2 *", after), None);
    }

    /// Days that Kubernetes' library for schedules (`robfig/cron` 3.0.1) takes or leaves.
    #[test]
    fn a_day_of_the_month_or_of_the_week_is_enough_when_both_are_restricted() {
        for (days, of, is_taken) in [
            ("1,15 * 0", "2012-07-15", true),
            ("1,15 * 0", "2012-06-15", true),
            ("1,15 * 0", "2012-08-01", true),
            ("1,15 * 0", "2012-07-16", false),
            ("*/10 * 0", "2012-07-15", true),
            ("*/2 * 0", "2012-07-15", true),
            ("13 * 5", "2012-07-06", true),
            ("13 * 5", "2012-07-14", false),
            // With a star both fit.
            ("* * 1", "2012-07-15", false),
            ("*/1 * 1", "2012-07-15", false),
            ("3,* * 1", "2012-07-15", false),
            ("1,15 * *", "2012-07-09", false),
            ("1,15 * *", "2012-07-15", true),
            ("15 6 0", "2012-07-15", false),
        ] {
            let day: k8s_openapi::jiff::civil::Date = of.parse().unwrap();
            let before = format!("{}T23:59:30Z", day.yesterday().unwrap());
            let found = next(&format!("0 0 {days}"), &before);
            assert_eq!(found == Some(format!("{of}T00:00:00Z")), is_taken, "{days}: {found:?}");
        }
    }

    #[test]
    fn a_field_that_is_none_has_a_fault() {
        let schedule: Schedule = "60 * 0 x */0".parse().unwrap();
        let names: Vec<_> = schedule.faults().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["minute", "dayOfMonth", "month", "dayOfWeek"]);
        assert!("* * * *".parse::<Schedule>().is_err());
        let schedule: Schedule = "5-1 9/0 -3 1- *".parse().unwrap();
        let names: Vec<_> = schedule.faults().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["minute", "hour", "dayOfMonth", "month"]);
    }

    #[test]
    fn a_step_counts_from_a_number_to_the_end_and_within_a_range() {
        assert_eq!(parse("5/20", 0, 59).unwrap(), [5, 25, 45]);
        assert_eq!(parse("5-30/10", 0, 59).unwrap(), [5, 15, 25]);
        assert_eq!(parse("*/30,7", 0, 59).unwrap(), [0, 30, 7]);
        assert_eq!(parse("5", 0, 59).unwrap(), [5]);
    }
}
