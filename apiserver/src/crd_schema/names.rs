//! Name rules of Kubernetes that CRDs use, with their texts.

/// Text for names that are not RFC 1123 subdomains.
pub(crate) const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Text for names that are not DNS-1035 labels.
pub(crate) const LABEL_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Whether the text is an RFC 1123 label.
pub(crate) fn is_label(text: &str) -> bool {
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 63
        && bytes.first().is_some_and(alnum)
        && bytes.last().is_some_and(alnum)
        && bytes.iter().all(|b| alnum(b) || *b == b'-')
}

/// Whether the text is an RFC 1123 subdomain.
pub(crate) fn is_subdomain(text: &str) -> bool {
    subdomain(text).is_empty()
}

/// Returns the faults of an RFC 1123 subdomain. The parts may be longer than 63 characters.
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part_ok = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(alnum)
            && bytes.last().is_some_and(alnum)
            && bytes.iter().all(|b| alnum(b) || *b == b'-')
    };
    let mut faults = Vec::new();
    // Limit of a DNS name.
    if text.len() > 253 {
        faults.push("must be no more than 253 bytes".to_owned());
    }
    if !text.split('.').all(part_ok) {
        faults.push(SUBDOMAIN_TEXT.to_owned());
    }
    faults
}

/// Returns the faults of a DNS-1035 label.
pub(crate) fn dns1035(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    // Limit of a DNS label.
    if text.len() > 63 {
        faults.push("must be no more than 63 bytes".to_owned());
    }
    let bytes = text.as_bytes();
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ok = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(alnum)
        && bytes.iter().all(|b| alnum(b) || *b == b'-');
    if !ok {
        faults.push(LABEL_TEXT.to_owned());
    }
    faults
}
