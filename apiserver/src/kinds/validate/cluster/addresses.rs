//! Addresses and blocks of addresses: Go's two ways to read them, and the kinds made of them.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;

use super::items;
use crate::kinds::validate::fields::{is_empty, named};
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Fault of a text that is no address in any form.
const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// Fault of a text that is no block in any form.
const NO_BLOCK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Reads an address as older servers did: parts of IPv4 may begin with zeros.
fn sloppy(text: &str) -> Option<IpAddr> {
    let (head, tail) = match text.rsplit_once(':') {
        Some((head, tail)) => (format!("{head}:"), tail),
        None => (String::new(), text),
    };
    if !tail.contains('.') {
        return text.parse().ok();
    }
    let parts: Vec<&str> = tail
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    format!("{head}{}", parts.join(".")).parse().ok()
}

/// Returns the address of IPv4 that an address of IPv6 wraps.
fn wrapped(address: IpAddr) -> Option<std::net::Ipv4Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => address.to_ipv4_mapped(),
    }
}

/// Returns the faults of an address in a field that older servers read loosely.
pub(in crate::kinds::validate) fn ip_faults(text: &str) -> Vec<String> {
    let Some(address) = sloppy(text) else { return vec![NO_ADDRESS.to_owned()] };
    let mut faults = Vec::new();
    if text.parse::<IpAddr>().is_err() {
        faults.push("must not have leading 0s".to_owned());
    } else if wrapped(address).is_some() {
        faults.push("must not be an IPv4-mapped IPv6 address".to_owned());
    }
    faults
}

/// Returns the faults of an address in a newer field, where only the canonical form is allowed.
pub(super) fn strict_faults(text: &str) -> Vec<String> {
    let faults = ip_faults(text);
    match text.parse::<IpAddr>() {
        Ok(address) if faults.is_empty() && address.to_string() != text => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        _ => faults,
    }
}

/// Returns the warning about an address of IPv6 that is not spelled as others spell it.
pub(in crate::kinds) fn ip_warning(at: &str, text: &str) -> Option<String> {
    let address = text.parse::<Ipv6Addr>().ok()?;
    let shown = address.to_string();
    (shown != text).then(|| {
        format!("{at}: IPv6 address {text:?} should be in RFC 5952 canonical format ({shown:?})")
    })
}

/// Returns the warning about a block of IPv6 that is not spelled as others spell it.
pub(super) fn block_warning(at: &str, text: &str) -> Option<String> {
    let block = Block::read(text).filter(|block| block.address.is_ipv6())?;
    let shown = format!("{}/{}", block.address, block.length);
    (shown != text && block_faults(text).is_empty()).then(|| {
        format!("{at}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({shown:?})")
    })
}

/// Fault of an address of loopback.
pub(super) const LOOPBACK: &str = "may not be in the loopback range (127.0.0.0/8, ::1/128)";

/// Returns the faults of an address to which traffic of Services goes.
pub(in crate::kinds::validate) fn endpoint_faults(text: &str) -> Vec<String> {
    let Some(address) = sloppy(text) else { return vec!["must be a valid IP address".to_owned()] };
    let address = wrapped(address).map_or(address, IpAddr::V4);
    let (is_link, is_link_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
        }
    };
    let rules = [
        (address.is_unspecified(), format!("may not be unspecified ({text})")),
        (address.is_loopback(), LOOPBACK.to_owned()),
        (is_link, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (
            is_link_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    rules.into_iter().filter(|(holds, _)| *holds).map(|(_, why)| why).collect()
}

/// A block of addresses.
#[derive(Clone, Copy)]
struct Block {
    address: IpAddr,
    length: u32,
}

impl Block {
    /// Reads a block; `None` if the text is none even in older servers' eyes.
    fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| is_number)?;
        let address = sloppy(address)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (length <= bits).then_some(Self { address, length })
    }

    /// Returns the block without the bits behind the prefix.
    fn cut(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.length).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.length).unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, ..self }
    }
}

/// Returns the faults of a block of addresses in a field that older servers read loosely.
pub(in crate::kinds::validate) fn block_faults(text: &str) -> Vec<String> {
    let mut faults = strict_block(text);
    faults.retain(|why| !why.starts_with("must be in canonical form"));
    faults
}

/// Returns the faults of a block of addresses in a newer field.
fn strict_block(text: &str) -> Vec<String> {
    let Some(block) = Block::read(text) else { return vec![NO_BLOCK.to_owned()] };
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let has_zeros = length.len() > 1 && length.starts_with('0');
    let cut = block.cut();
    let why = if has_zeros || address.parse::<IpAddr>().is_err() {
        "must not have leading 0s in IP or prefix length".to_owned()
    } else if wrapped(block.address).is_some() {
        "must not have an IPv4-mapped IPv6 address".to_owned()
    } else if cut.address != block.address {
        "must not have bits set beyond the prefix length".to_owned()
    } else {
        let shown = format!("{}/{}", cut.address, cut.length);
        if shown == text {
            return Vec::new();
        }
        format!("must be in canonical form ({shown:?})")
    };
    vec![why]
}

/// Whether two blocks are there and of the same family.
pub(super) fn share_family(blocks: &Value) -> bool {
    let family = |index: usize| {
        let block = Block::read(blocks[index].as_str().unwrap_or_default())?;
        Some(block.address.is_ipv4())
    };
    family(0).is_some() && family(0) == family(1)
}

/// Appends the faults of the blocks from which Services get addresses.
pub(super) fn blocks(list: &Value, causes: &mut Vec<Cause>) {
    let at = "spec.cidrs";
    let count = list.as_array().map_or(0, Vec::len);
    if count == 0 {
        causes.push(required(at, "at least one CIDR required"));
        return;
    }
    if count > 2 {
        let shown = serde_json::json!({ "CIDRs": list });
        causes.push(invalid_value(at, &shown, "may only hold up to 2 values"));
        return;
    }
    for (index, block) in items(list) {
        let faults = strict_block(block.as_str().unwrap_or_default());
        named(faults, block, &format!("{at}[{index}]"), causes);
    }
    if share_family(list) {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                   2001:db8::/64";
        causes.push(invalid_value(at, list, why));
    }
}

/// Appends the faults of the name of an address, which is that address.
pub(super) fn names(metadata: &Value, causes: &mut Vec<Cause>) {
    for field in ["generateName", "name"] {
        if let Some(name) = metadata[field].as_str().filter(|name| !name.is_empty()) {
            named(strict_faults(name), &metadata[field], &format!("metadata.{field}"), causes);
        }
    }
}

/// Appends the faults of the object that uses an address.
pub(super) fn parent(spec: &Value, causes: &mut Vec<Cause>) {
    let (parent, at) = (&spec["parentRef"], "spec.parentRef");
    if parent.is_null() {
        causes.push(required(at, ""));
        return;
    }
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    if !text("group").is_empty() {
        let faults = names::subdomain(text("group"));
        named(faults, &parent["group"], &format!("{at}.group"), causes);
    }
    for field in ["resource", "name", "namespace"] {
        let at = format!("{at}.{field}");
        if !is_empty(&parent[field]) {
            named(names::path(text(field)), &parent[field], &at, causes);
        } else if field != "namespace" {
            causes.push(required(&at, ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_newer_fields_have_one_form() {
        for (text, why) in [
            ("1.2.3.4", None),
            ("2001:db8::1", None),
            ("01.2.3.4", Some("must not have leading 0s")),
            ("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address")),
            ("2001:DB8::1", Some("must be in canonical form (\"2001:db8::1\")")),
            ("x", Some(NO_ADDRESS)),
            ("1.2.3", Some(NO_ADDRESS)),
        ] {
            assert_eq!(strict_faults(text), why.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn blocks_of_newer_fields_have_one_form() {
        for (text, why) in [
            ("10.0.0.0/8", None),
            ("2001:db8::/64", None),
            ("10.0.0.1/8", Some("must not have bits set beyond the prefix length")),
            ("10.0.0.0/08", Some("must not have leading 0s in IP or prefix length")),
            ("2001:DB8::/64", Some("must be in canonical form (\"2001:db8::/64\")")),
            ("10.0.0.0/33", Some(NO_BLOCK)),
            ("10.0.0.0", Some(NO_BLOCK)),
        ] {
            assert_eq!(strict_block(text), why.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn two_blocks_are_of_two_families() {
        let faults = |list: Value| {
            let mut causes = Vec::new();
            blocks(&list, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!(["10.0.0.0/8", "2001:db8::/64"])), [""; 0]);
        assert_eq!(faults(json!(["10.0.0.0/8", "11.0.0.0/8"])), ["spec.cidrs"]);
        assert_eq!(faults(json!(["10.0.0.0/8", "x"])), ["spec.cidrs[1]"]);
        assert_eq!(faults(json!([])), ["spec.cidrs"]);
    }

    #[test]
    fn traffic_goes_to_addresses_that_others_reach() {
        assert_eq!(endpoint_faults("1.2.3.4"), [""; 0]);
        for text in ["127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "::1", "fe80::1", "x"] {
            assert_eq!(endpoint_faults(text).len(), 1, "{text}");
        }
    }
}
