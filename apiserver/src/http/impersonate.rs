//! Impersonation by `Impersonate-…` headers.
//!
//! Each impersonated name, group, uid and extra needs the right to impersonate it. Not supported:
//! rights to impersonate for some requests only; a refusal mentions them, as a real server's does.

use std::collections::BTreeMap;

use http::request::Parts;

use super::route;
use crate::auth::{Attributes, User, refusal};
use crate::core::Core;
use crate::status::ApiError;
use crate::verbs::options::Query;

/// Prefix of the headers for extra attributes.
const EXTRA: &str = "impersonate-extra-";
/// Prefix of the names of service accounts.
const ACCOUNT: &str = "system:serviceaccount:";

/// Returns the user that the headers name, or `user` without such headers.
pub(super) fn apply(core: &Core, user: User, request: &Parts) -> Result<User, ApiError> {
    let Some(wanted) = wanted(request)? else { return Ok(user) };
    let authorizer = core.authorizer();
    for right in rights(&wanted) {
        if authorizer.authorize(&user, &right).is_err() {
            // The refusal is worded for the request itself, as a right to impersonate on it.
            let query = Query::parse(request.uri.query().unwrap_or_default());
            let mut about = route::route(&request.method, request.uri.path(), &query).attributes();
            about.verb = format!("impersonate-on:{}:{}", kind(&wanted.name), about.verb);
            let why = authorizer.authorize(&user, &about).err().unwrap_or_default();
            return Err(refusal(&user, &about, &why));
        }
    }
    Ok(complete(wanted))
}

/// Returns the kind of a user in refusals.
fn kind(name: &str) -> &'static str {
    if name.starts_with(ACCOUNT) { "serviceaccount" } else { "user-info" }
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
    // A header with a blank name: HTTP removes the blanks, and kube-apiserver then acts with the rights
    // of the caller. A program that was given a blank name means anybody but itself.
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

/// Returns the text of a header. One that cannot be read is refused: without it the request would run
/// with the caller's rights.
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

/// Returns the rights that a user needs to act as `wanted`.
fn rights(wanted: &User) -> Vec<Attributes> {
    const GROUP: &str = "authentication.k8s.io";
    let right = |group: &str, resource: &str, name: &str| Attributes {
        verb: "impersonate".to_owned(),
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let account = wanted.name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
    let mut out = vec![match account {
        Some((namespace, name)) => {
            let namespace = namespace.to_owned();
            Attributes { namespace, ..right("", "serviceaccounts", name) }
        }
        None => right("", "users", &wanted.name),
    }];
    out.extend(wanted.groups.iter().map(|group| right("", "groups", group)));
    if !wanted.uid.is_empty() {
        out.push(right(GROUP, "uids", &wanted.uid));
    }
    for (key, values) in &wanted.extra {
        out.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..right(GROUP, "userextras", value)
        }));
    }
    out
}

/// Adds the groups that a user has implicitly.
fn complete(mut user: User) -> User {
    let account = user.name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
    // Groups that the request names replace those of the service account.
    if let Some((namespace, _)) = account.filter(|_| user.groups.is_empty()) {
        user.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    user.authenticated()
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
        let rights = rights(&user);
        assert_eq!(rights[0].resource, "serviceaccounts");
        assert_eq!((rights[0].namespace.as_str(), rights[0].name.as_str()), ("ns", "sa"));
        assert_eq!(rights[1].subresource, "a/b");
        let groups = complete(user).groups;
        assert_eq!(
            groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(wanted(&request(&[])).unwrap(), None);
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
