//! IP addresses, with the strict parsing and the error texts of Go's `net/netip`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::text::go_quote;

/// An address without a zone, either IPv4 or IPv6 that maps no IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ip(IpAddr);

impl Ip {
    /// The address in a text, with the error text of Kubernetes' library.
    pub fn parse(raw: &str) -> Result<Ip, String> {
        let quoted = || go_quote(raw);
        let (address, has_zone) = parse_address(raw.as_bytes()).map_err(|error| {
            format!("IP Address {} parse error during conversion from string: {error}", quoted())
        })?;
        if has_zone {
            return Err(format!("IP address {} with zone value is not allowed", quoted()));
        }
        if is_mapped(address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted()));
        }
        Ok(Ip(address))
    }

    /// An address that is parsed already.
    pub(super) fn new(address: IpAddr) -> Ip {
        Ip(address)
    }

    /// The address as a type of the standard library.
    pub fn address(self) -> IpAddr {
        self.0
    }

    /// 4 or 6.
    pub fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    /// Number of bytes: 4 or 16.
    pub fn byte_len(self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }

    /// Whether the address is `0.0.0.0` or `::`.
    pub fn is_unspecified(self) -> bool {
        self.0.is_unspecified()
    }

    /// Whether the address is in `127.0.0.0/8` or is `::1`.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// Whether the address is in `224.0.0.0/24`, or a multicast address of IPv6 with the scope of
    /// the link.
    pub fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => {
                let [first, ..] = address.segments();
                first & 0xff0f == 0xff02
            }
        }
    }

    /// Whether the address is in `169.254.0.0/16` or in `fe80::/10`.
    pub fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }

    /// Whether the address is a unicast address beyond the host and the link; private addresses
    /// count.
    pub fn is_global_unicast(self) -> bool {
        !(self.0 == IpAddr::V4(Ipv4Addr::BROADCAST)
            || self.is_unspecified()
            || self.is_loopback()
            || self.0.is_multicast()
            || self.is_link_local_unicast())
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Whether an address is in `::ffff:0:0/96`.
pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// A failure: the reason and the rest of the text where known.
type ParseFailure<'t> = (&'static str, &'t [u8]);

/// An address, and whether there is a zone, with the error text of `netip.ParseAddr`.
pub(super) fn parse_address(text: &[u8]) -> Result<(IpAddr, bool), String> {
    let parsed = match text.iter().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_v4(text).map(|octets| (IpAddr::from(octets), false)),
        Some(b':') => parse_v6(text),
        Some(_) => Err(("missing IPv6 address", &b""[..])),
        None => Err(("unable to parse IP", &b""[..])),
    };
    parsed.map_err(|(reason, rest)| {
        let at = match rest {
            [] => String::new(),
            rest => format!(" (at {})", quote_bytes(rest)),
        };
        format!("ParseAddr({}): {reason}{at}", quote_bytes(text))
    })
}

/// The bytes as a string literal of Go; bytes that are not UTF-8 are escaped.
pub(super) fn quote_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let literal = go_quote(chunk.valid());
        quoted.push_str(literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default());
        for byte in chunk.invalid() {
            quoted.push_str(&format!("\\x{byte:02x}"));
        }
    }
    quoted.push('"');
    quoted
}

fn parse_v4(text: &[u8]) -> Result<[u8; 4], ParseFailure<'_>> {
    let mut octets = [0; 4];
    let (mut value, mut digits, mut place) = (0_u16, 0, 0);
    for (index, &byte) in text.iter().enumerate() {
        let rest = text.get(index..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", b""));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", b""));
                }
            }
            b'.' => {
                if digits == 0 || rest.len() == 1 {
                    return Err(("IPv4 field must have at least one digit", rest));
                }
                if place == 3 {
                    return Err(("IPv4 address too long", b""));
                }
                set(&mut octets, place, value as u8);
                place += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", rest)),
        }
    }
    if place < 3 {
        return Err(("IPv4 address too short", b""));
    }
    set(&mut octets, 3, value as u8);
    Ok(octets)
}

fn set(bytes: &mut [u8], index: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(index) {
        *byte = value;
    }
}

fn parse_v6(text: &[u8]) -> Result<(IpAddr, bool), ParseFailure<'_>> {
    let (address, zone) = match text.iter().position(|&byte| byte == b'%') {
        Some(percent) => {
            (text.get(..percent).unwrap_or_default(), text.get(percent + 1..).or(Some(&b""[..])))
        }
        None => (text, None),
    };
    if zone.is_some_and(<[u8]>::is_empty) {
        return Err(("zone must be a non-empty string", b""));
    }
    let mut fields = Ipv6Fields { bytes: Vec::with_capacity(16), ellipsis: None, rest: address };
    if let [b':', b':', rest @ ..] = address {
        fields.ellipsis = Some(0);
        fields.rest = rest;
        if rest.is_empty() {
            return Ok((IpAddr::V6(Ipv6Addr::UNSPECIFIED), zone.is_some()));
        }
    }
    while fields.bytes.len() < 16 && fields.next()? {}
    Ok((IpAddr::from(fields.expand()?), zone.is_some()))
}

/// The fields of an IPv6 address that are read so far.
struct Ipv6Fields<'t> {
    bytes: Vec<u8>,
    /// Place of `::` among the bytes.
    ellipsis: Option<usize>,
    rest: &'t [u8],
}

impl<'t> Ipv6Fields<'t> {
    /// Reads a field and the separator behind it; false at the end of the address.
    fn next(&mut self) -> Result<bool, ParseFailure<'t>> {
        let start = self.rest;
        let field = self.hex_field()?;
        if self.rest.first() == Some(&b'.') {
            return self.embedded_v4(start);
        }
        self.bytes.extend(field.to_be_bytes());
        match self.rest {
            [] => return Ok(false),
            [b':'] => return Err(("colon must be followed by more characters", self.rest)),
            [b':', rest @ ..] => self.rest = rest,
            _ => return Err(("unexpected character, want colon", self.rest)),
        }
        if let [b':', rest @ ..] = self.rest {
            if self.ellipsis.is_some() {
                return Err(("multiple :: in address", self.rest));
            }
            self.ellipsis = Some(self.bytes.len());
            self.rest = rest;
        }
        Ok(!self.rest.is_empty())
    }

    fn hex_field(&mut self) -> Result<u16, ParseFailure<'t>> {
        let start = self.rest;
        let mut field = 0_u16;
        let mut digits = 0;
        while let [byte, rest @ ..] = self.rest {
            let Some(digit) = char::from(*byte).to_digit(16) else { break };
            if digits == 4 {
                return Err(("each group must have 4 or less digits", start));
            }
            field = (field << 4) | digit as u16;
            digits += 1;
            self.rest = rest;
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", start));
        }
        Ok(field)
    }

    fn embedded_v4(&mut self, text: &'t [u8]) -> Result<bool, ParseFailure<'t>> {
        if self.ellipsis.is_none() && self.bytes.len() != 12 {
            let reason = "embedded IPv4 address must replace the final 2 fields of the address";
            return Err((reason, text));
        }
        if self.bytes.len() > 12 {
            let reason = "too many hex fields to fit an embedded IPv4 at the end of the address";
            return Err((reason, text));
        }
        self.bytes.extend(parse_v4(text)?);
        self.rest = b"";
        Ok(false)
    }

    fn expand(mut self) -> Result<[u8; 16], ParseFailure<'t>> {
        if !self.rest.is_empty() {
            return Err(("trailing garbage after address", self.rest));
        }
        let missing = 16_usize.saturating_sub(self.bytes.len());
        match self.ellipsis {
            None if missing > 0 => return Err(("address string too short", b"")),
            Some(_) if missing == 0 => {
                return Err(("the :: must expand to at least one field of zeros", b""));
            }
            Some(place) => drop(self.bytes.splice(place..place, vec![0; missing])),
            None => {}
        }
        self.bytes.try_into().map_err(|_| ("address string too short", &b""[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_displays_in_its_canonical_form() {
        let cases = [
            ("10.0.0.1", "10.0.0.1"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("::1.2.3.4", "::102:304"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ];
        for (text, canonical) in cases {
            assert_eq!(Ip::parse(text).map(|ip| ip.to_string()), Ok(canonical.to_owned()));
        }
    }

    #[test]
    fn a_malformed_address_has_the_reason_of_netip() {
        let cases = [
            ("", "unable to parse IP"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1..2.3", "IPv4 field must have at least one digit (at \".2.3\")"),
            ("1.2.3.é", "unexpected character (at \"é\")"),
            ("%eth0", "missing IPv6 address"),
            ("::1%", "zone must be a non-empty string"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("::12345", "each group must have 4 or less digits (at \"12345\")"),
            ("1:2", "address string too short"),
            ("1:2:3:4:5:6:7:8::", "the :: must expand to at least one field of zeros"),
            ("1:2:3:4:5:6:7:8:9", "trailing garbage after address (at \"9\")"),
        ];
        for (text, reason) in cases {
            let expected = format!(
                "IP Address \"{text}\" parse error during conversion from string: ParseAddr(\"{text}\"): {reason}"
            );
            assert_eq!(Ip::parse(text), Err(expected));
        }
    }

    #[test]
    fn zones_and_mapped_addresses_are_refused() {
        let zone = "IP address \"fe80::1%eth0\" with zone value is not allowed";
        assert_eq!(Ip::parse("fe80::1%eth0"), Err(zone.to_owned()));
        let mapped = "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed";
        assert_eq!(Ip::parse("::ffff:1.2.3.4"), Err(mapped.to_owned()));
    }

    #[test]
    fn private_addresses_are_global_unicast() {
        let is_global = |text| Ip::parse(text).map(Ip::is_global_unicast);
        for text in ["10.0.0.1", "fc00::1", "2001:db8::1"] {
            assert_eq!(is_global(text), Ok(true), "{text}");
        }
        for text in ["0.0.0.0", "255.255.255.255", "127.0.0.1", "224.0.1.1", "fe80::1", "ff0e::1"] {
            assert_eq!(is_global(text), Ok(false), "{text}");
        }
    }
}
