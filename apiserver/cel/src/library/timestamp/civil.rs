//! Days of the proleptic Gregorian calendar.

pub(super) const SECONDS_PER_DAY: i64 = 86_400;

/// Days from 0000-03-01 to the Unix epoch.
const EPOCH: i64 = 719_468;
/// Days of four hundred years.
const ERA: i64 = 146_097;

/// A date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Civil {
    /// The date so many days after the Unix epoch.
    pub(super) fn from_days(days: i64) -> Civil {
        let shifted = days + EPOCH;
        let (era, day_of_era) = (shifted.div_euclid(ERA), shifted.rem_euclid(ERA));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        // A year that starts in March, so that the leap day is the last day.
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
        }
    }

    /// Days from the Unix epoch to the date.
    pub(super) fn to_days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - EPOCH
    }

    /// Days of a month.
    pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
        match month {
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}
