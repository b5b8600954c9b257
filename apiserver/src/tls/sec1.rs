//! Keys on elliptic curves in the form of SEC 1 (RFC 5915), under the label `EC PRIVATE KEY`.
//!
//! Clients that choose the algorithm by the label, as fabric8's does, take `PRIVATE KEY` (PKCS #8)
//! for RSA and fail. Go, OpenSSL and rustls read both forms.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, BERReaderSeq, Tag};

/// Object identifier of the curve P-256 (`prime256v1`), which all generated keys are on.
const P256: [u64; 7] = [1, 2, 840, 10045, 3, 1, 7];

/// Returns a P-256 key, given in PKCS #8, in PEM; `None` if the bytes are no such key.
pub(super) fn pem(pkcs8: &[u8]) -> Option<String> {
    let der = convert(pkcs8).ok()?;
    let text = STANDARD.encode(der);
    let mut out = "-----BEGIN EC PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str("-----END EC PRIVATE KEY-----\n");
    Some(out)
}

/// Takes the inner key out of the envelope, and adds the name of the curve, which stands only
/// outside.
fn convert(pkcs8: &[u8]) -> ASN1Result<Vec<u8>> {
    let inner = yasna::parse_der(pkcs8, |reader| {
        reader.read_sequence(|reader: &mut BERReaderSeq<'_, '_>| {
            reader.next().read_u8()?;
            reader.next().read_tagged_der()?;
            reader.next().read_bytes()
        })
    })?;
    let (secret, public) = yasna::parse_der(&inner, |reader| {
        reader.read_sequence(|reader| {
            reader.next().read_u8()?;
            let secret = reader.next().read_bytes()?;
            let public =
                reader.next().read_tagged(Tag::context(1), |reader| reader.read_bitvec_bytes())?;
            Ok((secret, public.0))
        })
    })?;
    Ok(yasna::construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(1);
            writer.next().write_bytes(&secret);
            let curve = ObjectIdentifier::from_slice(&P256);
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_oid(&curve));
            let bits = public.len() * 8;
            writer
                .next()
                .write_tagged(Tag::context(1), |writer| writer.write_bitvec_bytes(&public, bits));
        });
    }))
}
