//! Certificates that the authority of a server issues for certificate requests.
//!
//! Name, key and alternative names are copied from the request as they are encoded, so that nothing
//! of them is lost; usages and times are those that the signer grants.

use rcgen::{KeyPair, SigningKey};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use webpki::EndEntityCert;
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, BERReader, DERWriter, Tag};

use super::User;
use super::identity;

/// Object identifiers.
const ECDSA_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const EXTENSION_REQUEST: &[u64] = &[1, 2, 840, 113_549, 1, 9, 14];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const SERVER_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];
/// P-384, the curve of a key.
const P384: &[u64] = &[1, 3, 132, 0, 34];

fn oid(parts: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(parts)
}

/// The authority's key, and the encoded name. Has no `Debug`.
pub(crate) struct Signer {
    key: KeyPair,
    issuer: Vec<u8>,
}

/// A certificate request whose signature comes from its key.
#[derive(Debug)]
pub(crate) struct SigningRequest {
    /// The name that the request asks for, encoded.
    subject: Vec<u8>,
    /// The public key, encoded.
    key: Vec<u8>,
    /// The alternative names, as the encoded value of the extension.
    names: Option<Vec<u8>>,
}

/// Usages and times of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<'a> {
    /// Usages, as requests name them.
    pub(crate) usages: &'a [&'a str],
    /// First time, in RFC 3339.
    pub(crate) begin: &'a str,
    /// Last time, in RFC 3339.
    pub(crate) end: &'a str,
    /// Serial number.
    pub(crate) serial: [u8; 16],
}

impl SigningRequest {
    /// Reads a request in PEM, and verifies the signature.
    ///
    /// # Errors
    /// The text is no request, or the signature does not fit or is of an unsupported kind.
    pub(crate) fn read(pem: &[u8]) -> Result<Self, String> {
        let der = rustls_pki_types::CertificateSigningRequestDer::from_pem_slice(pem)
            .map_err(|error| format!("unable to parse csr: {error}"))?;
        let (info, algorithm, signature) =
            outer(&der).map_err(|error| format!("unable to parse csr: {error}"))?;
        let (request, public, is_p384) =
            Self::parse(&info).map_err(|error| format!("unable to parse csr: {error}"))?;
        let algorithm = verification(&algorithm, is_p384)
            .ok_or("unable to verify certificate request signature: unsupported algorithm")?;
        UnparsedPublicKey::new(algorithm, public).verify(&info, &signature).map_err(|_| {
            "unable to verify certificate request signature: it is not that of its key".to_owned()
        })?;
        Ok(request)
    }

    /// Reads the signed part; returns the bits of the key, and whether the key is on the curve
    /// P-384.
    fn parse(info: &[u8]) -> ASN1Result<(Self, Vec<u8>, bool)> {
        let (subject, key, names) = yasna::parse_der(info, |reader| {
            reader.read_sequence(|reader| {
                reader.next().read_u8()?;
                let subject = reader.next().read_der()?;
                let key = reader.next().read_der()?;
                // A set with the tag of the field in the place of the set's own.
                let names = reader.read_optional(|reader| {
                    reader.read_tagged_implicit(Tag::context(0), alternative_names)
                })?;
                Ok((subject, key, names.flatten()))
            })
        })?;
        let (public, is_p384) = yasna::parse_der(&key, |reader| {
            reader.read_sequence(|reader| {
                let algorithm = reader.next().read_der()?;
                let bits = reader.next().read_bitvec_bytes()?.0;
                let curve = yasna::construct_der(|writer| writer.write_oid(&oid(P384)));
                let is_p384 = algorithm.windows(curve.len()).any(|part| part == curve);
                Ok((bits, is_p384))
            })
        })?;
        Ok((Self { subject, key, names }, public, is_p384))
    }

    /// Returns the user that the name stands for.
    pub(crate) fn user(&self) -> Option<User> {
        identity::user_in(&self.subject)
    }

    /// Whether the request asks for alternative names.
    pub(crate) fn has_names(&self) -> bool {
        self.names.is_some()
    }
}

/// Returns the signed part of a request, the algorithm and the signature.
fn outer(der: &[u8]) -> ASN1Result<(Vec<u8>, ObjectIdentifier, Vec<u8>)> {
    yasna::parse_der(der, |reader| {
        reader.read_sequence(|reader| {
            let info = reader.next().read_der()?;
            let algorithm = reader.next().read_sequence(|reader| {
                let algorithm = reader.next().read_oid()?;
                reader.read_optional(|reader| reader.read_der())?;
                Ok(algorithm)
            })?;
            let signature = reader.next().read_bitvec_bytes()?.0;
            Ok((info, algorithm, signature))
        })
    })
}

/// Returns the extension with alternative names among the attributes of a request.
fn alternative_names(attributes: BERReader<'_, '_>) -> ASN1Result<Option<Vec<u8>>> {
    let mut found = None;
    attributes.read_set_of(|reader| {
        let (kind, values) = reader
            .read_sequence(|reader| Ok((reader.next().read_oid()?, reader.next().read_der()?)))?;
        if kind == oid(EXTENSION_REQUEST) {
            yasna::parse_der(&values, |reader| {
                reader.read_set_of(|reader| {
                    reader.read_sequence_of(|reader| {
                        let (kind, value) = extension(reader)?;
                        if kind == oid(ALTERNATIVE_NAMES) {
                            found = Some(value);
                        }
                        Ok(())
                    })
                })
            })?;
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads an extension: kind and value.
fn extension(reader: BERReader<'_, '_>) -> ASN1Result<(ObjectIdentifier, Vec<u8>)> {
    reader.read_sequence(|reader| {
        let kind = reader.next().read_oid()?;
        reader.read_optional(|reader| reader.read_bool())?;
        Ok((kind, reader.next().read_bytes()?))
    })
}

/// Returns the algorithm that verifies a signature.
fn verification(
    algorithm: &ObjectIdentifier,
    is_p384: bool,
) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm.components().as_slice() {
        [1, 2, 840, 113_549, 1, 1, 11] => &signature::RSA_PKCS1_2048_8192_SHA256,
        [1, 2, 840, 113_549, 1, 1, 12] => &signature::RSA_PKCS1_2048_8192_SHA384,
        [1, 2, 840, 113_549, 1, 1, 13] => &signature::RSA_PKCS1_2048_8192_SHA512,
        [1, 2, 840, 10045, 4, 3, 2] if is_p384 => &signature::ECDSA_P384_SHA256_ASN1,
        [1, 2, 840, 10045, 4, 3, 2] => &signature::ECDSA_P256_SHA256_ASN1,
        [1, 2, 840, 10045, 4, 3, 3] if is_p384 => &signature::ECDSA_P384_SHA384_ASN1,
        [1, 2, 840, 10045, 4, 3, 3] => &signature::ECDSA_P256_SHA384_ASN1,
        [1, 3, 101, 112] => &signature::ED25519,
        _ => return None,
    })
}

impl Signer {
    /// Returns the signer of an authority, from certificate and key in PEM.
    pub(crate) fn new(certificate: &str, key: &str) -> Option<Self> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
        let subject = EndEntityCert::try_from(&certificate).ok()?.subject().to_vec();
        let issuer = identity::sequence(&subject);
        Some(Self { key: KeyPair::from_pem(key).ok()?, issuer })
    }

    /// Issues the certificate of a request, in PEM.
    ///
    /// # Errors
    /// The key of the authority cannot sign.
    pub(crate) fn sign(
        &self,
        request: &SigningRequest,
        grant: Grant<'_>,
    ) -> Result<String, String> {
        let algorithm = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| writer.next().write_oid(&oid(ECDSA_SHA256)));
        });
        let body = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
                writer.next().write_bigint_bytes(&grant.serial, true);
                writer.next().write_der(&algorithm);
                writer.next().write_der(&self.issuer);
                writer.next().write_sequence(|writer| {
                    time(writer.next(), grant.begin);
                    time(writer.next(), grant.end);
                });
                writer.next().write_der(&request.subject);
                writer.next().write_der(&request.key);
                writer.next().write_tagged(Tag::context(3), |writer| {
                    extensions(writer, request, grant.usages);
                });
            });
        });
        let signature = self.key.sign(&body).map_err(|error| format!("cannot sign: {error}"))?;
        let der = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&body);
                writer.next().write_der(&algorithm);
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        Ok(pem(&der))
    }
}

/// Writes the extensions of a certificate.
fn extensions(writer: DERWriter<'_>, request: &SigningRequest, usages: &[&str]) {
    let has = |usage: &str| usages.contains(&usage);
    // The bits of RFC 5280: the first is for signatures, the third for the encryption of keys.
    let (bits, count) = match (has("digital signature"), has("key encipherment")) {
        (true, false) => (0x80, 1),
        (false, true) => (0x20, 3),
        (true, true) => (0xa0, 3),
        (false, false) => (0, 0),
    };
    writer.write_sequence(|writer| {
        let mut extension = |kind: &[u64], is_critical: bool, value: Vec<u8>| {
            writer.next().write_sequence(|writer| {
                writer.next().write_oid(&oid(kind));
                if is_critical {
                    writer.next().write_bool(true);
                }
                writer.next().write_bytes(&value);
            });
        };
        if count > 0 {
            let value = yasna::construct_der(|writer| writer.write_bitvec_bytes(&[bits], count));
            extension(KEY_USAGE, true, value);
        }
        let value = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                for (usage, kind) in [("server auth", SERVER_AUTH), ("client auth", CLIENT_AUTH)] {
                    if has(usage) {
                        writer.next().write_oid(&oid(kind));
                    }
                }
            });
        });
        extension(EXTENDED_KEY_USAGE, false, value);
        let value = yasna::construct_der(|writer| writer.write_sequence(|_| ()));
        extension(BASIC_CONSTRAINTS, true, value);
        if let Some(names) = &request.names {
            extension(ALTERNATIVE_NAMES, false, names.clone());
        }
    });
}

/// Writes a time: with two digits of the year before 2050, as RFC 5280 demands.
fn time(writer: DERWriter<'_>, rfc3339: &str) {
    let digits: String = rfc3339.chars().filter(char::is_ascii_digit).take(14).collect();
    let is_late = digits.as_str() >= "2050";
    let (tag, text) = if is_late { (0x18_u8, &digits[..]) } else { (0x17, &digits[2..]) };
    let mut der = vec![tag, u8::try_from(text.len() + 1).unwrap_or(0)];
    der.extend(text.bytes());
    der.push(b'Z');
    writer.write_der(&der);
}

/// Returns a certificate in PEM.
fn pem(der: &[u8]) -> String {
    use base64::Engine;

    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for at in (0..text.len()).step_by(64) {
        pem.push_str(&text[at..text.len().min(at + 64)]);
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> String {
        let key = KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["host.example".to_owned()]).unwrap();
        params.serialize_request(&key).unwrap().pem().unwrap()
    }

    #[test]
    fn a_request_with_one_changed_byte_is_refused_and_no_panic() {
        let pem = request();
        assert!(SigningRequest::read(pem.as_bytes()).unwrap().has_names());
        let der =
            rustls_pki_types::CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap();
        for at in 0..der.len() {
            let mut bytes = der.to_vec();
            bytes[at] ^= 0x41;
            let text = pem_of(&bytes);
            assert!(SigningRequest::read(text.as_bytes()).is_err(), "byte {at}");
            assert!(SigningRequest::read(pem_of(&bytes[..at]).as_bytes()).is_err(), "cut at {at}");
        }
        assert!(SigningRequest::read(b"").is_err());
    }

    fn pem_of(der: &[u8]) -> String {
        pem(der).replace("CERTIFICATE", "CERTIFICATE REQUEST")
    }
}
