//! The date and time in Coordinated Universal Time, written as in ISO 8601.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The present date and time, such as `2026-11-22T09:30:00Z`.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    text(since.unwrap_or(Duration::ZERO).as_secs())
}

/// The date and time for a number of seconds since 1970.
fn text(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day for a number of days since 1 January 1970, in the Gregorian calendar.
/// Computed with years that begin in March, so that the leap day is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    // Days since 1 March of the year 0; an era is 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(text(1_795_339_799), "2026-11-22T09:29:59Z");
        assert!(now() > text(1_700_000_000));
    }

    proptest! {
        #[test]
        fn the_next_day_is_the_next_in_the_calendar(day in 0u64..200_000) {
            let ((year, month, date), next) = (civil(day), civil(day + 1));
            let first = (year, month + 1, 1);
            let new_year = (year + 1, 1, 1);
            let expected = [(year, month, date + 1), first, new_year];
            prop_assert!(expected.contains(&next) && date <= 31 && (1..=12).contains(&month));
            if next == first {
                prop_assert!(date >= 28);
            }
            prop_assert!(next != new_year || (month, date) == (12, 31));
        }
    }
}
