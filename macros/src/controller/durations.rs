//! Durations as Go and Kubernetes write them: `"1h30m"`, `"500ms"`.

use std::time::Duration;

/// Units, with their length in nanoseconds; longer spellings first.
const UNITS: &[(&str, u128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration of whole numbers with units.
///
/// # Errors
/// The reason, which follows on a colon.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if text.trim() != text || text.is_empty() {
        return Err("it has neither blanks nor is it empty".to_owned());
    }
    if text.starts_with('-') {
        return Err("it is negative".to_owned());
    }
    let (mut rest, mut nanos, mut last) = (text, 0_u128, u128::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        if number.is_empty() {
            return Err(format!("a whole number is expected before `{behind}`"));
        }
        let letters = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(unit_fault(number, unit));
        };
        if *length >= last {
            return Err(format!("units go from the largest to the smallest, each once: `{unit}`"));
        }
        last = *length;
        let number: u128 = number.parse().map_err(|_| format!("`{number}` is too large"))?;
        nanos = number
            .checked_mul(*length)
            .and_then(|part| nanos.checked_add(part))
            .ok_or_else(|| format!("`{text}` is too long"))?;
        rest = behind;
    }
    let seconds =
        u64::try_from(nanos / 1_000_000_000).map_err(|_| format!("`{text}` is too long"))?;
    Ok(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

/// Returns the text against a unit.
fn unit_fault(number: &str, unit: &str) -> String {
    match unit {
        "" => format!("`{number}` has no unit; write `{number}s`"),
        "d" | "w" => format!("`{unit}` is not a unit, because not all days are equal; write hours"),
        "sec" | "secs" | "second" | "seconds" => format!("write `{number}s`"),
        "min" | "mins" | "minute" | "minutes" => format!("write `{number}m`"),
        other => format!("`{other}` is not a unit; there are `h`, `m`, `s`, `ms`, `us` and `ns`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let good = [
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1m500ms", 60_500),
            ("0s", 0),
            ("72h", 259_200_000),
        ];
        for (text, millis) in good {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", " 1s", "1", "1 s", "s", "-1s", "1d", "1s1m", "1s1s", "1.5h", "1min", "1S"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("99999999999999999999999999999999999999999h").is_err());
        assert!(parse("9999999999999999999999h").is_err());
    }
}
