//! Proxies between the client and the API server: their address, the source of the address, and the
//! tunnel.
//!
//! Every proxy is used as a tunnel (`CONNECT`, or SOCKS5), also to a server that speaks plain HTTP:
//! then no proxy reads or changes a request, and an upgrade to WebSocket works as without a proxy.
//! A tunnel is opened with hyper's HTTP/1 client and hyper-util's SOCKS5; no answer of a proxy is
//! parsed here. Not included: proxy auto-configuration, SOCKS4, and authentication other than user
//! and password.

mod env_vars;
mod tunnel;

use std::fmt;
use std::sync::Arc;

use http::Uri;
use percent_encoding::percent_decode_str;

use crate::client::secret::SecretString;
use env_vars::Variables;
use windlass_core::error::Error;

pub(crate) use tunnel::{ProxyError, open};

/// Choice of the proxy of a client.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProxyChoice {
    /// The proxy of `HTTPS_PROXY` and related variables, if any.
    #[default]
    Environment,
    /// No proxy, regardless of the environment.
    Direct,
    /// The given proxy.
    Through(Arc<Proxy>),
}

impl ProxyChoice {
    /// Returns the proxy for `server`, if there is any.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when a variable of the environment
    /// is no proxy address.
    pub(crate) fn resolve(&self, server: &Uri) -> Result<Option<Arc<Proxy>>, Error> {
        match self {
            Self::Environment => Variables::process().proxy_for(server).map(|p| p.map(Arc::new)),
            Self::Direct => Ok(None),
            Self::Through(proxy) => Ok(Some(Arc::clone(proxy))),
        }
    }
}

/// Protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
    Socks5,
}

/// Address of a proxy. Neither `Debug` nor `Display` shows the user and password.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) scheme: Scheme,
    /// Host as in a URL: an IPv6 address is in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// User and password.
    pub(crate) login: Option<(String, SecretString)>,
    /// Complete URL, for credential plugins.
    url: SecretString,
    /// Source of the address, for error texts.
    named_by: String,
}

impl Proxy {
    /// Parses `http://`, `https://`, `socks5://` or `socks5h://` with host and optional port, user
    /// and password. `named_by` is for error texts: `HTTPS_PROXY`.
    ///
    /// # Errors
    /// A text that explains the mistake and the correction, without the address.
    pub(crate) fn parse(url: &str, named_by: &str) -> Result<Self, String> {
        let wrong = || {
            "is not a proxy address; write http://host:port, https://host:port or \
             socks5://host:port, with user:password@ before the host if it asks for them (other \
             characters than letters and digits there as %XX)"
                .to_owned()
        };
        let uri: Uri = url.trim().parse().map_err(|_| wrong())?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            // As in Go, the proxy resolves host names in both cases.
            Some("socks5" | "socks5h") => Scheme::Socks5,
            _ => return Err(wrong()),
        };
        let port = match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Socks5 => 1080,
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        let login = authority.as_str().rsplit_once('@').map(|(login, _)| login);
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let plain = |text| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
            Ok::<_, std::str::Utf8Error>((plain(user)?, SecretString::from(plain(password)?)))
        });
        let proxy = Self {
            scheme,
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(port),
            login: login.transpose().map_err(|_| wrong())?,
            url: url.trim().into(),
            named_by: named_by.to_owned(),
        };
        if proxy.host.is_empty() { Err(wrong()) } else { Ok(proxy) }
    }

    /// Returns the complete URL with user and password.
    pub(crate) fn url(&self) -> &SecretString {
        &self.url
    }

    /// Returns address and source for error texts: `http://proxy:3128 (HTTPS_PROXY)`.
    fn described(&self) -> String {
        format!("{self} ({})", self.named_by)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Socks5 => "socks5",
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Proxy {
        Proxy::parse(url, "test").unwrap()
    }

    #[test]
    fn a_proxy_is_read_with_its_default_port_and_its_login() {
        assert_eq!(parse("http://proxy").to_string(), "http://proxy:80");
        assert_eq!(parse("https://proxy/").to_string(), "https://proxy:443");
        assert_eq!(parse("socks5://[fd00::1]").to_string(), "socks5://[fd00::1]:1080");
        assert_eq!(parse("socks5h://proxy:9").to_string(), "socks5://proxy:9");
        let proxy = parse("http://us%40er:pa%3Ass%2F@proxy:3128");
        let (user, password) = proxy.login.unwrap();
        assert_eq!((user.as_str(), password.expose()), ("us@er", "pa:ss/"));
        assert!(parse("http://user@proxy").login.unwrap().1.is_empty());
    }

    #[test]
    fn what_is_no_proxy_is_told_without_the_address() {
        for url in [
            "ftp://canary@proxy",
            "proxy:3128",
            "http://",
            "http://user:canary@",
            "socks4://proxy",
            "http://user:can ary@proxy",
            "http://%ff:canary@proxy",
            "",
        ] {
            let text = Proxy::parse(url, "test").unwrap_err();
            assert!(text.contains("http://host:port") && !text.contains("canary"), "{url}: {text}");
        }
    }

    #[test]
    fn neither_debug_nor_display_shows_the_login() {
        let proxy = parse("http://canary-user:canary-password@proxy:3128");
        let choice = ProxyChoice::Through(Arc::new(proxy.clone()));
        let shown = format!("{proxy} {proxy:?} {choice:?} {}", proxy.described());
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.contains("http://proxy:3128 (test)"), "{shown}");
    }
}
