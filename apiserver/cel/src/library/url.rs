//! URLs, with the parsing and the error texts of Go's `net/url`.

mod escape;

use std::fmt;

use self::escape::{UrlPart, escape, escaped_form, lossy, unescape};
use super::ip::parse_address;
use super::text::go_quote;

/// Number of parameters that a query has at most; a query with more counts as empty.
const MAX_PARAMETERS: usize = 10_000;

/// A URL, or a path that starts with a slash.
#[derive(Clone, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    /// User and password, decoded.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// Host and port, decoded.
    host: Vec<u8>,
    escaped_path: String,
    query: String,
    /// Whether an empty query has a question mark.
    has_empty_query: bool,
    /// Whether the path follows the scheme without `//`.
    omits_host: bool,
    escaped_fragment: String,
}

impl Url {
    /// The URL in a text, with the error text of Kubernetes' library.
    pub fn parse(raw: &str) -> Result<Url, String> {
        let failed = |url: &str, error: String| {
            let url = go_quote(url);
            format!("URL parse error during conversion from string: parse {url}: {error}")
        };
        parse(raw, true).map_err(|error| failed(raw, error))?;
        // The check above takes a fragment as a part of the path or the query: the URL is the part
        // without the fragment.
        let (url, fragment) = raw.split_once('#').unwrap_or((raw, ""));
        let mut parsed = parse(url, false).map_err(|error| failed(url, error))?;
        parsed.escaped_fragment =
            escaped_form(fragment, UrlPart::Fragment).map_err(|error| failed(raw, error))?;
        Ok(parsed)
    }

    /// Checks a text as Go's `url.ParseRequestURI` does.
    ///
    /// # Errors
    ///
    /// Go's message: `parse "a b": invalid URI for request`.
    pub fn check(raw: &str) -> Result<(), String> {
        parse(raw, true).map(drop).map_err(|error| format!("parse {}: {error}", go_quote(raw)))
    }

    /// Whether a text is a URL.
    pub fn is_valid(raw: &str) -> bool {
        parse(raw, true).is_ok()
    }

    /// The scheme in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Host and port.
    pub fn host(&self) -> String {
        lossy(&self.host)
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> String {
        let (host, _) = self.host_and_port();
        lossy(host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host))
    }

    /// The port, or an empty text.
    pub fn port(&self) -> String {
        lossy(self.host_and_port().1)
    }

    fn host_and_port(&self) -> (&[u8], &[u8]) {
        let colon = self.host.iter().rposition(|&byte| byte == b':');
        let parts = colon.and_then(|colon| self.host.split_at_checked(colon));
        match parts {
            Some((host, [b':', port @ ..])) if port.iter().all(u8::is_ascii_digit) => (host, port),
            _ => (&self.host, b""),
        }
    }

    /// The path with its escape sequences.
    pub fn escaped_path(&self) -> &str {
        &self.escaped_path
    }

    /// Names and values of the query, decoded. Malformed parameters are left out.
    pub fn query(&self) -> Vec<(String, String)> {
        if self.query.bytes().filter(|&byte| byte == b'&').count() >= MAX_PARAMETERS {
            return Vec::new();
        }
        let decode =
            |text: &str| unescape(text.as_bytes(), UrlPart::QueryComponent).ok().map(|b| lossy(&b));
        self.query
            .split('&')
            .filter(|parameter| !parameter.is_empty() && !parameter.contains(';'))
            .filter_map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                Some((decode(name)?, decode(value)?))
            })
            .collect()
    }

    fn authority(&self) -> String {
        let has_user = self.user.is_some();
        let mut out = String::new();
        if !self.host.is_empty() || !self.escaped_path.is_empty() || has_user {
            out.push_str("//");
        }
        if let Some((name, password)) = &self.user {
            out.push_str(&escape(name, UrlPart::UserPassword));
            if let Some(password) = password {
                out.push(':');
                out.push_str(&escape(password, UrlPart::UserPassword));
            }
            out.push('@');
        }
        out.push_str(&escape(&self.host, UrlPart::Host));
        out
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let is_absolute = !self.scheme.is_empty() || !self.host.is_empty();
            let omits = self.omits_host && self.host.is_empty();
            if self.user.is_some() || (is_absolute && !omits) {
                f.write_str(&self.authority())?;
            }
            f.write_str(&self.escaped_path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.has_empty_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.escaped_fragment.is_empty() {
            write!(f, "#{}", self.escaped_fragment)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A URL without fragment. That of a request does not start with a host.
fn parse(raw: &str, is_request: bool) -> Result<Url, String> {
    if raw.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if raw.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if raw == "*" {
        url.escaped_path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(raw)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
    url.query = query.unwrap_or_default().to_owned();
    url.has_empty_query = query == Some("");
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !url.scheme.is_empty() || (!is_request && !rest.starts_with("///"));
    let mut path = rest;
    match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(after) => {
            let slash = after.find('/').unwrap_or(after.len());
            let (authority, rest) = after.split_at_checked(slash).unwrap_or((after, ""));
            parse_authority(&mut url, authority)?;
            path = rest;
        }
        None => url.omits_host = !url.scheme.is_empty(),
    }
    url.escaped_path = escaped_form(path, UrlPart::Path)?;
    Ok(url)
}

fn split_scheme(raw: &str) -> Result<(&str, &str), String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = raw.bytes().position(|byte| !is_part(byte)).unwrap_or(raw.len());
    let (scheme, rest) = raw.split_at_checked(end).unwrap_or(("", raw));
    match rest.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err("missing protocol scheme".to_owned()),
        Some(rest) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", raw)),
    }
}

fn parse_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    url.host = parse_host(&url.scheme, host)?;
    let Some(user) = user else { return Ok(()) };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let decode = |text: &str| unescape(text.as_bytes(), UrlPart::UserPassword);
    url.user = Some(match user.split_once(':') {
        Some((name, password)) => (decode(name)?, Some(decode(password)?)),
        None => (decode(user)?, None),
    });
    Ok(())
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Only http and https refuse several colons: other schemes have lists of hosts.
    let is_strict = matches!(scheme, "http" | "https");
    if let Some(colon) = if is_strict { host.find(':') } else { host.rfind(':') } {
        check_port(host.get(colon..).unwrap_or_default())?;
    }
    unescape(host.as_bytes(), UrlPart::Host)
}

fn parse_ip_literal(host: &str) -> Result<Vec<u8>, String> {
    let inner = host.get(1..).unwrap_or_default();
    let Some((name, port)) = inner.rsplit_once(']') else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(port)?;
    let zone = name.find("%25").unwrap_or(name.len());
    let (address, zone) = name.split_at_checked(zone).unwrap_or((name, ""));
    let mut address = unescape(address.as_bytes(), UrlPart::Host)?;
    address.extend(unescape(zone.as_bytes(), UrlPart::Zone)?);
    let (ip, _) = parse_address(&address).map_err(|error| format!("invalid host: {error}"))?;
    if ip.is_ipv4() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", address.as_slice(), b"]", port.as_bytes()].concat())
}

/// The error for a text behind the host that is no port.
fn check_port(port: &str) -> Result<(), String> {
    let is_port =
        port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if port.is_empty() || is_port {
        return Ok(());
    }
    Err(format!("invalid port {} after host", go_quote(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_parts() -> Result<(), String> {
        let url = Url::parse("HTTPS://u:p@[::1]:443/a b%2Fc?x=a+b&y&x=2&z;=1&%zz=1#f")?;
        assert_eq!((url.scheme(), url.host()), ("https", "[::1]:443".to_owned()));
        assert_eq!((url.hostname(), url.port()), ("::1".to_owned(), "443".to_owned()));
        assert_eq!(url.escaped_path(), "/a%20b/c");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(url.query(), [pair("x", "a b"), pair("y", ""), pair("x", "2")]);
        Ok(())
    }

    #[test]
    fn a_valid_escaped_path_keeps_its_form() {
        for path in ["/p%2Fq", "/p;x", "/a%20b", "*"] {
            let escaped = Url::parse(path).map(|url| url.escaped_path().to_owned());
            assert_eq!(escaped, Ok(path.to_owned()));
        }
    }

    #[test]
    fn a_url_without_authority_is_opaque_or_omits_the_host() {
        for text in ["mailto:a@b.c", "h:/path", "h:///path", "h://x?", "/a/b?c"] {
            assert_eq!(Url::parse(text).map(|url| url.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_malformed_url_has_the_reason_of_net_url() {
        let cases = [
            ("", "empty url"),
            ("a/b", "invalid URI for request"),
            ("://x", "missing protocol scheme"),
            ("http://[::1", "missing ']' in host"),
            ("http://[x]", "invalid host: ParseAddr(\"x\"): unable to parse IP"),
            ("http://a[1]", "invalid IP-literal"),
            ("http://a b", "invalid character \" \" in host name"),
            ("http://a:b", "invalid port \":b\" after host"),
            ("http://a:1:2", "invalid port \":1:2\" after host"),
            ("http://a%20", "invalid URL escape \"%20\""),
            ("http://é@h", "net/url: invalid userinfo"),
            ("/%aé", "invalid URL escape \"%a\\xc3\""),
        ];
        for (text, reason) in cases {
            let expected = format!(
                "URL parse error during conversion from string: parse \"{text}\": {reason}"
            );
            assert_eq!(Url::parse(text).err(), Some(expected));
        }
    }

    #[test]
    fn a_path_with_two_slashes_is_checked_as_a_path_and_read_as_a_host() {
        assert!(Url::is_valid("//a b/c"));
        assert!(Url::parse("//a b/c").is_err());
        assert_eq!(Url::parse("//host/c").map(|url| url.host()), Ok("host".to_owned()));
    }
}
