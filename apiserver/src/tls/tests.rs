use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Authority;

fn authority() -> Authority {
    Authority::generate([192, 0, 2, 7].into()).unwrap()
}

#[test]
fn the_administrators_certificate_names_the_masters() {
    let authority = authority();
    let der = CertificateDer::from_pem_slice(authority.admin.certificate.as_bytes()).unwrap();
    let user = super::identity::user_of(&der).unwrap();
    assert_eq!(user.name, "kubernetes-admin");
    assert_eq!(user.groups, ["system:masters"]);
}

#[test]
fn certificates_are_version_three_with_an_issuer_name_and_all_addresses() {
    let authority = authority();
    let config = authority.server_config().unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    let (_, parsed) = X509Certificate::from_der(&authority.server).unwrap();
    assert_eq!(parsed.version().0, 2, "that is version 3");
    assert_eq!(parsed.issuer().to_string(), "CN=windlass-apiserver-ca");
    let names = parsed.subject_alternative_name().unwrap().unwrap();
    let names: Vec<String> = names.value.general_names.iter().map(ToString::to_string).collect();
    for name in ["localhost", "kubernetes.default.svc"] {
        assert!(names.iter().any(|n| n.contains(name)), "{name} in {names:?}");
    }
    assert_eq!(names.len(), 8, "{names:?}");
}

#[test]
fn the_kubeconfig_holds_everything_inline() {
    let text = super::kubeconfig::write("https://127.0.0.1:1", &authority(), "tok");
    for part in [
        "server: https://127.0.0.1:1\n",
        "token: tok\n",
        "client-key-data: ",
        "certificate-authority-data: ",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
