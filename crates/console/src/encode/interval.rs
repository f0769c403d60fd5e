//! Intervals as text, in the four styles of PostgreSQL.

use std::fmt::Write;

/// The setting IntervalStyle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`.
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`.
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`.
    Iso8601,
}

impl IntervalStyle {
    /// As the setting names it.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "postgres_verbose" => Self::PostgresVerbose,
            "sql_standard" => Self::SqlStandard,
            "iso_8601" => Self::Iso8601,
            _ => Self::Postgres,
        }
    }

    /// An interval, whose parts do not turn into each other.
    pub(super) fn show(self, months: i32, days: i32, microseconds: i64) -> String {
        let parts = Parts {
            years: months / 12,
            months: months % 12,
            days,
            hours: microseconds / 3_600_000_000,
            minutes: microseconds / 60_000_000 % 60,
            microseconds: microseconds % 60_000_000,
        };
        match self {
            Self::Postgres => switchyard_engine::interval_text(months, days, microseconds),
            Self::PostgresVerbose => parts.verbose(),
            Self::SqlStandard => parts.standard(),
            Self::Iso8601 => parts.iso(),
        }
    }
}

/// An interval as people count it; all parts but the years are below the next greater one.
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    hours: i64,
    minutes: i64,
    /// With the seconds.
    microseconds: i64,
}

impl Parts {
    /// The seconds without a sign; of at least so many digits before the point.
    fn seconds(&self, digits: usize) -> String {
        let all = self.microseconds.unsigned_abs();
        format!("{:0digits$}{}", all / 1_000_000, super::fraction(all % 1_000_000))
    }

    fn iso(&self) -> String {
        let dates = [(self.years, 'Y'), (self.months, 'M'), (self.days, 'D')];
        let mut shown = String::from("P");
        for (value, unit) in dates.into_iter().filter(|(value, _)| *value != 0) {
            // Writing to a String does not fail.
            let _ = write!(shown, "{value}{unit}");
        }
        let mut time = String::from("T");
        for (value, unit) in [(self.hours, 'H'), (self.minutes, 'M')].into_iter().filter(|(value, _)| *value != 0) {
            let _ = write!(time, "{value}{unit}");
        }
        if self.microseconds != 0 {
            let _ = write!(time, "{}{}S", if self.microseconds < 0 { "-" } else { "" }, self.seconds(1));
        }
        match (shown.as_str(), time.as_str()) {
            ("P", "T") => "PT0S".to_owned(),
            (_, "T") => shown,
            _ => shown + &time,
        }
    }

    fn verbose(&self) -> String {
        let counted = [
            (i64::from(self.years), "year"),
            (i64::from(self.months), "mon"),
            (i64::from(self.days), "day"),
            (self.hours, "hour"),
            (self.minutes, "min"),
        ];
        let mut shown = String::from("@");
        // The first part says whether it is all counted backwards.
        let mut ago = None;
        for (value, unit) in counted.into_iter().filter(|(value, _)| *value != 0) {
            let value = if *ago.get_or_insert(value < 0) { -value } else { value };
            let _ = write!(shown, " {value} {unit}{}", if value == 1 { "" } else { "s" });
        }
        if self.microseconds != 0 {
            let negative = *ago.get_or_insert(self.microseconds < 0) != (self.microseconds < 0);
            let one = self.microseconds.abs() == 1_000_000;
            let sign = if negative { "-" } else { "" };
            let _ = write!(shown, " {sign}{} sec{}", self.seconds(1), if one { "" } else { "s" });
        }
        match ago {
            None => "@ 0".to_owned(),
            Some(true) => shown + " ago",
            Some(false) => shown,
        }
    }

    fn standard(&self) -> String {
        let dated = self.years != 0 || self.months != 0;
        let timed = self.hours != 0 || self.minutes != 0 || self.microseconds != 0;
        let values = [i64::from(self.years), self.months.into(), self.days.into(), self.hours, self.minutes];
        let values = || values.into_iter().chain([self.microseconds]);
        let (below, above) = (values().any(|value| value < 0), values().any(|value| value > 0));
        let (years, months, days) = (self.years.unsigned_abs(), self.months.unsigned_abs(), self.days.unsigned_abs());
        let sign = |negative: bool| if negative { '-' } else { '+' };
        let time = format!("{}:{:02}:{}", self.hours.unsigned_abs(), self.minutes.unsigned_abs(), self.seconds(2));
        // The standard knows one sign, and months or days.
        if below && above || dated && (timed || days != 0) {
            let (date, day) = (sign(self.years < 0 || self.months < 0), sign(self.days < 0));
            let clock = sign(self.hours < 0 || self.minutes < 0 || self.microseconds < 0);
            return format!("{date}{years}-{months} {day}{days} {clock}{time}");
        }
        let minus = if below { "-" } else { "" };
        match (dated, days, timed) {
            (true, ..) => format!("{minus}{years}-{months}"),
            (false, 0, false) => "0".to_owned(),
            (false, 0, true) => format!("{minus}{time}"),
            (false, _, _) => format!("{minus}{days} {time}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL 15 prints them.
    #[test]
    fn intervals_in_every_style() {
        use IntervalStyle::{Iso8601, Postgres, PostgresVerbose, SqlStandard};
        let hms = |hours: i64, minutes: i64, seconds: i64| ((hours * 60 + minutes) * 60 + seconds) * 1_000_000;
        for ((months, days, microseconds), expected) in [
            (
                (14, 3, hms(4, 5, 6)),
                [
                    "1 year 2 mons 3 days 04:05:06",
                    "@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs",
                    "+1-2 +3 +4:05:06",
                    "P1Y2M3DT4H5M6S",
                ],
            ),
            ((0, 0, 0), ["00:00:00", "@ 0", "0", "PT0S"]),
            ((-14, 0, 0), ["-1 years -2 mons", "@ 1 year 2 mons ago", "-1-2", "P-1Y-2M"]),
            ((0, -1, hms(2, 0, 0)), ["-1 days +02:00:00", "@ 1 day -2 hours ago", "+0-0 -1 +2:00:00", "P-1DT2H"]),
            ((0, 1, 0), ["1 day", "@ 1 day", "1 0:00:00", "P1D"]),
            ((0, 0, 1_500_000), ["00:00:01.5", "@ 1.5 secs", "0:00:01.5", "PT1.5S"]),
            ((0, 0, -1_000_000), ["-00:00:01", "@ 1 sec ago", "-0:00:01", "PT-1S"]),
            ((0, 0, hms(100, 0, 0)), ["100:00:00", "@ 100 hours", "100:00:00", "PT100H"]),
        ] {
            let shown =
                [Postgres, PostgresVerbose, SqlStandard, Iso8601].map(|style| style.show(months, days, microseconds));
            assert_eq!(shown, expected);
        }
    }
}
