//! Times as the runner writes them (RFC 3339, in UTC).

use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, SystemTime};

pub(crate) fn since_1970(time: Duration) -> SystemTime {
    SystemTime::UNIX_EPOCH + time
}

/// Reads a time as the runner writes it, `2026-01-31T12:00:00.000Z`; none when it is
/// written otherwise, or lies before 1970.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let seconds = bytes.get(..19)?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| seconds[at] != mark) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&bytes[from..to]);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970 || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanoseconds = match &bytes[19..] {
        b"Z" => 0,
        [b'.', fraction @ .., b'Z'] if (1..=9).contains(&fraction.len()) => {
            digits(fraction)? * 10u64.pow(9 - fraction.len() as u32)
        }
        _ => return None,
    };
    let days = days_before(year) + (1..month).map(|m| days_in(year, m)).sum::<u64>() + day - 1;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(since_1970(Duration::new(seconds, nanoseconds as u32)))
}

/// Writes a time as the runner does, with milliseconds. One before 1970 becomes that.
pub fn format_time(time: SystemTime) -> String {
    let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = time.as_secs();
    let mut days = seconds / 86_400;
    let mut year = 1970 + days / 366; // or some years later
    while days_before(year + 1) <= days {
        year += 1;
    }
    days -= days_before(year);
    let mut month = 1;
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let (day, milliseconds) = (days + 1, time.subsec_millis());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// A duration in seconds, the unit of the ABI. The host rejects fractions where it needs
/// whole seconds.
pub(crate) fn amount(time: Duration) -> Value {
    match time.subsec_nanos() {
        0 => time.as_secs().into(),
        _ => time.as_secs_f64().into(),
    }
}

pub(crate) fn seconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> std::result::Result<S::Ok, S::Error> {
    time.map(amount).serialize(to)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

fn leap(year: u64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The days from 1970 to the year's first.
fn days_before(year: u64) -> u64 {
    let leaps = |y: u64| y / 4 - y / 100 + y / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
