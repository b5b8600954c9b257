//! String formats that a real API server checks.
//!
//! Names are compared without dashes, as upstream does. Unknown formats are ignored.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{LazyLock, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::names;

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
        "uri" => uri(text),
        "email" => email(text),
        "hostname" => hostname(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "date" => date(text),
        "datetime" => date_time(text),
        "duration" => duration(text),
        "isbn" => isbn(text, 10) || isbn(text, 13),
        "isbn10" => isbn(text, 10),
        "isbn13" => isbn(text, 13),
        "creditcard" => credit_card(text),
        "k8sshortname" => names::is_label(text),
        "k8slongname" => names::is_subdomain(text),
        name => by_pattern(name).is_none_or(|pattern| pattern.is_match(text)),
    }
}

/// Returns the pattern of a format that a pattern describes; compiled once per process.
fn by_pattern(name: &str) -> Option<&'static Regex> {
    static PATTERNS: OnceLock<Vec<(&'static str, Regex)>> = OnceLock::new();
    const SOURCES: [(&str, &str); 10] = [
        // Labels of one letter are hosts only if they stand alone.
        (
            "hostname",
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        ),
        ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
        (
            "mac",
            r"^(?:[0-9a-fA-F]{2}(?:(?::[0-9a-fA-F]{2}){5,19}|(?:-[0-9a-fA-F]{2}){5,19})|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2,9})$",
        ),
        ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        ("ssn", r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"),
        ("hexcolor", r"^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        (
            "rgbcolor",
            r"^rgb\( *(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5]) *, *(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5]) *, *(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5]) *\)$",
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
    if bits.is_empty() || bits.len() > 3 || !bits.bytes().all(|b| b.is_ascii_digit()) {
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

/// Whether the text is an absolute URI, or a path that begins with a slash.
fn uri(text: &str) -> bool {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f || b == b' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let mut bytes = scheme.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Whether the text is an address, also in the form `Name <address>`.
fn email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.ends_with('>')) {
        // The address of `Name <address>`.
        (Some(open), true) => &text[open + 1..text.len() - 1],
        _ => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |s: &str| {
        !s.is_empty()
            && s.split('.').all(|part| {
                !part.is_empty()
                    && part
                        .chars()
                        .all(|c| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c))
            })
    };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    (atom(local) || quoted) && atom(domain)
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

/// Whether the text is a time of RFC 3339, with letters in either case.
fn date_time(text: &str) -> bool {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let source =
            r"(?i)^(\d{4}-\d{2}-\d{2})t(\d{2}):(\d{2}):(\d{2})(\.\d+)?(z|[+-]\d{2}:\d{2})$";
        Regex::new(source).ok()
    });
    let Some(parts) = pattern.as_ref().and_then(|p| p.captures(text)) else { return false };
    let number = |i: usize| parts.get(i).and_then(|m| m.as_str().parse::<u8>().ok());
    parts.get(1).is_some_and(|m| date(m.as_str()))
        // The pattern admits two digits of any value.
        && number(2).is_some_and(|h| h <= 23)
        && number(3).is_some_and(|m| m <= 59)
        && number(4).is_some_and(|s| s <= 59)
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
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = &rest[..digits];
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return false;
        }
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        if !matches!(&rest[..unit], "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
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
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| match c {
            // Check digit of the form with ten digits.
            'X' | 'x' => 10,
            // 99 is no digit and fails the checks below.
            c => c.to_digit(10).unwrap_or(99),
        })
        .collect();
    let Some((last, head)) = digits.split_last() else { return false };
    if digits.len() != length || head.iter().any(|d| *d > 9) {
        return false;
    }
    match length {
        10 => {
            let sum: u32 = digits.iter().zip(1..).map(|(d, i)| d * i).sum();
            *last <= 10 && sum.is_multiple_of(11)
        }
        _ => {
            let sum: u32 = digits.iter().zip([1, 3].iter().cycle()).map(|(d, w)| d * w).sum();
            *last <= 9 && sum.is_multiple_of(10)
        }
    }
}

/// Whether the text has the digits of a credit card with a correct check sum (Luhn).
fn credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match i % 2 {
            1 if *d > 4 => d * 2 - 9,
            1 => d * 2,
            _ => *d,
        })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}
