//! Client certificates: asked for in the handshake, judged afterwards.
//!
//! As in kube-apiserver a certificate that cannot be verified does not end the handshake: the
//! connection's requests are answered with 401, which tells more than an alert of TLS.

// DESIGN.md, 150: The embedded server judges client certificates after the handshake

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::EndEntityCert;

use crate::auth::{ConnectionIdentity, identity};

/// The verifier of client certificates.
#[derive(Debug)]
pub(super) struct Clients {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    pub(super) fn new(verifier: Arc<dyn ClientCertVerifier>) -> Self {
        Self { verifier }
    }

    /// Returns the identity that a client's certificates prove, or that they prove none.
    pub(super) fn identity(
        &self,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> ConnectionIdentity {
        let Some((own, intermediates)) = chain.split_first() else {
            return ConnectionIdentity::default();
        };
        match self.verifier.verify_client_cert(own, intermediates, now) {
            Ok(_) => ConnectionIdentity { user: identity::user_of(own), is_refused: false },
            Err(error) => {
                tracing::debug!(%error, "a client certificate cannot be verified");
                ConnectionIdentity { user: None, is_refused: true }
            }
        }
    }

    /// Whether a certificate has a form that `identity` may accept.
    fn is_readable(certificate: &CertificateDer<'_>) -> bool {
        EndEntityCert::try_from(certificate).is_ok()
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        // Clients without a certificate identify themselves by a token.
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    /// Accepts every certificate: `identity` judges it later.
    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // The signature under an unreadable certificate (X.509 v1) proves nothing: such a
        // certificate is refused anyway.
        if !Self::is_readable(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !Self::is_readable(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
