//! The period of validity of a certificate, read from its DER.
//!
//! Only the way to the two times is read: the rest is for the TLS library.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// First and last moment of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag of the version, which certificates of version 1 do not have.
const VERSION: u8 = 0xa0;

impl Validity {
    /// Returns the validity of a certificate; `None` when the DER is none.
    pub(crate) fn of(der: &[u8]) -> Option<Self> {
        let (certificate, _) = element(der, SEQUENCE)?;
        let (signed, _) = element(certificate, SEQUENCE)?;
        let signed = match signed.first()? {
            &VERSION => element(signed, VERSION)?.1,
            _ => signed,
        };
        let (_, rest) = element(signed, INTEGER)?;
        let (_algorithm, rest) = element(rest, SEQUENCE)?;
        let (_issuer, rest) = element(rest, SEQUENCE)?;
        let (validity, _) = element(rest, SEQUENCE)?;
        let (not_before, rest) = time(validity)?;
        let (not_after, _) = time(rest)?;
        Some(Self { not_before, not_after })
    }

    /// Returns the part of the life that is left at a moment, in percent; negative after its end.
    pub(crate) fn left_percent(&self, now: Timestamp) -> i64 {
        let seconds = |from: Timestamp, to: Timestamp| to.as_second() - from.as_second();
        let whole = seconds(self.not_before, self.not_after).max(1);
        seconds(now, self.not_after).saturating_mul(100) / whole
    }
}

/// Returns the content of the element at the start, and the bytes behind it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        // Certificates have lengths of up to four bytes.
        let count = usize::from(first & 0x7f);
        if !(1..=4).contains(&count) || rest.len() < count {
            return None;
        }
        let (bytes, rest) = rest.split_at(count);
        (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    (rest.len() >= length).then(|| rest.split_at(length))
}

/// Reads a time, and returns the bytes behind it.
fn time(der: &[u8]) -> Option<(Timestamp, &[u8])> {
    let tag = *der.first()?;
    let (text, rest) = element(der, tag)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        // Two digits of a year: RFC 5280 has them from 1950 to 2049.
        UTC_TIME => {
            let year: u8 = text.get(..2)?.parse().ok()?;
            format!("{}{text}", if year < 50 { 20 } else { 19 })
        }
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let parsed = DateTime::strptime("%Y%m%d%H%M%S", &text).ok()?;
    Some((parsed.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(), rest))
}
