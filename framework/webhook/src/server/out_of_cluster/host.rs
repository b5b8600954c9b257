//! The place at which an operator outside of a cluster listens.

// DESIGN.md, 204: Outside of a cluster webhooks are asked at a URL while the operator runs

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;
use windlass_core::{Error, ErrorKind};

/// Port of HTTPS.
const HTTPS: u16 = 443;

/// Host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Host {
    /// Name or address, without brackets.
    pub(in crate::server) name: String,
    port: u16,
}

impl Host {
    /// Reads a URL of an operator outside of a cluster.
    pub(in crate::server) fn of(url: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            let text = format!(
                "webhooks cannot be asked at {url:?}: {why}; write https://HOST:PORT, with a host that \
                 the API server reaches"
            );
            Error::new(ErrorKind::Config, text)
        };
        let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
        let (scheme, host) = (uri.scheme_str(), uri.host().filter(|host| !host.is_empty()));
        let Some(host) = host.filter(|_| scheme == Some("https")) else {
            return Err(refused("it does not begin with https:// and a host"));
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refused("API servers refuse users in it"));
        }
        // The parser leaves a fragment out.
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || url.contains('#') {
            return Err(refused("paths are those of the webhooks"));
        }
        // The parser leaves a port out that is none.
        let behind = uri.authority().and_then(|it| it.as_str().strip_prefix(host));
        if uri.port_u16().is_none() && behind.is_some_and(|behind| !behind.is_empty()) {
            return Err(refused("its port is no number up to 65535"));
        }
        // One spelling of a host: names of objects and the comparison with `localhost` have it.
        let name = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let name = name.trim_end_matches('.').to_owned();
        Ok(Self { name, port: uri.port_u16().unwrap_or(HTTPS) })
    }

    /// Returns the address to listen at: on the loopback interface for a host there, else on all.
    pub(in crate::server) fn address(&self) -> SocketAddr {
        let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let ip = match self.name.parse::<IpAddr>() {
            Ok(ip) if ip.to_canonical().is_loopback() => ip.to_canonical(),
            Ok(_) => any,
            Err(_) if self.name == "localhost" || self.name.ends_with(".localhost") => {
                Ipv4Addr::LOCALHOST.into()
            }
            Err(_) => any,
        };
        SocketAddr::new(ip, self.port)
    }

    /// Returns the address to listen at when the program set one, too: that of a URL from the
    /// command line wins, and is logged; that of the program's own URL, such as one of a tunnel,
    /// does not.
    pub(in crate::server) fn choose(&self, set: Option<SocketAddr>, is_flag: bool) -> SocketAddr {
        let own = self.address();
        match set {
            Some(set) if is_flag && set.port() != own.port() => {
                tracing::warn!(
                    url_port = own.port(), listen = %set,
                    "--webhook-url names another port than `WebhookServer::listen`: webhooks are \
                     served at {own}"
                );
                own
            }
            Some(set) => set,
            None => own,
        }
    }

    /// Returns the URL of the address that was bound: port 0 of a URL stands for a free one.
    pub(in crate::server) fn url(&self, bound: SocketAddr) -> String {
        let name =
            if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        let port = if self.port == 0 { bound.port() } else { self.port };
        format!("https://{name}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_on_the_loopback_interface_is_listened_to_there_and_another_everywhere() {
        let cases = [
            ("https://127.0.0.1:9443", "127.0.0.1:9443", "https://127.0.0.1:9443"),
            ("https://localhost:9443/", "127.0.0.1:9443", "https://localhost:9443"),
            ("https://[::1]:9443", "[::1]:9443", "https://[::1]:9443"),
            ("https://192.168.1.5:9443", "[::]:9443", "https://192.168.1.5:9443"),
            ("https://laptop.example", "[::]:443", "https://laptop.example:443"),
            ("https://LOCALHOST.:9443", "127.0.0.1:9443", "https://localhost:9443"),
            ("https://a.localhost:9443", "127.0.0.1:9443", "https://a.localhost:9443"),
            ("https://[::ffff:127.0.0.1]:1", "127.0.0.1:1", "https://[::ffff:127.0.0.1]:1"),
            ("https://127.0.0.1:0", "127.0.0.1:0", "https://127.0.0.1:7"),
        ];
        for (url, address, shown) in cases {
            let host = Host::of(url).unwrap();
            assert_eq!(host.address().to_string(), address, "{url}");
            assert_eq!(host.url(SocketAddr::from((Ipv4Addr::LOCALHOST, 7))), shown);
        }
    }

    #[test]
    fn the_port_of_a_url_from_the_command_line_wins_over_the_address_of_the_program() {
        let host = Host::of("https://127.0.0.1:9443").unwrap();
        let chosen = |set: &str, is_flag| host.choose(set.parse().ok(), is_flag).to_string();
        assert_eq!(chosen("[::]:8443", true), "127.0.0.1:9443");
        assert_eq!(chosen("[::]:9443", true), "[::]:9443", "the ports agree");
        assert_eq!(chosen("[::]:8443", false), "[::]:8443", "a tunnel leads there");
        assert_eq!(chosen("", false), "127.0.0.1:9443");
    }

    #[test]
    fn a_url_that_no_api_server_can_ask_is_refused_with_its_reason() {
        let cases = [
            ("http://127.0.0.1:9443", "does not begin with https://"),
            ("127.0.0.1:9443", "does not begin with https://"),
            ("https://a.example/path", "paths are those of the webhooks"),
            ("https://a.example?x=1", "paths are those of the webhooks"),
            ("https:// a", "it is no URL"),
            ("https://alice@a.example:9443", "API servers refuse users"),
            ("https://a.example:9443#x", "paths are those of the webhooks"),
            ("https://a.example:99999", "its port is no number"),
            ("https://a.example:", "its port is no number"),
            ("https://[::1]:", "its port is no number"),
        ];
        for (url, why) in cases {
            let text = Host::of(url).unwrap_err().to_string();
            assert!(text.contains(why), "{url}: {text}");
        }
    }
}
