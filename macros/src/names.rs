//! Rules of Kubernetes for names, checked before a server can refuse them.
//!
//! The API server would refuse such a name when the definition is installed or an object is
//! written: hours after the compile, and far from the attribute that contains the name.

/// Whether `name` is a DNS label (`a-z`, `0-9`, `-`; starts with a letter; ends with a letter or
/// digit).
pub(crate) fn is_label(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.ends_with(plain)
        && name.chars().all(|c| plain(c) || c == '-')
}

/// Whether `name` is a DNS subdomain: labels, which may start with a digit, joined by dots.
pub(crate) fn is_subdomain(name: &str) -> bool {
    let label = |part: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        !part.is_empty()
            && part.starts_with(plain)
            && part.ends_with(plain)
            && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Whether the API server refuses the group of a CRD unless the Kubernetes project approved the
/// group.
pub(crate) fn is_protected_group(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owned| group == *owned || group.ends_with(&format!(".{owned}")))
}

/// Whether `name` is a qualified name: `domain/name`.
pub(crate) fn is_qualified(name: &str) -> bool {
    let Some((domain, name)) = name.split_once('/') else { return false };
    let word = |c: char| c.is_ascii_alphanumeric();
    is_subdomain(domain)
        && name.len() <= 63
        && name.starts_with(word)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || matches!(c, '-' | '_' | '.'))
}

/// Whether `name` is the key of a label or an annotation: `name` or `domain/name`.
pub(crate) fn is_label_key(name: &str) -> bool {
    is_qualified(name) || (!name.contains('/') && is_qualified(&format!("a/{name}")))
}

/// Whether `value` is the value of a label.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified(&format!("a/{value}"))
}

/// Returns the argument of a type with exactly one argument, such as `T` of `Maybe<T>`.
pub(crate) fn only_argument(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    let syn::PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments
    else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(argument) if arguments.args.len() == 1 => Some(argument),
        _ => None,
    }
}

/// Returns a type in the usual form, without the blanks between tokens.
pub(crate) fn type_text(ty: &impl quote::ToTokens) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, plain) in
        [(" <", "<"), ("< ", "<"), (" >", ">"), (" ::", "::"), (":: ", "::"), (" ,", ",")]
    {
        text = text.replace(spaced, plain);
    }
    text
}

/// Returns the English plural of a lower-case kind, by Kubernetes' guess.
pub(crate) fn plural(singular: &str) -> String {
    let ends = |ends: &[&str]| ends.iter().any(|end| singular.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{singular}s"),
    }
}

/// Returns a `snake_case` name in the spelling of Kubernetes' JSON: `camelCase`.
pub(crate) fn camel(snake: &str) -> String {
    let mut camel = String::new();
    let mut upper = false;
    for c in snake.chars() {
        match c {
            '_' => upper = !camel.is_empty(),
            c if upper => {
                camel.extend(c.to_uppercase());
                upper = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_that_kubernetes_guesses() {
        let pairs = [
            ("website", "websites"),
            ("policy", "policies"),
            ("gateway", "gateways"),
            ("ingress", "ingresses"),
            ("box", "boxes"),
            ("patch", "patches"),
        ];
        for (singular, expected) in pairs {
            assert_eq!(plural(singular), expected);
        }
    }

    #[test]
    fn field_names_become_camel_case_as_serde_does_it() {
        assert_eq!(camel("api_version"), "apiVersion");
        assert_eq!(camel("spec"), "spec");
        assert_eq!(camel("a_b_c"), "aBC");
    }

    #[test]
    fn labels_subdomains_and_qualified_names_follow_the_api_server() {
        assert!(is_label("v1alpha1") && is_label("web-sites"));
        assert!(!is_label("1v") && !is_label("V1") && !is_label("a-") && !is_label(""));
        assert!(is_subdomain("example.dev") && is_subdomain("1.example"));
        assert!(!is_subdomain("example..dev") && !is_subdomain("Example.dev"));
        assert!(is_qualified("example.dev/dns") && !is_qualified("dns") && !is_qualified("a/"));
    }

    #[test]
    fn keys_and_values_of_labels_follow_the_api_server() {
        assert!(is_label_key("app") && is_label_key("example.dev/app") && !is_label_key("a/b/c"));
        assert!(!is_label_key("") && !is_label_key("-a") && !is_label_key("/a"));
        assert!(is_label_value("") && is_label_value("v1.2_x") && !is_label_value("a b"));
    }

    #[test]
    fn a_type_is_printed_as_people_write_it() {
        let ty: syn::Type = syn::parse_quote!(::std::collections::BTreeMap<String, Vec<u8>>);
        assert_eq!(type_text(&ty), "::std::collections::BTreeMap<String, Vec<u8>>");
    }

    #[test]
    fn groups_of_the_kubernetes_project_are_protected() {
        assert!(is_protected_group("k8s.io") && is_protected_group("apps.kubernetes.io"));
        assert!(!is_protected_group("notk8s.io") && !is_protected_group("example.dev"));
    }
}
