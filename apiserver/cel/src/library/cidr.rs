//! Network prefixes, with the parsing and the error texts of Go's `net/netip`.

use std::fmt;
use std::net::IpAddr;

use super::ip::{Ip, is_mapped, parse_address};
use super::text::go_quote;

/// An address and the number of bits that name the network. The other bits are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    address: Ip,
    bits: u8,
}

impl Cidr {
    /// The prefix in a text, with the error text of Kubernetes' library.
    pub fn parse(raw: &str) -> Result<Cidr, String> {
        // The library adds this text twice to an error of the parser.
        const CONTEXT: &str = "network address parse error during conversion from string: ";
        let (address, bits) = parse_prefix(raw).map_err(|error| {
            format!("{CONTEXT}{CONTEXT}netip.ParsePrefix({}): {error}", go_quote(raw))
        })?;
        if is_mapped(address) {
            let quoted = go_quote(raw);
            return Err(format!("{CONTEXT}IPv4-mapped IPv6 address {quoted} is not allowed"));
        }
        Ok(Cidr { address: Ip::new(address), bits })
    }

    /// The address, with all bits.
    pub fn ip(self) -> Ip {
        self.address
    }

    /// Number of bits that name the network.
    pub fn prefix_length(self) -> i64 {
        i64::from(self.bits)
    }

    /// Number of bytes that the bits of the network take.
    pub fn byte_len(self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }

    /// The prefix with zeros behind the bits of the network.
    pub fn masked(self) -> Cidr {
        Cidr { address: Ip::new(mask(self.address.address(), self.bits)), bits: self.bits }
    }

    /// Whether the network has this address.
    pub fn contains_ip(self, ip: Ip) -> bool {
        mask(ip.address(), self.bits) == mask(self.address.address(), self.bits)
    }

    /// Whether the network has every address of another.
    pub fn contains_cidr(self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains_ip(other.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let host_bits = 32_u32.saturating_sub(u32::from(bits));
            let ones = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & ones).into())
        }
        IpAddr::V6(v6) => {
            let host_bits = 128_u32.saturating_sub(u32::from(bits));
            let ones = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & ones).into())
        }
    }
}

fn parse_prefix(raw: &str) -> Result<(IpAddr, u8), String> {
    let Some((address, bits)) = raw.rsplit_once('/') else { return Err("no '/'".to_owned()) };
    let (address, has_zone) = parse_address(address.as_bytes())?;
    if has_zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let is_number = bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let number = if is_number { bits.parse::<i64>().ok() } else { None };
    let Some(number) = number else {
        return Err(format!("bad bits after slash: {}", go_quote(bits)));
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(number) {
        Ok(bits) if bits <= longest => Ok((address, bits)),
        _ => Err("prefix length out of range".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_the_bits_of_the_host_until_it_is_masked() -> Result<(), String> {
        let cidr = Cidr::parse("10.1.2.3/8")?;
        assert_eq!(
            (cidr.to_string(), cidr.ip().to_string()),
            ("10.1.2.3/8".into(), "10.1.2.3".into())
        );
        assert_eq!(cidr.masked().to_string(), "10.0.0.0/8");
        assert_eq!(Cidr::parse("2001:db8::1/0")?.masked().to_string(), "::/0");
        Ok(())
    }

    #[test]
    fn a_network_contains_only_longer_prefixes_of_its_family() -> Result<(), String> {
        let cidr = Cidr::parse("10.0.0.0/8")?;
        let cases =
            [("10.1.0.0/16", true), ("10.0.0.0/8", true), ("10.0.0.0/7", false), ("::/8", false)];
        for (other, is_contained) in cases {
            assert_eq!(cidr.contains_cidr(Cidr::parse(other)?), is_contained, "{other}");
        }
        assert!(!Cidr::parse("0.0.0.0/0")?.contains_ip(Ip::parse("::")?));
        Ok(())
    }

    #[test]
    fn a_malformed_prefix_has_the_reason_of_netip() {
        let cases = [
            ("10.0.0.1", "no '/'"),
            ("10.0.0.0/", "bad bits after slash: \"\""),
            ("10.0.0.0/08", "bad bits after slash: \"08\""),
            ("10.0.0.0/+8", "bad bits after slash: \"+8\""),
            ("10.0.0.0/33", "prefix length out of range"),
            ("fe80::1%a/8", "IPv6 zones cannot be present in a prefix"),
        ];
        for (text, reason) in cases {
            let error = Cidr::parse(text).err().unwrap_or_default();
            assert!(
                error.ends_with(&format!("netip.ParsePrefix(\"{text}\"): {reason}")),
                "{error}"
            );
        }
    }
}
