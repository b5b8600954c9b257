//! The format `uri`: Go's `url.ParseRequestURI` as kube-apiserver 1.36 calls it.

use std::net::Ipv6Addr;

/// Bytes that stand in a host as they are, beside letters and digits.
const OF_HOST: &[u8] = b"-_.~!$&'()*+,;=:[]<>\"";
/// Bytes that stand before `@`, beside letters and digits.
const OF_USER: &[u8] = b"-._:~!$&'()*+,;=%@";

/// Whether the text is an absolute URI, or an absolute path.
pub(super) fn valid(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty());
    let Some(authority) = authority else { return is_escaped(rest) };
    let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
    is_authority(&scheme.to_ascii_lowercase(), authority) && is_escaped(path)
}

/// Splits the scheme off, which is empty if there is none; `None` for a text that begins with a
/// colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let is_inner = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            byte if byte.is_ascii_alphabetic() || (index > 0 && is_inner(&byte)) => {}
            _ => break,
        }
    }
    Some(("", text))
}

/// Whether the text is a host, with a user and a port if there are some.
fn is_authority(scheme: &str, text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return is_host(scheme, text) };
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || OF_USER.contains(&byte);
    is_host(scheme, host) && user.bytes().all(is_user) && is_escaped(user)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {}
        Some(_) => return false,
        None => {
            // Databases list several hosts with ports: colons are strict for these schemes only.
            let is_strict = matches!(scheme, "http" | "https");
            let colon = if is_strict { host.find(':') } else { host.rfind(':') };
            return colon.is_none_or(|at| is_port(&host[at..])) && is_escaped_host(host);
        }
    }
    let Some((address, port)) = host[1..].rsplit_once(']') else { return false };
    is_port(port) && is_address(address)
}

/// Whether the text is an address of the sixth version, with a zone if there is one.
fn is_address(text: &str) -> bool {
    let (address, zone) = match text.find("%25") {
        Some(at) => (&text[..at], Some(&text[at + 3..])),
        None => (text, None),
    };
    let is_zone = |zone: &str| !zone.is_empty() && zone_bytes(zone);
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(is_zone)
}

/// Whether the text is empty or a colon with digits.
fn is_port(text: &str) -> bool {
    let port = text.strip_prefix(':');
    text.is_empty() || port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether each percent sign has two hexadecimal digits.
fn is_escaped(text: &str) -> bool {
    each_byte(text, |_| true, |_| true)
}

/// As [`is_escaped`], of a host: only bytes beyond ASCII, and the percent sign, are escaped.
fn is_escaped_host(text: &str) -> bool {
    each_byte(text, of_host, |byte| byte >= 0x80 || byte == b'%')
}

/// As [`is_escaped`], of a zone: a space may be escaped, and what needs no escape.
fn zone_bytes(text: &str) -> bool {
    each_byte(text, of_host, |byte| of_host(byte) || byte == b' ' || byte == b'%')
}

fn of_host(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric() || OF_HOST.contains(&byte)
}

/// Whether all bytes are allowed, those that are written as they are and those that are escaped.
fn each_byte(text: &str, plain: impl Fn(u8) -> bool, escaped: impl Fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            if !plain(byte) {
                return false;
            }
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return false };
        if !u8::try_from(high * 16 + low).is_ok_and(&escaped) {
            return false;
        }
    }
    true
}
