//! Bearer tokens and their users.
//!
//! Tokens are kept as digests, so that the duration of a lookup reveals nothing about how nearly
//! right a token is. The file format is kube-apiserver's: `token,user,uid,"group1,group2"`.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use super::User;

/// SHA-256 digest of a token.
type Key = [u8; 32];

/// The known tokens. `Debug` shows only their number: short tokens can be guessed from their
/// digests.
#[derive(Default)]
pub(crate) struct Tokens {
    users: RwLock<BTreeMap<Key, User>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("count", &self.users.read().len()).finish_non_exhaustive()
    }
}

/// Returns the digest of a token.
fn key(token: &str) -> Key {
    Sha256::digest(token.as_bytes()).into()
}

impl Tokens {
    /// Adds a token.
    pub(crate) fn add(&self, token: &str, user: User) {
        self.users.write().insert(key(token), user);
    }

    /// Adds all tokens of a file. The error names the first line that cannot be read.
    pub(crate) fn add_csv(&self, csv: &str) -> Result<(), String> {
        for (index, line) in csv.lines().enumerate() {
            let line = line.trim();
            // Blank lines and comments.
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = columns(line);
            // The groups may be missing, the other columns may not.
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                let have = columns.len();
                return Err(format!(
                    "line {} of the tokens has {have} columns, needs token, user name, user uid",
                    index + 1
                ));
            };
            if token.is_empty() || name.is_empty() {
                return Err(format!("line {} of the tokens lacks a token or user", index + 1));
            }
            let groups: Vec<&str> =
                rest.first().map(|g| g.split(',').collect()).unwrap_or_default();
            let groups: Vec<&str> =
                groups.into_iter().map(str::trim).filter(|g| !g.is_empty()).collect();
            self.add(token, User { uid: uid.clone(), ..User::new(name.clone(), &groups) });
        }
        Ok(())
    }

    /// Returns the user of a token.
    pub(crate) fn find(&self, token: &str) -> Option<User> {
        self.users.read().get(&key(token)).cloned()
    }
}

/// Splits a line of comma-separated values; quotes hold commas, doubled quotes are quotes.
fn columns(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out.iter_mut().last().into_iter().for_each(|s| s.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.iter_mut().last().into_iter().for_each(|s| s.push(c)),
        }
    }
    out.iter().map(|column| column.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_kube_apiserver_is_read() {
        let tokens = Tokens::default();
        tokens.add_csv("tok,admin,1,\"system:masters,dev\"\n\n# note\nt2,alice,alice\n").unwrap();
        let admin = tokens.find("tok").unwrap();
        assert_eq!((admin.name.as_str(), admin.uid.as_str()), ("admin", "1"));
        assert_eq!(admin.groups, ["system:masters", "dev"]);
        assert_eq!(tokens.find("t2").unwrap().groups, Vec::<String>::new());
        assert_eq!(tokens.find("t3"), None);
        let fault = tokens.add_csv("a,b").unwrap_err();
        assert!(fault.starts_with("line 1 of the tokens has 2 columns"), "{fault}");
    }
}
