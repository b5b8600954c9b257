//! The version of the server.

use std::fmt;

use serde::Deserialize;

use super::fetch::{TIMEOUT, get};
use crate::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::Undecodable;

/// The version of an API server. `Display` is the `gitVersion`.
///
/// Providers append to the version: the numbers are compared, the texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerVersion {
    /// Major version.
    pub major: u32,
    /// Minor version, also of a server that reports `36+`.
    pub minor: u32,
    /// Full version, such as `v1.36.3` or `v1.36.3-gke.100`.
    pub git_version: String,
    /// Commit of the build; empty when the server does not send the commit.
    pub git_commit: String,
    /// Operating system and architecture; empty when the server does not send them.
    pub platform: String,
}

/// The answer of `/version`, in which both numbers are texts.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    major: String,
    minor: String,
    git_version: String,
    git_commit: String,
    platform: String,
}

impl ServerVersion {
    /// Whether the server has this version or a later version.
    ///
    /// For features that depend on the server; patch levels do not count.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// `None` when neither the numbers nor the full version contain a version.
    fn of(wire: Wire) -> Option<Self> {
        let numbers = leading(&wire.major).zip(leading(&wire.minor));
        let (major, minor) = numbers.or_else(|| {
            let (major, rest) = wire.git_version.strip_prefix('v')?.split_once('.')?;
            leading(major).zip(leading(rest))
        })?;
        let Wire { git_version, git_commit, platform, .. } = wire;
        Some(Self { major, minor, git_version, git_commit, platform })
    }
}

/// The number at the beginning of `text`: 36 of `36+`.
fn leading(text: &str) -> Option<u32> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.git_version.is_empty() {
            write!(f, "v{}.{}", self.major, self.minor)
        } else {
            f.write_str(&self.git_version)
        }
    }
}

/// Reads `/version`, which every authenticated user may read by default.
pub(super) async fn fetch(client: &Client) -> Result<ServerVersion, Error> {
    let what = "read the version of the API server";
    let answer = client.send(get("/version", what, TIMEOUT)).await?;
    let wire: Wire = serde_json::from_slice(&answer.body).map_err(|error| {
        let text = format!("cannot {what}: the answer does not decode");
        Error::new(ErrorKind::Decode, text).because(Undecodable::of(&error))
    })?;
    ServerVersion::of(wire).ok_or_else(|| {
        let text = format!("cannot {what}: the answer has no version; is it an API server?");
        Error::new(ErrorKind::Decode, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: &str, minor: &str, git: &str) -> Option<ServerVersion> {
        let (major, minor, git_version) = (major.into(), minor.into(), git.into());
        ServerVersion::of(Wire { major, minor, git_version, ..Wire::default() })
    }

    #[test]
    fn a_vendors_plus_does_not_hide_the_minor_version() {
        let gke = version("1", "36+", "v1.36.3-gke.100").unwrap();
        assert_eq!((gke.major, gke.minor, gke.to_string().as_str()), (1, 36, "v1.36.3-gke.100"));
        assert!(gke.at_least(1, 36) && gke.at_least(0, 99) && !gke.at_least(1, 37));
        assert!(!gke.at_least(2, 0));
    }

    #[test]
    fn the_full_version_tells_what_the_numbers_do_not() {
        let bare = version("", "", "v1.33.1+k3s1").unwrap();
        assert_eq!((bare.major, bare.minor), (1, 33));
        assert_eq!(version("1", "30", "").unwrap().to_string(), "v1.30");
        assert_eq!(version("", "x", "latest"), None);
        assert_eq!(version("99999999999", "1", ""), None);
    }
}
