//! Impersonation by `Impersonate-…` headers.
//!
//! A user may act as another user in several modes, of which the first that allows the request
//! counts: the modes with rights to impersonate for some requests only, by the kind of the other
//! user, and the old mode, whose rights hold for all requests.

use std::collections::{BTreeMap, HashMap};

use http::request::Parts;
use parking_lot::Mutex;

use super::route;
use crate::auth::{ANONYMOUS, AUTHENTICATED, Attributes, UNAUTHENTICATED, User, refusal};
use crate::core::ServerCore;
use crate::names;
use crate::status::ApiError;
use crate::verbs::options::Query;

/// Prefix of the headers for extra attributes.
const EXTRA: &str = "impersonate-extra-";
/// Prefix of the names of service accounts.
const ACCOUNT: &str = "system:serviceaccount:";
/// Prefix of the names of nodes.
const NODE: &str = "system:node:";
/// Group of the rights to impersonate, but for users and groups in the old mode.
const GROUP: &str = "authentication.k8s.io";
/// Number of groups or extras from which on a right to all of them is asked for first.
const MANY: usize = 4;
/// Most users whose last mode is remembered.
const REMEMBERED: usize = 10_000;

/// A way in which a user may act as another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImpersonationMode {
    /// A service account acts as the node on which its Pod runs.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Any other user, with groups, uid and extras.
    UserInfo,
    /// The old way, for all requests.
    Legacy,
}

/// All modes in the order in which they are tried.
const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

/// The mode that allowed the last impersonation of each user: this mode is tried first, and its
/// refusal is visible to the client.
#[derive(Debug, Default)]
pub(super) struct LastModes(Mutex<HashMap<String, ImpersonationMode>>);

impl LastModes {
    fn get(&self, user: &User) -> Option<ImpersonationMode> {
        self.0.lock().get(&user.name).copied()
    }

    fn set(&self, user: &User, mode: ImpersonationMode) {
        let mut held = self.0.lock();
        if held.len() >= REMEMBERED {
            // Only the order of later attempts depends on this memory.
            held.clear();
        }
        held.insert(user.name.clone(), mode);
    }
}

/// Returns the user that the headers name, or `user` without such headers.
pub(super) fn apply(
    core: &ServerCore,
    last: &LastModes,
    user: User,
    request: &Parts,
) -> Result<User, ApiError> {
    let Some(wanted) = wanted(request)? else { return Ok(user) };
    let query = Query::parse(request.uri.query().unwrap_or_default());
    let about = route::route(&request.method, request.uri.path(), &query).attributes();
    let attempt = Attempt { core, user: &user, wanted: &wanted, about: &about };
    let first = last.get(&user);
    let others = MODES.into_iter().filter(|mode| Some(*mode) != first);
    let mut refused = None;
    for mode in first.into_iter().chain(others) {
        if !mode.concerns(&user, &wanted) {
            continue;
        }
        match attempt.run(mode) {
            Ok(found) => {
                last.set(&user, mode);
                return Ok(found);
            }
            Err(error) => drop(refused.get_or_insert(error)),
        }
    }
    Err(refused.unwrap_or_else(|| ApiError::unclassified("all impersonation modes failed")))
}

/// Returns namespace and name of a service account from the name of the user.
fn account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix(ACCOUNT)?.split_once(':')?;
    let valid = names::label(namespace).is_empty() && names::subdomain(name).is_empty();
    // A second colon makes the name an ordinary user.
    (valid && !name.contains(':')).then_some((namespace, name))
}

/// Returns the name of a node from the name of the user.
fn node(name: &str) -> Option<&str> {
    name.strip_prefix(NODE).filter(|name| names::subdomain(name).is_empty())
}

impl ImpersonationMode {
    /// Returns the name of the mode in verbs; empty for the old mode.
    fn name(self) -> &'static str {
        match self {
            ImpersonationMode::AssociatedNode => "associated-node",
            ImpersonationMode::ArbitraryNode => "arbitrary-node",
            ImpersonationMode::ServiceAccount => "serviceaccount",
            ImpersonationMode::UserInfo => "user-info",
            ImpersonationMode::Legacy => "",
        }
    }

    /// Whether a user could act as another user in this mode.
    fn concerns(self, user: &User, wanted: &User) -> bool {
        let alone = wanted.groups.is_empty() && wanted.uid.is_empty() && wanted.extra.is_empty();
        let (account_of, node_of) = (account(&wanted.name), node(&wanted.name));
        let own = user.extra.get("authentication.kubernetes.io/node-name").map(Vec::as_slice);
        match self {
            ImpersonationMode::AssociatedNode => {
                let is_own = matches!(own, Some([own]) if node_of == Some(own));
                alone && is_own && account(&user.name).is_some()
            }
            ImpersonationMode::ArbitraryNode => alone && node_of.is_some(),
            ImpersonationMode::ServiceAccount => alone && account_of.is_some(),
            ImpersonationMode::UserInfo => account_of.is_none() && node_of.is_none(),
            ImpersonationMode::Legacy => true,
        }
    }
}

/// A request of a user to act as another user.
struct Attempt<'a> {
    core: &'a ServerCore,
    user: &'a User,
    wanted: &'a User,
    /// The request.
    about: &'a Attributes,
}

impl Attempt<'_> {
    /// Returns the other user if a mode allows that, else the refusal.
    fn run(&self, mode: ImpersonationMode) -> Result<User, ApiError> {
        if mode != ImpersonationMode::Legacy {
            let verb = format!("impersonate-on:{}:{}", mode.name(), self.about.verb);
            self.allowed(&Attributes { verb, ..self.about.clone() })?;
        }
        self.name(mode)?;
        if !self.wanted.uid.is_empty() {
            self.allowed(&right(mode, GROUP, "uids", &self.wanted.uid))?;
        }
        self.groups(mode)?;
        self.extras(mode)?;
        let is_node =
            matches!(mode, ImpersonationMode::AssociatedNode | ImpersonationMode::ArbitraryNode);
        Ok(complete(self.wanted.clone(), is_node))
    }

    /// Checks a right.
    fn allowed(&self, wanted: &Attributes) -> Result<(), ApiError> {
        let checked = self.core.authorizer().authorize(self.user, wanted);
        checked.map_err(|why| refusal(self.user, wanted, &why))
    }

    /// Checks the right to the name.
    fn name(&self, mode: ImpersonationMode) -> Result<(), ApiError> {
        let group = if mode == ImpersonationMode::Legacy { "" } else { GROUP };
        let name = &self.wanted.name;
        self.allowed(&match (
            account(name),
            node(name).filter(|_| mode != ImpersonationMode::Legacy),
        ) {
            (Some((namespace, name)), _) => Attributes {
                namespace: namespace.to_owned(),
                ..right(mode, group, "serviceaccounts", name)
            },
            // Rights to the own node are rights to any: the node's name changes with each Pod.
            (_, Some(_)) if mode == ImpersonationMode::AssociatedNode => {
                right(mode, group, "nodes", "*")
            }
            (_, Some(name)) => right(mode, group, "nodes", name),
            _ => right(mode, group, "users", name),
        })
    }

    /// Checks the rights to the groups.
    fn groups(&self, mode: ImpersonationMode) -> Result<(), ApiError> {
        let groups = &self.wanted.groups;
        let is_old = mode == ImpersonationMode::Legacy;
        let of = |name: &str| right(mode, if is_old { "" } else { GROUP }, "groups", name);
        if !is_old {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(refusal(self.user, &of(""), why));
            }
            if groups.iter().any(|group| group == "system:masters") {
                let why = "impersonating the system:masters group is not allowed";
                return Err(refusal(self.user, &of("system:masters"), why));
            }
            if groups.len() >= MANY && self.allowed(&of("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.allowed(&of(group)))
    }

    /// Checks the rights to the extra attributes.
    fn extras(&self, mode: ImpersonationMode) -> Result<(), ApiError> {
        let extra = &self.wanted.extra;
        let of = |key: &str, value: &str| Attributes {
            subresource: key.to_owned(),
            ..right(mode, GROUP, "userextras", value)
        };
        if mode != ImpersonationMode::Legacy && !extra.is_empty() {
            if let Some(why) = extra.iter().find_map(|(key, values)| odd(key, values)) {
                return Err(refusal(self.user, &of("", ""), &why));
            }
            let number: usize = extra.values().map(Vec::len).sum();
            if number.max(extra.len()) >= MANY && self.allowed(&of("*", "*")).is_ok() {
                return Ok(());
            }
        }
        let mut all = extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        all.try_for_each(|(key, value)| self.allowed(&of(key, value)))
    }
}

/// Returns a right to impersonate.
fn right(mode: ImpersonationMode, group: &str, resource: &str, name: &str) -> Attributes {
    let mode = mode.name();
    Attributes {
        verb: if mode.is_empty() {
            "impersonate".to_owned()
        } else {
            format!("impersonate:{mode}")
        },
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}

/// Returns the reason why an extra attribute cannot be taken on in the newer modes.
fn odd(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let valid = key
        .split_once('/')
        .is_some_and(|(domain, path)| names::subdomain(domain).is_empty() && !path.is_empty());
    if !valid {
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key:?}: must be a domain-prefixed path (such as \"acme.io/foo\")"
        ));
    }
    if values.iter().any(String::is_empty) {
        return Some("impersonating the empty string value in extra is not allowed".to_owned());
    }
    None
}

/// Returns the user that the headers name.
fn wanted(request: &Parts) -> Result<Option<User>, ApiError> {
    let all = |name: &str| -> Result<Vec<String>, ApiError> {
        request.headers.get_all(name).iter().map(|value| text(name, value)).collect()
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &request.headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            // Keys may contain characters that no header name can.
            let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().push(text(name.as_str(), value)?);
        }
    }
    let user = User {
        name: all("impersonate-user")?.into_iter().next().unwrap_or_default(),
        groups: all("impersonate-group")?,
        uid: all("impersonate-uid")?.into_iter().next().unwrap_or_default(),
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    // A header with a blank name: HTTP removes the blanks, and kube-apiserver then acts with the
    // rights of the caller. A program that was given a blank name intends any user but itself.
    if request.headers.contains_key("impersonate-user") {
        let text = "the header Impersonate-User is empty: name a user, or leave the header out";
        return Err(ApiError::bad_request(text));
    }
    // Groups, uid or extras without a name would change only part of the identity.
    if user.groups.is_empty() && user.uid.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    let text = format!("requested {} without impersonating a user name", printed(&user));
    Err(ApiError::bad_request(text))
}

/// Returns the text of a header. An unreadable header is refused: without the header the request
/// would run with the caller's rights.
fn text(name: &str, value: &http::HeaderValue) -> Result<String, ApiError> {
    String::from_utf8(value.as_bytes().to_vec())
        .map_err(|_| ApiError::bad_request(format!("the header {name} is not valid UTF-8")))
}

/// Returns a user in the words of upstream's error.
fn printed(user: &User) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|i| format!("{i:?}")).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra: Vec<String> = user.extra.iter().map(|(k, v)| format!("{k:?}:{}", list(v))).collect();
    let extra = match extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.uid)
}

/// Adds the groups that a user has implicitly.
fn complete(mut user: User, is_node: bool) -> User {
    if is_node {
        user.groups = vec!["system:nodes".to_owned()];
    }
    // Groups that the request names replace those of the service account.
    if let Some((namespace, _)) = account(&user.name).filter(|_| user.groups.is_empty()) {
        user.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    let has = |group: &str| user.groups.iter().any(|held| held == group);
    let missing = if user.name == ANONYMOUS {
        Some(UNAUTHENTICATED).filter(|group| !has(group))
    } else {
        // A request may name a user who has proved no identity.
        Some(AUTHENTICATED).filter(|group| !has(group) && !has(UNAUTHENTICATED))
    };
    user.groups.extend(missing.map(str::to_owned));
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Parts {
        let mut builder = http::Request::get("/api/v1/pods");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn headers_say_whom_to_act_as() {
        let parts = request(&[
            ("Impersonate-User", "system:serviceaccount:ns:sa"),
            ("Impersonate-Extra-a%2Fb", "x"),
        ]);
        let user = wanted(&parts).unwrap().unwrap();
        assert_eq!(user.extra["a/b"], ["x"]);
        assert_eq!(account(&user.name), Some(("ns", "sa")));
        let groups = complete(user, false).groups;
        assert_eq!(
            groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(wanted(&request(&[])).unwrap(), None);
    }

    #[test]
    fn a_name_with_another_colon_is_a_user_and_no_service_account() {
        for name in ["system:serviceaccount:ns:sa:x", "system:serviceaccount:NS:sa"] {
            assert_eq!(account(name), None);
            assert_eq!(complete(User::new(name, &[]), false).groups, ["system:authenticated"]);
        }
    }

    #[test]
    fn groups_say_whether_the_user_has_proved_anything() {
        let groups = |name: &str, groups: &[&str]| complete(User::new(name, groups), false).groups;
        assert_eq!(groups("system:anonymous", &[]), ["system:unauthenticated"]);
        assert_eq!(groups("x", &["system:unauthenticated"]), ["system:unauthenticated"]);
        assert_eq!(groups("x", &["system:authenticated"]), ["system:authenticated"]);
        assert_eq!(groups("x", &["g"]), ["g", "system:authenticated"]);
    }

    #[test]
    fn a_name_that_is_blank_or_not_ascii_never_means_the_caller() {
        assert_eq!(wanted(&request(&[("Impersonate-User", "")])).unwrap_err().code(), 400);
        let mut parts = request(&[]);
        let value = http::HeaderValue::from_bytes("jürgen".as_bytes()).unwrap();
        parts.headers.insert("impersonate-user", value);
        assert_eq!(wanted(&parts).unwrap().unwrap().name, "jürgen");
        let value = http::HeaderValue::from_bytes(b"j\xfcrgen").unwrap();
        parts.headers.insert("impersonate-user", value);
        assert_eq!(wanted(&parts).unwrap_err().code(), 400);
        let value = http::HeaderValue::from_bytes(b"\xff").unwrap();
        parts.headers.insert("impersonate-user", "a".parse().unwrap());
        parts.headers.insert("impersonate-group", value);
        assert_eq!(wanted(&parts).unwrap_err().code(), 400);
    }

    #[test]
    fn a_group_without_a_user_is_refused_in_the_words_of_a_real_server() {
        let error = wanted(&request(&[("Impersonate-Group", "g1")])).unwrap_err();
        assert_eq!(error.code(), 400);
        assert_eq!(
            error.message(),
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g1\"}, Extra:map[string][]string(nil)} without impersonating a user name"
        );
    }
}
