//! Values that grow with delays or with failures: durations in a status, numbers of attempts, or
//! messages that have such numbers. A disturbance makes them larger, and no run has the same.

// DESIGN.md, 296: Numbers that grow with delays and with failures are learned from worse runs

use std::collections::BTreeMap;

use crate::testing::explore::state::{self, End, Masks, StateDifference};

/// Seconds of the units that durations have in Go's and in ISO 8601's form.
const UNITS: [(&str, f64); 8] = [
    ("d", 86_400.0),
    ("h", 3_600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ns", 1e-9),
];

/// Length of a date.
const DATE: usize = 10;
/// Seconds of a day.
const SECONDS_OF_DAY: f64 = 86_400.0;
/// More than the months of a year, and than the days of a month.
const MOST_PARTS: f64 = 32.0;

/// Adds the places whose numbers are larger in the end of each worse run than in the one before.
/// A value that becomes smaller, or that two of the runs share, is not among them. Positions in
/// lists do not count, as in all masks.
pub(in crate::testing::explore) fn learn(first: &End, worse: &[End], masks: &mut Masks) {
    let found = worse.iter().map(|end| by_place(state::differences(first, end, masks)));
    let found: Vec<BTreeMap<_, _>> = found.collect();
    let Some((next, later)) = found.split_first().filter(|(_, later)| !later.is_empty()) else {
        return;
    };
    let mut grown = Vec::new();
    for (place, differences) in next {
        let others = later.iter().map(|differences| differences.get(place));
        let Some(others) = others.collect::<Option<Vec<_>>>() else { continue };
        let is_one_each = others.iter().all(|other| other.len() == differences.len());
        let is_growing = |(at, difference): (usize, &StateDifference)| {
            let [old, new] = &difference.sides;
            let later = others.iter().map(|other| &other[at].sides[1]);
            grows(&[old, new].into_iter().chain(later).collect::<Vec<_>>())
        };
        if is_one_each && differences.iter().enumerate().all(is_growing) {
            grown.extend(differences.first().cloned());
        }
    }
    grown.iter().for_each(|difference| difference.mask(masks));
}

/// Returns differences by key and path.
fn by_place(differences: Vec<StateDifference>) -> BTreeMap<(String, String), Vec<StateDifference>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for difference in differences {
        let place = (difference.key.clone(), difference.path.clone());
        found.entry(place).or_default().push(difference);
    }
    found
}

/// Whether texts differ in numbers alone, of which none becomes smaller and at least one larger
/// from each text to the next.
pub(in crate::testing::explore) fn grows<T: AsRef<str>>(texts: &[T]) -> bool {
    let read: Vec<(String, Vec<f64>)> = texts.iter().map(|text| numbers(text.as_ref())).collect();
    read.windows(2).all(|pair| {
        let [(words, old), (others, new)] = pair else { return false };
        let mut both = old.iter().zip(new);
        words == others
            && both.clone().all(|(old, new)| old <= new)
            && both.any(|(old, new)| old < new)
    })
}

/// Returns a text with a mark in place of each number, duration and time, and these: durations in
/// seconds.
fn numbers(text: &str) -> (String, Vec<f64>) {
    let (mut words, mut found) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if !next.is_ascii_digit() {
            words.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let read = moment(rest).or_else(|| clock(rest)).or_else(|| duration(rest));
        let (number, unit, behind) = read.unwrap_or_else(|| number(rest));
        words.push('#');
        words.push_str(unit);
        found.push(number);
        rest = behind;
    }
    (words, found)
}

/// Reads the number that a text begins with; without a unit.
fn number(text: &str) -> (f64, &'static str, &str) {
    let is_part = |sign: char| sign.is_ascii_digit() || sign == '.';
    let end = text.find(|sign| !is_part(sign)).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches('.');
    (digits.parse().unwrap_or_default(), "", &text[digits.len()..])
}

/// Reads the date and time that a text begins with, such as `2026-01-01 00:01:30`, as a number that
/// is larger for a later one.
fn moment(text: &str) -> Option<(f64, &'static str, &str)> {
    let (date, behind) = (text.get(..DATE)?, text.get(DATE..)?);
    let mut days = 0.0;
    for (part, longest) in date.split('-').zip([4, 2, 2]) {
        let is_part = part.len() == longest && part.bytes().all(|sign| sign.is_ascii_digit());
        days = days * MOST_PARTS + is_part.then(|| part.parse::<f64>().ok())??;
    }
    let (seconds, _, rest) = clock(behind.strip_prefix(['T', ' '])?)?;
    Some((days * SECONDS_OF_DAY + seconds, " at", rest))
}

/// Reads the time of a day, or the hours and minutes, that a text begins with, such as `0:01:30`,
/// in seconds.
fn clock(text: &str) -> Option<(f64, &'static str, &str)> {
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != ':' && sign != '.');
    let (found, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut seconds = 0.0;
    let parts: Vec<&str> = found.split(':').collect();
    for (part, factor) in parts.iter().zip([3_600.0, 60.0, 1.0]) {
        seconds += part.parse::<f64>().ok()? * factor;
    }
    matches!(parts.len(), 2 | 3).then_some((seconds, " at", rest))
}

/// Reads the duration that a text begins with, such as `1m20.5s`, in seconds.
fn duration(text: &str) -> Option<(f64, &'static str, &str)> {
    let (mut seconds, mut rest) = (0.0, text);
    while rest.starts_with(|sign: char| sign.is_ascii_digit()) {
        let (count, _, behind) = number(rest);
        let end = behind.find(|sign: char| !sign.is_alphabetic()).unwrap_or(behind.len());
        let unit = behind[..end].to_lowercase();
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += count * factor;
        rest = &behind[end..];
    }
    Some((seconds, " s", rest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end(status: &Value) -> End {
        End::from([("items default/a".to_owned(), vec![json!({ "status": status })])])
    }

    /// Whether the ends of two worse runs let a status differ from that of the first run.
    fn is_learned(first: &Value, worse: [&Value; 2], other: &Value) -> bool {
        let mut masks = Masks::new();
        learn(&end(first), &worse.map(end), &mut masks);
        state::differences(&end(first), &end(other), &masks).is_empty()
    }

    #[test]
    fn numbers_and_durations_that_grow_with_each_delay_may_differ() {
        let of = |value: Value| json!({ "after": value });
        let forms = [
            [json!(0), json!(7), json!(29), json!(12)],
            [json!("850ms"), json!("7.1s"), json!("1m2s"), json!("12s")],
            [json!("PT0S"), json!("PT7S"), json!("PT1M2S"), json!("PT12S")],
            [
                json!("ready after 2s, try 1"),
                json!("ready after 7s, try 1"),
                json!("ready after 29s, try 2"),
                json!("ready after 12s, try 3"),
            ],
        ];
        for form in forms {
            let [first, next, last, other] = form.map(of);
            assert!(is_learned(&first, [&next, &last], &other), "{first} to {last}");
        }
    }

    #[test]
    fn other_values_that_delays_change_must_stay() {
        let of = |value: Value| json!({ "count": value });
        let forms = [
            // Not from each run to the next.
            [json!(1), json!(2), json!(2), json!(3)],
            [json!(2), json!(1), json!(3), json!(4)],
            [json!("one of 2"), json!("all of 3"), json!("all of 4"), json!("all of 5")],
            [json!(true), json!(false), json!(true), json!(false)],
            [json!(1), json!(1), json!(1), json!(2)],
        ];
        for form in forms {
            let [first, next, last, other] = form.map(of);
            assert!(!is_learned(&first, [&next, &last], &other), "{first} to {last}");
        }
    }

    #[test]
    fn a_duration_that_is_absent_is_a_difference() {
        let of = |value: Value| json!({ "after": value });
        let (first, next, last) = (of(json!(1)), of(json!(7)), of(json!(29)));
        assert!(!is_learned(&first, [&next, &last], &json!({})));
    }

    #[test]
    fn an_item_of_a_list_that_grows_lets_that_field_of_all_items_differ() {
        let of =
            |values: [i64; 2]| json!({ "steps": values.map(|value| json!({ "took": value })) });
        assert!(is_learned(&of([0, 1]), [&of([7, 1]), &of([29, 1])], &of([9, 2])));
        assert!(!is_learned(&of([0, 1]), [&of([7, 8]), &of([29, 8])], &of([9, 12])));
    }
}
