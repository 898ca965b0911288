//! Values in a text's form.

use crate::budget::Fault;
use sealing::NodeId;
use weft::Value;
use weft::code::Written;
use weft::module::Module;

const MILLISECONDS_A_DAY: i64 = 86_400_000;

/// At most `count` characters of a text from one on, which count from 0.
///
/// # Errors
/// One of the numbers is less than 0.
pub(crate) fn slice(text: &str, from: i64, count: i64) -> Result<&str, Fault> {
    let place = |number: i64| {
        let refused = |_| Fault::Refused(format!("`slice` takes numbers from 0, not {number}"));
        usize::try_from(number).map_err(refused)
    };
    let (from, count) = (place(from)?, place(count)?);
    let place_in = |text: &str, at: usize| text.char_indices().nth(at).map_or(text.len(), |(place, _)| place);
    let behind = &text[place_in(text, from)..];
    Ok(&behind[..place_in(behind, count)])
}

/// A value as interpolation writes it; none if it is not what `written` says.
pub(crate) fn write(value: &Value, written: Written, module: &Module) -> Option<String> {
    Some(match (written, value) {
        (Written::Text, Value::Text(text)) => text.to_string(),
        (Written::Int, Value::Word(word)) => word.to_string(),
        (Written::Real, Value::Real(real)) => real.to_string(),
        (Written::Bool, Value::Word(word)) => (if *word == 0 { "false" } else { "true" }).into(),
        (Written::Node, Value::Node(node)) => NodeId(**node).to_string(),
        (Written::Enum(number), Value::Word(word)) => {
            module.enums[number as usize].cases.get(usize::try_from(*word).ok()?)?.clone()
        }
        (Written::Time, Value::Word(word)) => time(*word),
        (Written::Duration, Value::Word(word)) => duration(*word),
        _ => return None,
    })
}

/// RFC 3339 in UTC, milliseconds only where there are any.
fn time(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(MILLISECONDS_A_DAY);
    let rest = milliseconds.rem_euclid(MILLISECONDS_A_DAY);
    // Days to a civil date in eras of 400 years, years beginning in March (Howard Hinnant's `civil_from_days`).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, fraction) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The units of durations, in milliseconds.
const UNITS: [(&str, i64); 5] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", MILLISECONDS_A_DAY)];

/// The milliseconds of a duration as the language writes it, `5 min` or `5min`; none of anything else.
pub fn read_duration(text: &str) -> Option<i64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == ' ');
    let number = text[..text.len() - unit.len()].trim().replace('_', "");
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<i64>().ok()?.checked_mul(*length)
}

/// The largest unit in which it is whole, as the language writes it.
pub fn duration(milliseconds: i64) -> String {
    for (unit, length) in [("d", MILLISECONDS_A_DAY), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)] {
        if milliseconds % length == 0 && milliseconds != 0 {
            return format!("{} {unit}", milliseconds / length);
        }
    }
    format!("{milliseconds} ms")
}
