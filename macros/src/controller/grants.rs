//! The grants of `can(…)`: verbs, their target, and names.

// DESIGN.md, 136: A grant is verbs, one target and names; names are checked by the API server

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Ident, LitStr, Token, Type, bracketed};

use super::{object_names, subresources};
use crate::errors::Errors;
use crate::keys::{WithSpan, left_over, unknown};

/// Verbs on kinds that calls of a reconcile's context require.
pub(crate) const VERBS: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// Verbs that hand on rights that the holder may lack: granted for named objects only.
pub(crate) const ESCALATING: &[&str] =
    &["bind", "escalate", "impersonate", "approve", "sign", "attest", "use"];
/// Verbs on paths that are no resources.
pub(crate) const METHODS: &[&str] = &["get", "head", "post", "put", "patch", "delete", "options"];
/// Verbs that RBAC decides about before the request has a name.
const NAMELESS: &[&str] = &["create", "deletecollection"];
/// Verbs on collections, which RBAC permits by name only under a field selector.
const COLLECTIONS: &[&str] = &["list", "watch"];
/// Subresources, with the verbs that API servers have for them.
pub(crate) const SUBRESOURCES: &[(&str, &[&str])] = &[
    ("approval", &["update", "patch"]),
    ("attach", &["get", "create"]),
    ("binding", &["create"]),
    ("ephemeralcontainers", &["get", "patch", "update"]),
    ("eviction", &["create"]),
    ("exec", &["get", "create"]),
    ("finalizers", &["update"]),
    ("log", &["get"]),
    ("portforward", &["get", "create"]),
    ("proxy", &["get", "create", "update", "patch", "delete"]),
    ("resize", &["get", "patch", "update"]),
    ("scale", &["get", "patch", "update"]),
    ("status", &["get", "patch", "update"]),
    ("token", &["create"]),
];

/// Verbs on a target, as written between two commas.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// The verbs, as RBAC prints them.
    pub(super) verbs: Vec<WithSpan<String>>,
    pub(super) target: GrantTarget,
    /// Names of the objects; empty for all.
    pub(super) names: Vec<WithSpan<String>>,
}

/// The target of a grant.
#[derive(Clone, Debug)]
pub(super) enum GrantTarget {
    /// `Pod`, or `Pod/eviction`.
    Kind(Box<Type>, Option<WithSpan<String>>),
    /// `"signers.certificates.k8s.io"`: a resource without a Rust type.
    Resource(WithSpan<String>),
    /// `"/metrics"`: a path that is no resource.
    Url(WithSpan<String>),
}

impl GrantTarget {
    /// Returns the target as written.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Kind(kind, None) => text(kind),
            Self::Kind(kind, Some(sub)) => {
                let is_known = SUBRESOURCES.iter().any(|(known, _)| *known == sub.value);
                let (kind, sub) = (text(kind), &sub.value);
                if is_known { format!("{kind}/{sub}") } else { format!("{kind}/{sub:?}") }
            }
            Self::Resource(name) | Self::Url(name) => format!("{:?}", name.value),
        }
    }

    /// Returns the position of the target.
    fn span(&self) -> Span {
        match self {
            Self::Kind(kind, _) => kind.span(),
            Self::Resource(name) | Self::Url(name) => name.span,
        }
    }
}

/// Prints tokens without blanks.
pub(super) fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// Returns the verbs in a sentence: "`get`, `list` and `watch`".
pub(super) fn verbs_text(verbs: &[&str]) -> String {
    let mut text = String::new();
    for (i, verb) in verbs.iter().enumerate() {
        text += match i {
            0 => "",
            _ if i + 1 == verbs.len() => " and ",
            _ => ", ",
        };
        text += &format!("`{verb}`");
    }
    text
}

/// Reads `get list Pod, create Pod/eviction, get Secret["tls"]`.
pub(super) fn read(input: ParseStream<'_>, errors: &mut Errors, into: &mut Vec<Grant>) {
    while !input.is_empty() {
        let found = errors.keep(grant(input));
        let rest = left_over(input);
        let _ = input.parse::<Option<Token![,]>>();
        let Some(mut found) = found else { continue };
        // Without the rest, the grant would differ from the written grant.
        if !rest.is_empty() {
            errors.add(syn::Error::new_spanned(&rest, rest_fault(&found, &rest)));
            found.names.clear();
        } else if !check(&found, errors) {
            continue;
        }
        into.push(found);
    }
}

/// Reads a grant: verbs, a target, names.
fn grant(input: ParseStream<'_>) -> syn::Result<Grant> {
    if input.peek(Token![*]) {
        let message = "name the verbs: a wildcard would also grant `bind`, `escalate` and `impersonate`, and verbs of \
                       later versions of Kubernetes";
        return Err(syn::Error::new(input.span(), message));
    }
    if input.peek(syn::token::Bracket) || input.peek(syn::token::Paren) {
        let list: proc_macro2::TokenTree = input.parse()?;
        let _ = left_over(input);
        let message = "verbs stand side by side, without brackets and commas: `get list Pod`";
        return Err(syn::Error::new(list.span(), message));
    }
    let mut verbs = Vec::new();
    // `use` is a keyword of Rust.
    while input.peek(Token![use])
        || (input.peek(Ident)
            && (input.peek2(Ident) || input.peek2(LitStr) || input.peek2(Token![use])))
    {
        let verb = input.call(Ident::parse_any)?;
        if let Some(message) = missing_comma(&verbs, &verb, input) {
            let place = input.span();
            let _ = left_over(input);
            return Err(syn::Error::new(place, message));
        }
        verbs.push(WithSpan { value: verb.to_string(), span: verb.span() });
    }
    if let Some(last) = verbs.last().filter(|_| input.is_empty() || input.peek(Token![,])) {
        return Err(syn::Error::new(last.span, no_target(&last.value)));
    }
    let target = target(input)?;
    if verbs.is_empty() && input.peek(Token![:]) {
        skip_verbs(input)?;
        let message = "a grant is verbs and a kind behind them, without a colon: `get list Pod`";
        return Err(syn::Error::new(target.span(), message));
    }
    if verbs.is_empty() {
        return Err(syn::Error::new(target.span(), no_verbs(&target)));
    }
    let names = if input.peek(syn::token::Bracket) { names(input)? } else { Vec::new() };
    Ok(Grant { verbs, target, names })
}

/// Takes the verbs behind `Pod:`, which commas separate, for which a fault is reported.
fn skip_verbs(input: ParseStream<'_>) -> syn::Result<()> {
    loop {
        let _ = left_over(input);
        let ahead = input.fork();
        ahead.parse::<Option<Token![,]>>()?;
        if ahead.call(Ident::parse_any).is_err() || !(ahead.is_empty() || ahead.peek(Token![,])) {
            return Ok(());
        }
        input.parse::<Token![,]>()?;
    }
}

/// Returns the text against a verb behind a kind; `None` for another word than a kind before it.
fn missing_comma(
    verbs: &[WithSpan<String>],
    kind: &Ident,
    input: ParseStream<'_>,
) -> Option<String> {
    let kind = kind.to_string();
    let next = input.fork().call(Ident::parse_any).ok()?.to_string();
    let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase());
    let verbs: Vec<&str> = verbs.iter().map(|verb| verb.value.as_str()).collect();
    (is_kind && !verbs.is_empty()).then(|| {
        let first = format!("{} {kind}", verbs.join(" "));
        format!("a comma is missing between two grants: `{first}, {next} …`")
    })
}

/// Returns the text against a target without verbs.
fn no_verbs(target: &GrantTarget) -> String {
    let word = target.text();
    if VERBS.contains(&word.as_str()) || ESCALATING.contains(&word.as_str()) {
        return no_target(&word);
    }
    "a grant is verbs and a kind: `get Pod`, `get list Pod`".to_owned()
}

/// Returns the text against a verb without a target.
fn no_target(verb: &str) -> String {
    format!("`{verb}` needs a kind behind it, and no comma: `get list Pod`")
}

/// Reads a kind with an optional subresource, a resource's name or a path.
fn target(input: ParseStream<'_>) -> syn::Result<GrantTarget> {
    if input.peek(LitStr) {
        let name = WithSpan::text(&input.parse()?);
        let is_url = name.value.starts_with('/');
        return Ok(if is_url { GrantTarget::Url(name) } else { GrantTarget::Resource(name) });
    }
    let kind = Box::new(Type::without_plus(input)?);
    if input.parse::<Option<Token![/]>>()?.is_none() {
        return Ok(GrantTarget::Kind(kind, None));
    }
    if input.peek(LitStr) {
        return Ok(GrantTarget::Kind(kind, Some(WithSpan::text(&input.parse()?))));
    }
    let sub: Ident = input.parse().map_err(|fault| {
        let kind = text(&kind);
        syn::Error::new(fault.span(), format_args!("a subresource is a word: `{kind}/status`"))
    })?;
    let (value, span) = (sub.to_string(), sub.span());
    let known: Vec<&str> = SUBRESOURCES.iter().map(|(name, _)| *name).collect();
    if !known.contains(&value.as_str()) {
        let message = match value.as_str() {
            "evict" => "unknown subresource `evict`; did you mean `eviction`?".to_owned(),
            "replicas" => "unknown subresource `replicas`; did you mean `scale`?".to_owned(),
            value => unknown("subresource", value, &known),
        };
        let message =
            format!("{message}; one of another API is written `{}/{value:?}`", text(&kind));
        return Err(syn::Error::new(span, message));
    }
    Ok(GrantTarget::Kind(kind, Some(WithSpan { value, span })))
}

/// Reads `["tls", "ca"]`.
fn names(input: ParseStream<'_>) -> syn::Result<Vec<WithSpan<String>>> {
    let content;
    let brackets = bracketed!(content in input);
    let mut names = Vec::new();
    while !content.is_empty() {
        let start = content.span();
        let name = content.parse::<LitStr>();
        let is_separated = content.is_empty() || content.parse::<Token![,]>().is_ok();
        let (Ok(name), true) = (name, is_separated) else {
            // Tokens that are left over would be reported as a fault of their own.
            let _ = content.parse::<TokenStream>();
            let message = "names of objects are texts: `get Secret[\"tls\", \"ca\"]`";
            return Err(syn::Error::new(start, message));
        };
        names.push(WithSpan::text(&name));
    }
    if names.is_empty() {
        let message = "no names: for all objects leave the brackets out";
        return Err(syn::Error::new(brackets.span.join(), message));
    }
    Ok(names)
}

/// Returns the text against `rest`, the tokens between a grant and the next comma.
fn rest_fault(grant: &Grant, rest: &TokenStream) -> String {
    let verbs: Vec<&str> = grant.verbs.iter().map(|verb| verb.value.as_str()).collect();
    let (verbs, target) = (verbs.join(" "), grant.target.text());
    if !grant.names.is_empty() && rest.to_string().starts_with('/') {
        let rest = text(rest);
        return format!("names stand behind the subresource: `{verbs} {target}{rest}[…]`");
    }
    format!(
        "`{rest}` stands behind the grant `{verbs} {target}`: a grant is verbs and one kind, and a comma separates it \
         from the next: `get list Pod, create Event`"
    )
}

/// Checks verbs and names against the target; whether there is no fault.
fn check(grant: &Grant, errors: &mut Errors) -> bool {
    let mut is_good = true;
    for verb in &grant.verbs {
        if let Some(message) = verb_fault(grant, &verb.value) {
            errors.at(verb.span, message);
            is_good = false;
        }
    }
    let fault = match &grant.target {
        GrantTarget::Url(url) => url_fault(&url.value, &grant.names),
        GrantTarget::Resource(name) => resource_fault(&name.value),
        GrantTarget::Kind(..) => None,
    };
    if let Some(message) = fault {
        errors.at(grant.target.span(), message);
        is_good = false;
    }
    if let GrantTarget::Kind(kind, Some(sub)) = &grant.target
        && let Some(message) =
            subresources::name_fault(&sub.value).or_else(|| subresources::fault(kind, &sub.value))
    {
        errors.at(sub.span, message);
        is_good = false;
    }
    for (i, name) in grant.names.iter().enumerate() {
        if grant.names[..i].iter().any(|before| before.value == name.value) {
            errors.at(name.span, format_args!("the name {:?} is written twice", name.value));
            is_good = false;
        } else if let Some(message) = name_fault(&name.value, grant) {
            errors.at(name.span, message);
            is_good = false;
        }
    }
    is_good
}

/// Returns the text against a name that no object has: an API server takes the rule, which permits
/// nothing.
fn name_fault(name: &str, grant: &Grant) -> Option<String> {
    let is_kind = matches!(grant.target, GrantTarget::Kind(..));
    let message = if is_wildcard(name, &grant.target) {
        "names have no wildcard: RBAC would permit an object of exactly this name only; write the names of the \
         objects, or no names for all of them"
    } else if name.is_empty() {
        "no object has an empty name: write the names of the objects, or no names for all of them"
    } else if is_kind && name.contains('/') {
        "no name has a `/`: write the name alone; the Role of a namespace says in which namespace it counts"
    } else if is_kind && name.contains('%') {
        "no name has a `%`, which an address cannot hold: write the name alone"
    } else if is_kind && matches!(name, "." | "..") {
        return Some(format!("no object has the name {name:?}: write the names of the objects"));
    } else {
        return object_names::fault(grant, name);
    };
    Some(message.to_owned())
}

/// Whether a name is meant to stand for several objects. Signers have such names.
fn is_wildcard(name: &str, target: &GrantTarget) -> bool {
    match target {
        GrantTarget::Kind(..) => name.contains('*'),
        GrantTarget::Resource(_) => name == "*",
        GrantTarget::Url(_) => false,
    }
}

/// Returns the text against a verb on the target; `None` for a verb that fits.
fn verb_fault(grant: &Grant, verb: &str) -> Option<String> {
    let target = grant.target.text();
    let known: Vec<&str> = match &grant.target {
        GrantTarget::Url(_) => METHODS.to_vec(),
        _ => VERBS.iter().chain(ESCALATING).copied().collect(),
    };
    match verb {
        "apply" => {
            return Some(
                "server-side apply is the verb `patch`, and `create` for new objects".into(),
            );
        }
        "replace" => return Some("replacing an object is the verb `update`".into()),
        "read" => return Some("reading is the verbs `get`, `list` and `watch`".into()),
        "write" | "edit" => {
            return Some("writing is the verbs `create`, `update`, `patch` and `delete`".into());
        }
        "all" | "any" => {
            return Some("name the verbs: there is none that includes the others".into());
        }
        verb if !known.contains(&verb) => return Some(unknown("verb", verb, &known)),
        _ => {}
    }
    if let GrantTarget::Kind(_, Some(sub)) = &grant.target
        && let Some((_, verbs)) = SUBRESOURCES.iter().find(|(name, _)| *name == sub.value)
        && !verbs.contains(&verb)
    {
        let verbs: Vec<String> = verbs.iter().map(|verb| format!("`{verb}`")).collect();
        return Some(format!("`{target}` has no `{verb}`; its verbs are {}", verbs.join(", ")));
    }
    if ESCALATING.contains(&verb) && grant.names.is_empty() {
        return Some(format!(
            "`{verb}` hands on rights that the operator itself may not have: name the objects, \
             `{verb} {target}[\"…\"]`"
        ));
    }
    if grant.names.is_empty() {
        None
    } else if NAMELESS.contains(&verb) && !matches!(grant.target, GrantTarget::Kind(_, Some(_))) {
        Some(format!(
            "`{verb}` cannot be limited to names: RBAC decides about it before there is one, and would refuse every \
             `{verb}`; write `{verb} {target}` as a grant of its own"
        ))
    } else if COLLECTIONS.contains(&verb) {
        Some(format!(
            "`{verb}` by name permits only requests with the field selector `metadata.name=…`, which no call of the \
             context sends: grant `get` by name, or `{verb} {target}` for all objects"
        ))
    } else {
        None
    }
}

/// Returns the text against a path; `None` for a path that RBAC takes.
fn url_fault(url: &str, names: &[WithSpan<String>]) -> Option<String> {
    if !names.is_empty() {
        return Some("a path has no objects, and so no names".to_owned());
    }
    let star = url.find('*').filter(|at| *at + 1 != url.len());
    star.map(|_| format!("`*` stands at the end of a path only: `{url}` would match nothing"))
}

/// Resources of the core group, with those that only the verb `impersonate` knows.
const CORE: &[&str] = &[
    "bindings",
    "componentstatuses",
    "configmaps",
    "endpoints",
    "events",
    "groups",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
    "users",
];

/// Returns the text against the name of a resource; `None` for a name that RBAC can have.
fn resource_fault(name: &str) -> Option<String> {
    if name.contains('*') {
        return Some("name the resource: a wildcard grants more than is used".to_owned());
    }
    if name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Some(format!("a kind is written as its type, without quotation marks: `{name}`"));
    }
    let is_plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '/');
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_plain);
    let resource = name.split('/').next().unwrap_or(name);
    // Only the core group has resources without a group behind the name, and that group gets no new
    // resources.
    let is_known = resource.contains('.') || CORE.contains(&resource);
    (!is_good || !is_known).then(|| {
        format!(
            "`{name}` is neither a path, which begins with `/`, nor a resource: one of the core group, or one with its \
             group, such as \"signers.certificates.k8s.io\""
        )
    })
}
