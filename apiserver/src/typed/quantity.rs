//! The spelling of quantities: the server's own type reads `1000m` and writes `1`.

// DESIGN.md, 237: Objects hold quantities in the server's spelling

/// Suffixes of powers of 1024, the smallest first.
pub(crate) const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Suffixes of powers of 1000, the smallest first.
pub(crate) const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];

/// A quantity as it is read.
struct Parsed {
    /// The amount in billionths.
    nano: i128,
    /// The power of ten that the suffix stands for.
    ten: i32,
    /// Notation of the suffix.
    form: QuantityFormat,
    /// Whether the number has neither a fraction nor a zero at the end.
    is_short: bool,
}

/// Reads a quantity; `None` if the text is none, or has too many digits.
fn parse(text: &str) -> Option<Parsed> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic());
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let place = |list: &[&str]| list.iter().position(|known| *known == suffix);
    // The power of ten or of two that the suffix stands for, and how the result is written.
    let (ten, two, form) = match suffix {
        "" => (0, 0, QuantityFormat::Decimal),
        "m" => (-3, 0, QuantityFormat::Decimal),
        "u" => (-6, 0, QuantityFormat::Decimal),
        "n" => (-9, 0, QuantityFormat::Decimal),
        _ => match (place(&BINARY), place(&DECIMAL)) {
            (Some(at), _) => (0, 10 * (at + 1), QuantityFormat::Binary),
            (_, Some(at)) => (3 * i32::try_from(at + 1).ok()?, 0, QuantityFormat::Decimal),
            _ => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 0, QuantityFormat::Exponent),
        },
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let nano =
        scaled(digits.checked_mul(1_i128 << two)?, ten.checked_sub(places)?.checked_add(9)?)?;
    Some(Parsed { nano, ten, form, is_short: fraction.is_empty() && digits % 10 != 0 })
}

/// Returns the amount of a quantity in billionths; `None` if the text is none, or has too many
/// digits.
pub(super) fn amount(text: &str) -> Option<i128> {
    parse(text.trim()).map(|parsed| parsed.nano)
}

/// Returns a quantity in the spelling of the server's own type; `None` if unchanged.
///
/// `up` rounds up to thousandths, as the defaults of lists of resources do. Nine places after the
/// point are kept, as the type does.
pub(super) fn canonical(text: &str, up: bool) -> Option<String> {
    let text = text.trim();
    let Parsed { nano, ten, form, is_short } = parse(text)?;
    let step = if up { 1_000_000 } else { 1 };
    let rest = i128::from(nano % step != 0) * nano.signum();
    let nano = (nano / step + rest) * step;
    // Beyond the type's range; the text is kept.
    if nano.abs() > i128::from(i64::MAX) * 1_000_000_000 {
        return None;
    }
    let spelled = spell(nano, form);
    // Digits that need no other spelling are kept with their sign and zeros.
    let is_kept = is_short && ten % 3 == 0 && nano % NANO == 0 && form != QuantityFormat::Binary;
    (!is_kept && spelled != text).then_some(spelled)
}

/// Thousandths of millionths in one.
const NANO: i128 = 1_000_000_000;

/// Notation of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    /// With suffixes of powers of 1000.
    Decimal,
    /// With suffixes of powers of 1024.
    Binary,
    /// With an exponent.
    Exponent,
}

/// Returns digits times a power of ten, rounded away from zero.
fn scaled(digits: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return digits.checked_mul(factor?);
    }
    // Less than the smallest part, but not nothing.
    let Some(factor) = factor else { return Some(digits.signum()) };
    Some(digits / factor + i128::from(digits % factor != 0) * digits.signum())
}

/// Writes billionths with the largest suffix that loses nothing.
fn spell(nano: i128, form: QuantityFormat) -> String {
    if nano == 0 {
        return "0".to_owned();
    }
    let whole = nano / NANO;
    if form == QuantityFormat::Binary && nano % NANO == 0 && whole.abs() >= 1024 {
        return suffixed(whole, 1024, &BINARY);
    }
    let (mut number, mut power) = (nano, -9);
    while number % 1000 == 0 && power < 18 {
        number /= 1000;
        power += 3;
    }
    let parts = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let suffix = usize::try_from(power / 3 + 3).ok().and_then(|at| parts.get(at).copied());
    match form {
        QuantityFormat::Exponent if power == 0 => number.to_string(),
        QuantityFormat::Exponent => format!("{number}e{power}"),
        _ => format!("{number}{}", suffix.unwrap_or_default()),
    }
}

/// Writes a number with the largest of some suffixes that loses nothing.
pub(crate) fn suffixed(mut number: i128, step: i128, suffixes: &[&str]) -> String {
    let mut suffix = "";
    for larger in suffixes {
        if number == 0 || number % step != 0 {
            break;
        }
        number /= step;
        suffix = larger;
    }
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_hold_the_spelling_of_the_server() {
        // Recorded from kube-apiserver: a quantity as sent, and as read.
        for (sent, read) in [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5", "500m"),
            ("1e3", "1e3"),
            ("1e-3", "1e-3"),
            ("12e5", "1200e3"),
            ("5e1", "50"),
            ("1.2e3", "1200"),
            ("1000k", "1M"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("100n", "100n"),
            ("0.0001", "100u"),
            ("1.10", "1100m"),
            ("0.0000000001", "1n"),
            ("0Mi", "0"),
            ("-1024Mi", "-1Gi"),
            ("0.5Ki", "512"),
            ("01", "01"),
            ("12.34Ki", "12636160m"),
            ("0.1Gi", "107374182400m"),
            ("1.5E", "1500P"),
            ("+1", "+1"),
            ("1048576Ki", "1Gi"),
            ("10000u", "10m"),
            ("1023Ki", "1023Ki"),
            ("3.000m", "3m"),
            ("1.", "1."),
            ("99999999999999999999", "99999999999999999999"),
            ("1_0", "1_0"),
            ("x", "x"),
            ("", ""),
        ] {
            assert_eq!(canonical(sent, false).as_deref().unwrap_or(sent), read, "{sent}");
        }
        for (sent, read) in [("100n", "1m"), ("0.0001", "1m"), ("1500m", "1500m"), ("1u", "1m")] {
            assert_eq!(canonical(sent, true).as_deref().unwrap_or(sent), read, "{sent}");
        }
    }
}
