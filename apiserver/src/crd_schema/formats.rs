//! String formats that a real API server checks.
//!
//! Names are compared without dashes, as upstream does. Unknown formats are ignored.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{LazyLock, OnceLock};

use regex::Regex;

use super::names;

mod email;
mod uri;

/// Whether the format is checked.
pub(crate) fn known(format: &str) -> bool {
    let name = format.replace('-', "");
    matches!(
        name.as_str(),
        "bsonobjectid"
            | "uri"
            | "email"
            | "hostname"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "mac"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "creditcard"
            | "ssn"
            | "hexcolor"
            | "rgbcolor"
            | "byte"
            | "password"
            | "date"
            | "duration"
            | "datetime"
            | "k8sshortname"
            | "k8slongname"
    )
}

/// Whether the text has the format. Unknown formats accept every text.
pub(crate) fn valid(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "ipv4" => text.contains('.') && address(text).is_some(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "uri" => uri::valid(text),
        "email" => email::valid(text),
        "hostname" => hostname(text),
        "date" => date(text),
        "datetime" => date_time(text),
        "duration" => duration(text),
        "isbn" => isbn(text, 10) || isbn(text, 13),
        "isbn10" => isbn(text, 10),
        "isbn13" => isbn(text, 13),
        "creditcard" => credit_card(text),
        "ssn" => text.len() == 11 && is_like("ssn", text),
        "k8sshortname" => names::is_label(text),
        "k8slongname" => names::is_subdomain(text),
        name => is_like(name, text),
    }
}

/// Whether the text has the pattern of a format; `true` for formats without one.
fn is_like(name: &str, text: &str) -> bool {
    by_pattern(name).is_none_or(|pattern| pattern.is_match(text))
}

/// Returns the pattern of a format that a pattern describes; compiled once per process.
fn by_pattern(name: &str) -> Option<&'static Regex> {
    static PATTERNS: OnceLock<Vec<(&'static str, Regex)>> = OnceLock::new();
    const SOURCES: [(&str, &str); 14] = [
        // Labels of one letter are hosts only if they stand alone.
        (
            "hostname",
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        ),
        (
            "byte",
            r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
        ),
        // Digits of a card, without the check sum.
        (
            "creditcard",
            r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
        ),
        ("isbn10", "^(?:[0-9]{9}X|[0-9]{10})$"),
        ("isbn13", "^[0-9]{13}$"),
        ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
        (
            "mac",
            r"^(?:[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5}(?:(?::[0-9a-fA-F]{2}){2}|(?::[0-9a-fA-F]{2}){14})?|(?:-[0-9a-fA-F]{2}){5}(?:(?:-[0-9a-fA-F]{2}){2}|(?:-[0-9a-fA-F]{2}){14})?)|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}(?:\.[0-9a-fA-F]{4}|(?:\.[0-9a-fA-F]{4}){7})?|(?:[0-9a-fA-F]{2}){6}(?:(?:[0-9a-fA-F]{2}){2}|(?:[0-9a-fA-F]{2}){14})?)$",
        ),
        ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        ("ssn", r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
        ("hexcolor", r"^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        (
            "rgbcolor",
            r"^rgb\([\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$",
        ),
    ];
    let compiled = PATTERNS.get_or_init(|| {
        SOURCES.iter().filter_map(|(n, p)| Regex::new(p).ok().map(|r| (*n, r))).collect()
    });
    compiled.iter().find(|(n, _)| *n == name).map(|(_, r)| r)
}

/// Whether the text is an address with a prefix length.
fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    // The parser would accept a sign.
    if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let Ok(bits) = bits.parse::<u8>() else { return false };
    self::address(address).is_some_and(|address| match address {
        IpAddr::V4(_) => bits <= 32,
        IpAddr::V6(_) => bits <= 128,
    })
}

/// Reads an address as upstream's `ParseIPSloppy`: octets in decimal may begin with zeros.
fn address(text: &str) -> Option<IpAddr> {
    // The octets at the end of an address of the sixth version, too.
    let at = text.rfind(':').map_or(0, |colon| colon + 1);
    let (before, octets) = text.split_at(at);
    if !octets.contains('.') {
        return text.parse().ok();
    }
    let plain = |octet: &str| match octet.trim_start_matches('0') {
        "" if !octet.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let octets: Vec<String> = octets.split('.').map(plain).collect();
    format!("{before}{}", octets.join(".")).parse().ok()
}

/// Whether the text is a host name of letters, digits and dashes.
fn hostname(text: &str) -> bool {
    let is_short = text.len() <= 255 && text.split('.').all(|label| label.len() <= 63);
    is_short && by_pattern("hostname").is_none_or(|pattern| pattern.is_match(text))
}

/// Whether the text is a date `2006-01-02`.
fn date(text: &str) -> bool {
    // The parser accepts other forms, too; the length admits only `2006-01-02`.
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Whether the text is a time of RFC 3339, with letters in either case. Any character stands for
/// the dot of a fraction, and text behind a second `t` is not read, as upstream.
fn date_time(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
    });
    let text = text.to_lowercase();
    let mut halves = text.split('t');
    let (Some(day), Some(time)) = (halves.next(), halves.next()) else { return false };
    let Some(parts) = PATTERN.as_ref().and_then(|pattern| pattern.captures(time)) else {
        return false;
    };
    let at_most = |i: usize, most: &str| parts.get(i).is_some_and(|part| part.as_str() <= most);
    // The pattern admits two digits of any value.
    date(day) && at_most(1, "23") && at_most(2, "59") && at_most(3, "59")
}

/// Whether the text is a duration of Go (`1h30m`) or of Scala (`22 ns`, `5 days`, `P1D`).
fn duration(text: &str) -> bool {
    go_duration(text) || scala_duration(text)
}

/// Whether the text is a duration in Go's notation.
fn go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    // Nanoseconds: a longer duration than Go has is none.
    let mut total = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = &rest[..digits];
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let nanos = match &rest[..unit] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000_i64,
            _ => return false,
        };
        let whole = number.split('.').next().unwrap_or_default();
        let whole = if whole.is_empty() { Some(0) } else { whole.parse().ok() };
        let sum = whole.and_then(|whole: i64| total.checked_add(whole.checked_mul(nanos)?));
        let Some(sum) = sum else { return false };
        total = sum;
        rest = &rest[unit..];
    }
    true
}

/// Units of durations: names in full, and the beginning of longer names.
const UNITS: [(&[&str], &str); 8] = [
    (&["ns"], "nano"),
    (&["us", "µs"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "wk"], "week"),
];

/// Whether a number with a unit stands anywhere in the text, as `5 days` in `P5 days`:
/// kube-apiserver ignores what stands around it. A number that exceeds an integer of 64 bits
/// refuses the whole text.
fn scala_duration(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)").ok());
    let Some(pattern) = PATTERN.as_ref() else { return false };
    let mut has_unit = false;
    for found in pattern.captures_iter(text) {
        let [number, unit] = [1, 2].map(|i| found.get(i).map_or("", |part| part.as_str()));
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        has_unit |=
            UNITS.iter().any(|(names, long)| names.contains(&&*unit) || unit.starts_with(long));
    }
    has_unit
}

/// Whether the text is an ISBN with this number of digits and a correct check digit.
fn isbn(text: &str, length: usize) -> bool {
    let text = text.replace(['\t', '\n', '\x0c', '\r', ' ', '-'], "");
    let is_short = length == 10;
    if !is_like(if is_short { "isbn10" } else { "isbn13" }, &text) {
        return false;
    }
    // `X` is the last digit of the short form.
    let digits = text.chars().map(|c| c.to_digit(10).unwrap_or(10));
    if is_short {
        let sum: u32 = digits.zip(1..).map(|(digit, weight)| digit * weight).sum();
        return sum.is_multiple_of(11);
    }
    let sum: u32 = digits.zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    sum.is_multiple_of(10)
}

/// Whether the digits in the text are those of a credit card with a correct check sum (Luhn).
fn credit_card(text: &str) -> bool {
    let text: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = text.chars().rev().filter_map(|c| c.to_digit(10));
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 =
        digits.enumerate().map(|(i, digit)| if i % 2 == 1 { doubled(digit) } else { digit }).sum();
    is_like("creditcard", &text) && sum.is_multiple_of(10)
}
