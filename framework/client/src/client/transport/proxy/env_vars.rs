//! The proxy of the environment, by the rules of Go's programs.
//!
//! `HTTPS_PROXY` applies to `https://` servers and `HTTP_PROXY` to `http://` servers, `ALL_PROXY`
//! if that variable is not set; `NO_PROXY` excepts hosts. Each is also read in lower case. This
//! machine (`localhost` and loopback addresses) is never reached through a proxy of the
//! environment.

// DESIGN.md, 20: Every proxy is used as a tunnel

use std::net::IpAddr;

use http::Uri;

use super::Proxy;
use windlass_core::error::{Error, ErrorKind};

/// Proxy variables of the environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    /// Name and value of the variable for `http://` servers.
    http: Option<(String, String)>,
    /// Name and value of the variable for `https://` servers.
    https: Option<(String, String)>,
    /// Value of `NO_PROXY`.
    no_proxy: String,
}

impl Variables {
    /// Reads the variables of the process.
    pub(super) fn process() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| {
                variable(name)
                    .filter(|value| !value.trim().is_empty())
                    .map(|value| ((*name).to_owned(), value))
            })
        };
        Self {
            http: first(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
            https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
            no_proxy: first(&["NO_PROXY", "no_proxy"]).map(|(_, value)| value).unwrap_or_default(),
        }
    }

    /// Returns the proxy for `server`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when a variable is not a proxy's address: a connection without the
    /// proxy could send credentials past it.
    pub(super) fn proxy_for(&self, server: &Uri) -> Result<Option<Proxy>, Error> {
        let plain = server.scheme_str() == Some("http");
        let Some((name, value)) = (if plain { &self.http } else { &self.https }) else {
            return Ok(None);
        };
        let host = server.host().unwrap_or_default();
        let port = server.port_u16().unwrap_or(if plain { 80 } else { 443 });
        if !is_proxied(host, port, &self.no_proxy) {
            return Ok(None);
        }
        let value = value.trim();
        // A value without a scheme means an HTTP proxy.
        let url = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        Proxy::parse(&url, name).map(Some).map_err(|why| {
            let text = format!(
                "the environment variable {name} {why}; or list the API server in NO_PROXY"
            );
            Error::new(ErrorKind::Config, text)
        })
    }
}

/// Returns whether a host is reached through the proxy.
fn is_proxied(host: &str, port: u16, no_proxy: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let ip: Option<IpAddr> = host.parse().ok();
    // As Go: a proxy cannot reach this machine's loopback.
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return false;
    }
    !no_proxy.split(',').any(|entry| excepts(&entry.trim().to_ascii_lowercase(), &host, ip, port))
}

/// Returns whether an entry of `NO_PROXY` matches the host.
fn excepts(entry: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    if entry.is_empty() {
        return false;
    }
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = network(entry) {
        return ip.is_some_and(|ip| contains(network, bits, ip));
    }
    let (name, wanted) = split_port(entry);
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        return ip == Some(address);
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        // `.example.com` matches names below; `example.com` matches these and the name itself.
        Some("") => false,
        Some(_) => host.ends_with(name),
        None if name.is_empty() => false,
        None => host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.')),
    }
}

/// Parses a network such as `10.0.0.0/8`.
fn network(entry: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = entry.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits = bits.parse().ok()?;
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
}

/// Returns whether `ip` lies in a network.
fn contains(network: IpAddr, bits: u32, ip: IpAddr) -> bool {
    // Canonical, so that an IPv4 address in IPv6 form matches an IPv4 network.
    match (network, ip.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            (network.to_bits() ^ ip.to_bits()).leading_zeros() >= bits
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            (network.to_bits() ^ ip.to_bits()).leading_zeros() >= bits
        }
        _ => false,
    }
}

/// Splits `host:port`, `[address]:port`, or a host alone.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some(rest) = entry.strip_prefix('[') {
        let (address, port) = rest.split_once(']').unwrap_or((rest, ""));
        return (address, port.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.split_once(':') {
        // Several colons: an IPv6 address.
        Some((host, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables::read(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy(pairs: &[(&str, &str)], server: &'static str) -> Option<String> {
        let proxy = variables(pairs).proxy_for(&Uri::from_static(server)).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_variable_of_the_servers_scheme_counts_then_all_proxy_each_in_both_cases() {
        let all = [
            ("HTTPS_PROXY", "http://one:1"),
            ("https_proxy", "http://two:2"),
            ("http_proxy", "three:3"),
            ("ALL_PROXY", "socks5://four:4"),
        ];
        assert_eq!(proxy(&all, "https://api.example").unwrap(), "http://one:1");
        assert_eq!(proxy(&all[1..], "https://api.example").unwrap(), "http://two:2");
        assert_eq!(proxy(&all, "http://api.example").unwrap(), "http://three:3");
        assert_eq!(proxy(&all[2..], "https://api.example").unwrap(), "socks5://four:4");
        assert_eq!(proxy(&all[..2], "http://api.example"), None);
        assert_eq!(proxy(&[("HTTPS_PROXY", " ")], "https://api.example"), None);
        assert_eq!(proxy(&[], "https://api.example"), None);
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy_of_the_environment() {
        let all = [("ALL_PROXY", "http://proxy")];
        for server in ["https://localhost:6443", "https://127.1.2.3", "http://[::1]:8080"] {
            assert_eq!(proxy(&all, server), None, "{server}");
        }
        assert!(proxy(&all, "https://localhost.example").is_some());
    }

    #[test]
    fn no_proxy_excepts_as_it_does_in_go() {
        // (NO_PROXY, host, port, excepted)
        let table = [
            ("*", "api.example", 443, true),
            ("example.com", "example.com", 443, true),
            ("example.com", "api.example.com", 443, true),
            ("example.com", "notexample.com", 443, false),
            (".example.com", "api.example.com", 443, true),
            (".example.com", "example.com", 443, false),
            ("*.example.com", "api.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("EXAMPLE.com", "example.COM", 443, true),
            ("example.com:6443", "example.com", 6443, true),
            ("example.com:6443", "example.com", 443, false),
            ("other, example.com ,", "example.com", 443, true),
            ("10.0.0.0/8", "10.96.0.1", 443, true),
            ("10.0.0.0/8", "11.0.0.1", 443, false),
            ("10.96.0.0/12", "10.111.255.255", 443, true),
            ("10.96.0.0/12", "10.112.0.0", 443, false),
            ("0.0.0.0/0", "8.8.8.8", 443, true),
            ("10.96.0.1", "10.96.0.1", 443, true),
            ("10.96.0.1:443", "10.96.0.1", 443, true),
            ("10.96.0.1:444", "10.96.0.1", 443, false),
            ("10.96.0.1", "110.96.0.1", 443, false),
            ("fd00::/8", "[fd12::1]", 443, true),
            ("fd00::/8", "[fe80::1]", 443, false),
            ("fd00::1", "[fd00::1]", 443, true),
            ("[fd00::1]:6443", "[fd00::1]", 6443, true),
            ("[fd00::1]:6443", "[fd00::1]", 443, false),
            ("10.0.0.0/8", "ten.example", 443, false),
            ("10.0.0.0/99", "10.0.0.1", 443, false),
            (".", "example.com", 443, false),
            ("", "example.com", 443, false),
        ];
        for (no_proxy, host, port, excepted) in table {
            assert_eq!(!is_proxied(host, port, no_proxy), excepted, "{no_proxy:?} {host}:{port}");
        }
    }

    #[test]
    fn a_variable_that_holds_no_proxy_is_an_error_that_names_it() {
        let pairs = [("HTTPS_PROXY", "ftp://user:canary@proxy")];
        let error = variables(&pairs).proxy_for(&Uri::from_static("https://api.example"));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("HTTPS_PROXY") && text.contains("NO_PROXY"), "{text}");
        assert!(!text.contains("canary"), "{text}");
        // The value does not matter where no proxy would be used.
        assert_eq!(proxy(&pairs, "https://127.0.0.1"), None);
    }
}
