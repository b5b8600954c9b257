//! Semantic versions as the Go package `blang/semver` reads them.

use std::cmp::Ordering;

use super::text::go_quote;

/// A version. The build metadata has no influence on the order and is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    prerelease: Vec<Identifier>,
}

/// A part of a prerelease; numbers are less than texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// The version of a text with three numbers.
    ///
    /// # Errors
    ///
    /// The message of `semver.Parse`.
    pub fn parse(text: &str) -> Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number(major, "major", "Major")?;
        let minor = number(minor, "minor", "Minor")?;
        let (rest, build) =
            rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) =
            rest.split_once('-').map_or((rest, None), |(patch, rest)| (patch, Some(rest)));
        let patch = number(patch, "patch", "Patch")?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.'));
        let prerelease = prerelease.map(identifier).collect::<Result<_, _>>()?;
        build.into_iter().flat_map(|text| text.split('.')).try_for_each(check_build)?;
        Ok(Version { major, minor, patch, prerelease })
    }

    /// The version of a text that may begin with `v`, have one or two numbers only, and leading
    /// zeros.
    ///
    /// # Errors
    ///
    /// The message of kube-apiserver's `semver(text, true)`.
    pub fn parse_normalized(text: &str) -> Result<Version, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                let message = "short version cannot contain PreRelease/Build meta data";
                return Err(message.to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Version::parse(&parts.join("."))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            // A version comes after its prereleases.
            let is_release = |version: &Version| version.prerelease.is_empty();
            is_release(self)
                .cmp(&is_release(other))
                .then_with(|| self.prerelease.cmp(&other.prerelease))
        })
    }
}

/// A part without leading zeros; a zero remains before anything but a digit.
fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    let is_number = rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    if is_number { rest.to_owned() } else { format!("0{rest}") }
}

fn number(text: &str, name: &str, capitalised: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", go_quote(text)));
    }
    if has_leading_zeros(text) {
        let quoted = go_quote(text);
        return Err(format!("{capitalised} number must not contain leading zeroes {quoted}"));
    }
    parse_uint(text)
}

fn parse_uint(digits: &str) -> Result<u64, String> {
    let cause = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
    digits.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {cause}", go_quote(digits)))
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match is_identifier(text) {
            true => Ok(Identifier::Text(text.to_owned())),
            false => Err(format!("Invalid character(s) found in prerelease {}", go_quote(text))),
        };
    }
    if has_leading_zeros(text) {
        let quoted = go_quote(text);
        return Err(format!("Numeric PreRelease version must not contain leading zeroes {quoted}"));
    }
    parse_uint(text).map(Identifier::Number)
}

fn check_build(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    match is_identifier(text) {
        true => Ok(()),
        false => Err(format!("Invalid character(s) found in build meta data {}", go_quote(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_numbers_then_by_prereleases() {
        let ordered = ["1.0.0-1", "1.0.0-2", "1.0.0-a", "1.0.0-a.1", "1.0.0-b", "1.0.0", "1.0.1"];
        for pair in ordered.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| Version::parse(text).unwrap());
            assert!(a < b, "{pair:?}");
        }
        assert_eq!(Version::parse("1.0.0+a"), Version::parse("1.0.0+b"));
    }

    #[test]
    fn errors_are_those_of_the_go_package() {
        let cases = [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("x.2.3", "Invalid character(s) found in major number \"x\""),
            ("1.02.3", "Minor number must not contain leading zeroes \"02\""),
            (".2.3", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "1.2.18446744073709551616",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.2.3-a_b", "Invalid character(s) found in prerelease \"a_b\""),
            ("1.2.3+", "Build meta data is empty"),
            ("1.2.3+a!", "Invalid character(s) found in build meta data \"a!\""),
        ];
        for (text, expected) in cases {
            assert_eq!(Version::parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn a_normalized_version_is_completed_and_stripped_of_zeros() {
        for (text, expected) in
            [("v1", "1.0.0"), ("01.002", "1.2.0"), ("00.0.00-rc", "0.0.0-rc"), ("v1.2.3", "1.2.3")]
        {
            assert_eq!(Version::parse_normalized(text), Version::parse(expected), "{text}");
        }
        let short = Version::parse_normalized("1.2-rc").unwrap_err();
        assert_eq!(short, "short version cannot contain PreRelease/Build meta data");
        assert!(Version::parse_normalized("vv1").is_err());
    }
}
