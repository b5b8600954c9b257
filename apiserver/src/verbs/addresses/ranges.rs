//! Ranges of cluster IPs: the `ServiceCIDRs` that are ready, as they are unless their status says
//! otherwise.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::core::ServerCore;
use crate::kinds::meta;

/// Store resource of the ranges.
const STORAGE: &str = "servicecidrs.networking.k8s.io";
/// Addresses at the start of a range that are given out last, because people choose among them.
const RESERVED: u32 = 16;
/// Most addresses of the reserved part.
const MOST_RESERVED: u32 = 256;
/// Most addresses of a range that are tried: a search ends although the range is large.
const MOST_TRIED: u32 = 1 << 16;

/// A range of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The address of the network.
    network: u32,
    /// The last address, which is that of all.
    last: u32,
}

impl Range {
    /// Reads a range; `None` for ranges of IPv6, which are not supported.
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
        Some(Self { network: address & !hosts, last: address | hosts })
    }

    /// Whether a Service may have an address of the range.
    fn contains(self, address: Ipv4Addr) -> bool {
        let address = u32::from(address);
        self.network < address && address < self.last
    }

    /// Returns the addresses in the order in which they are given out: those that people choose
    /// come last.
    fn addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        let size = self.last.wrapping_sub(self.network).saturating_add(1);
        let reserved =
            if size <= RESERVED { 0 } else { (size / RESERVED).clamp(RESERVED, MOST_RESERVED) };
        let first = self.network.saturating_add(1);
        let border = first.saturating_add(reserved);
        let end = self.last.min(border.saturating_add(MOST_TRIED));
        (border..end).chain(first..border.min(self.last)).map(Ipv4Addr::from)
    }
}

/// Returns the ranges that are ready, in the order of their names.
pub(super) fn ready(core: &ServerCore) -> Vec<Range> {
    let (held, _) = core.store.snapshot(STORAGE);
    let is_ready = |range: &Value| {
        let conditions = range["status"]["conditions"].as_array().into_iter().flatten();
        let is_not = |one: &Value| one["type"] == "Ready" && one["status"] != "True";
        !meta::terminating(range) && !conditions.into_iter().any(is_not)
    };
    let ready = held.iter().filter(|(_, held)| is_ready(&held.value));
    ready
        .flat_map(|(_, held)| held.value["spec"]["cidrs"].as_array().cloned().unwrap_or_default())
        .filter_map(|range| Range::parse(range.as_str()?))
        .collect()
}

/// Whether an address is in one of the ranges.
pub(super) fn contain(ranges: &[Range], address: &str) -> bool {
    let parsed = address.parse::<Ipv4Addr>();
    parsed.is_ok_and(|address| ranges.iter().any(|range| range.contains(address)))
}

/// Returns the first address of the ranges that is free.
pub(super) fn free(ranges: &[Range], taken: &BTreeSet<String>) -> Option<String> {
    let all = ranges.iter().flat_map(|range| range.addresses());
    all.map(|address| address.to_string()).find(|address| !taken.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_people_choose_are_given_out_last() {
        let range = Range::parse("10.0.0.0/24").unwrap();
        let all: Vec<String> = range.addresses().map(|address| address.to_string()).collect();
        assert_eq!((all.len(), all[0].as_str()), (254, "10.0.0.17"));
        assert_eq!((all[237].as_str(), all[238].as_str()), ("10.0.0.254", "10.0.0.1"));
        assert_eq!(all[253], "10.0.0.16");
    }

    #[test]
    fn a_small_range_has_no_such_addresses_and_neither_network_nor_broadcast_are_given_out() {
        let range = Range::parse("10.96.7.5/28").unwrap();
        let all: Vec<String> = range.addresses().map(|address| address.to_string()).collect();
        assert_eq!((all.len(), all[0].as_str(), all[13].as_str()), (14, "10.96.7.1", "10.96.7.14"));
        let ranges = [range];
        assert!(!contain(&ranges, "10.96.7.0") && !contain(&ranges, "10.96.7.15"));
        assert!(contain(&ranges, "10.96.7.14") && !contain(&ranges, "x"));
        assert_eq!(Range::parse("10.0.0.1/32").unwrap().addresses().count(), 0);
        assert_eq!(Range::parse("fd00::/112"), None);
    }
}
