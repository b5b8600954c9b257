//! Faults of schedules, in the words of the library that the server reads them with.

/// A field of a schedule: least and largest value, and names of values from the least on.
type CronField = (i64, i64, &'static [&'static str]);

/// Minutes, hours, days, months and weekdays.
const FIELDS: [CronField; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];
/// Names of schedules.
const NAMED: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Returns the fault of a schedule, if any.
pub(super) fn fault(text: &str) -> Option<String> {
    if text.starts_with('@') {
        return descriptor(text).err();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != FIELDS.len() {
        let found = words.join(" ");
        return Some(format!("expected exactly 5 fields, found {}: [{found}]", words.len()));
    }
    words.iter().zip(FIELDS).find_map(|(word, field)| {
        word.split(',').filter(|part| !part.is_empty()).find_map(|part| range(part, field).err())
    })
}

/// Reads a name or `@every` with a duration.
fn descriptor(text: &str) -> Result<(), String> {
    if NAMED.contains(&text) {
        return Ok(());
    }
    let Some(period) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    duration(period).map_err(|why| format!("failed to parse duration {text}: {why}"))
}

/// Reads a duration of Go, such as `1h30m`.
fn duration(text: &str) -> Result<(), String> {
    let invalid = || Err(format!("time: invalid duration {text:?}"));
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (number, tail) =
            rest.split_at(rest.find(|letter: char| !is_number(letter)).unwrap_or(rest.len()));
        if !number.contains(|letter: char| letter.is_ascii_digit()) {
            return invalid();
        }
        let (unit, tail) = tail.split_at(tail.find(is_number).unwrap_or(tail.len()));
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = tail,
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            other => return Err(format!("time: unknown unit {other:?} in duration {text:?}")),
        }
    }
    Ok(())
}

/// Reads a range such as `*`, `5`, `1-5` or `0-30/10`.
fn range(text: &str, (least, most, names): CronField) -> Result<(), String> {
    let steps: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let is_single = ends.len() == 1;
    let (first, mut last) = match ends.as_slice() {
        ["*" | "?", ..] => (least, most),
        [one] => {
            let one = value(one, least, names)?;
            (one, one)
        }
        [first, last] => (value(first, least, names)?, value(last, least, names)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if is_single {
                last = most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if first < least {
        return Err(format!("beginning of range ({first}) below minimum ({least}): {text}"));
    }
    if last > most {
        return Err(format!("end of range ({last}) above maximum ({most}): {text}"));
    }
    if first > last {
        return Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

/// Reads a number or a name.
fn value(text: &str, least: i64, names: &[&str]) -> Result<i64, String> {
    let lower = text.to_lowercase();
    match names.iter().position(|name| *name == lower) {
        Some(at) => Ok(least + i64::try_from(at).unwrap_or_default()),
        None => number(text),
    }
}

/// Reads a number that is not negative.
fn number(text: &str) -> Result<i64, String> {
    let number: i64 = text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })?;
    if number < 0 {
        return Err(format!("negative number ({number}) not allowed: {text}"));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_five_fields_in_their_ranges() {
        for fine in ["*/5 0 1-5 JAN MON", "@hourly", "@every 1h30m", "0 0 31 2 *", "5/20 * ? * sun"]
        {
            assert_eq!(fault(fine), None, "{fine}");
        }
        // Recorded from kube-apiserver.
        for (text, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@bogus", "unrecognized descriptor: @bogus"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ] {
            assert_eq!(fault(text).as_deref(), Some(why), "{text}");
        }
        assert!(fault("a * * * *").is_some_and(|why| why.starts_with("failed to parse int")));
    }
}
