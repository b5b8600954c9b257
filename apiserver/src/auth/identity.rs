//! The user in a client certificate: common name and organizations.

// DESIGN.md, 108: Benchmarks are a package outside of the default members

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, BERReader};

use super::User;

/// Object identifier of the common name (X.520, id-at-commonName).
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
/// Object identifier of the organization (X.520, id-at-organizationName).
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// Returns the user of a verified certificate; `None` if no user is named.
pub(crate) fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    // `subject` lacks the header of the sequence.
    user_in(&sequence(certificate.subject()))
}

/// Returns a sequence of encoded items, with the header.
pub(super) fn sequence(items: &[u8]) -> Vec<u8> {
    yasna::construct_der(|writer| {
        writer.write_sequence(|writer| writer.next().write_der(items));
    })
}

/// Returns the user in a subject: the common name, with the organizations as groups.
pub(super) fn user_in(subject: &[u8]) -> Option<User> {
    let attributes = attributes_of(subject).ok()?;
    let values = |wanted: [u64; 4]| {
        let wanted = ObjectIdentifier::from_slice(&wanted);
        let of_kind = attributes.iter().filter(move |(kind, _)| *kind == wanted);
        of_kind.filter_map(|(_, text)| text.as_deref())
    };
    let name = values(COMMON_NAME).next()?;
    let groups: Vec<&str> = values(ORGANIZATION).collect();
    Some(User::new(name, &groups))
}

/// Kind and text of an attribute; `None` for a value in an obsolete character set.
type Attribute = (ObjectIdentifier, Option<String>);

/// Returns all attributes of a subject, which is a sequence of sets of them (RFC 5280, 4.1.2.4).
fn attributes_of(subject: &[u8]) -> ASN1Result<Vec<Attribute>> {
    let mut attributes = Vec::new();
    yasna::parse_der(subject, |names| {
        names.read_sequence_of(|set| {
            set.read_set_of(|attribute| {
                attributes.push(attribute_of(attribute)?);
                Ok(())
            })
        })
    })?;
    Ok(attributes)
}

/// Reads an attribute.
fn attribute_of(reader: BERReader<'_, '_>) -> ASN1Result<Attribute> {
    reader.read_sequence(|reader| {
        let kind = reader.next().read_oid()?;
        let value = reader.next().read_tagged_der()?;
        Ok((kind, value.as_str().map(str::to_owned)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a subject with an attribute of each of `sets`, without the header of the sequence.
    fn subject(sets: &[&[(u64, &str)]]) -> Vec<u8> {
        yasna::construct_der_seq(|names| {
            for set in sets {
                names.next().write_set_of(|set_writer| {
                    for (kind, text) in *set {
                        set_writer.next().write_sequence(|attribute| {
                            let kind = ObjectIdentifier::from_slice(&[2, 5, 4, *kind]);
                            attribute.next().write_oid(&kind);
                            attribute.next().write_utf8_string(text);
                        });
                    }
                });
            }
        })
    }

    #[test]
    fn attributes_are_found_in_sets_of_one_and_of_several() {
        let subject = subject(&[&[(10, "a")], &[(3, "käthe"), (10, "b")], &[(11, "unit")]]);
        let user = user_in(&sequence(&subject)).unwrap();
        assert_eq!(user.name, "käthe");
        assert_eq!(user.groups, ["a", "b"]);
    }

    #[test]
    fn the_first_common_name_counts_and_a_subject_without_one_is_nobody() {
        let two = subject(&[&[(3, "first")], &[(3, "second")]]);
        assert_eq!(user_in(&sequence(&two)).unwrap().name, "first");
        assert!(user_in(&sequence(&subject(&[&[(10, "system:masters")]]))).is_none());
        assert!(user_in(&sequence(&[])).is_none());
        assert!(user_in(&[]).is_none());
    }

    #[test]
    fn a_subject_cut_anywhere_is_nobody_and_no_panic() {
        let whole = subject(&[&[(3, "a name")], &[(10, "a group")]]);
        let first = subject(&[&[(3, "a name")]]).len();
        for end in (0..whole.len()).filter(|end| *end != first) {
            assert!(user_in(&sequence(&whole[..end])).is_none(), "cut at {end}");
        }
    }
}
