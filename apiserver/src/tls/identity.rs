//! The user that a client certificate names: common name and organizations.

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::auth::User;

/// The user of a verified certificate; `None` when it names nobody.
pub(super) fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().find_map(|name| name.as_str().ok())?;
    let groups: Vec<&str> = subject.iter_organization().filter_map(|o| o.as_str().ok()).collect();
    Some(User::new(name, &groups))
}
