//! Who asks: bearer tokens, client certificates, or nobody.
//!
//! It decides identity only; whether that user may do something is `rbac`'s business.

use std::collections::BTreeMap;

use x509_parser::prelude::{FromDer, X509Certificate};

/// Everybody who proved an identity belongs to this group.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Members may do everything.
pub const MASTERS: &str = "system:masters";

/// The user behind a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct User {
    /// Name, such as `kubernetes-admin` or `system:serviceaccount:shop:operator`.
    pub name: String,
    /// Uid; may be empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl User {
    /// A user that proved its identity: `system:authenticated` is added to its groups.
    pub fn authenticated(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), uid: String::new(), groups }
    }

    /// The administrator: a member of `system:masters`.
    pub fn admin() -> Self {
        Self::authenticated("kubernetes-admin", &[MASTERS])
    }

    /// Who sent no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
        }
    }

    /// Is the user a member of `group`?
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// Static bearer tokens.
#[derive(Default)]
pub struct Tokens {
    users: BTreeMap<String, User>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({} not shown)", self.users.len())
    }
}

/// Line and fault of an unreadable token file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFileError {
    line: usize,
    fault: &'static str,
}

impl std::fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "line {} of the token file: {}; expected token,user,uid,\"group1,group2\"",
            self.line, self.fault
        )
    }
}

impl std::error::Error for TokenFileError {}

impl Tokens {
    /// Adds one token.
    pub fn add(&mut self, token: &str, user: User) {
        self.users.insert(token.to_owned(), user);
    }

    /// Adds the lines of a token file in kube-apiserver's format: `token,user,uid,"group1,group2"`,
    /// the groups being optional. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that has fewer than three columns, an empty token or an empty user.
    pub fn add_csv(&mut self, csv: &str) -> Result<(), TokenFileError> {
        for (number, line) in csv.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |fault| TokenFileError { line: number + 1, fault };
            let columns = split_csv(line);
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(fault("fewer than three columns"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(fault("an empty token or user"));
            }
            let groups: Vec<&str> = rest
                .first()
                .map_or("", String::as_str)
                .split(',')
                .map(str::trim)
                .filter(|group| !group.is_empty())
                .collect();
            let mut user = User::authenticated(name, &groups);
            user.uid.clone_from(uid);
            self.add(token, user);
        }
        Ok(())
    }

    /// The user of a token.
    pub fn find(&self, token: &str) -> Option<&User> {
        self.users.get(token)
    }
}

/// Columns of one CSV line; a quoted column may hold commas, `""` stands for a quote.
fn split_csv(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut columns, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            c if quoted
                || !c.is_whitespace()
                || columns.last().is_some_and(|column| !column.is_empty()) =>
            {
                push(&mut columns, c)
            }
            _ => {}
        }
    }
    columns
}

fn push(columns: &mut [String], c: char) {
    if let Some(column) = columns.last_mut() {
        column.push(c);
    }
}

/// The user that a client certificate names: common name and organizations. `None` when it has no
/// common name or does not parse.
pub(crate) fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> =
        certificate.subject().iter_organization().filter_map(|group| group.as_str().ok()).collect();
    Some(User::authenticated(name, &groups))
}

/// The token of an `Authorization` header's value.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_line_gives_user_uid_and_groups() {
        let mut tokens = Tokens::default();
        tokens.add_csv("# users\n\ntok1,ann,u-1,\"dev,ops\"\ntok2,bob,u-2\n").unwrap();
        let ann = tokens.find("tok1").unwrap();
        assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann", "u-1"));
        assert_eq!(ann.groups, ["dev", "ops", AUTHENTICATED]);
        assert_eq!(tokens.find("tok2").unwrap().groups, [AUTHENTICATED]);
        assert!(tokens.find("tok3").is_none());
    }

    #[test]
    fn a_short_line_is_refused_with_its_number() {
        let error = Tokens::default().add_csv("tok,ann,1\ntok2,bob\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2 "), "{error}");
    }

    #[test]
    fn only_the_bearer_scheme_carries_a_token() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer "), None);
    }

    #[test]
    fn tokens_do_not_show_in_debug_output() {
        let mut tokens = Tokens::default();
        tokens.add("canary-7", User::admin());
        assert!(!format!("{tokens:?}").contains("canary"));
    }
}
