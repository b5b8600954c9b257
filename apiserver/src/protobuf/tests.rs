use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;

/// Objects with a value in every field, as Go writes them; `tests/kube-apiserver/record-wire` wrote
/// the file.
static SAMPLES: &str = include_str!("samples.txt");

/// Iterates over the samples: kind, protobuf form, and the object.
fn samples() -> impl Iterator<Item = (&'static str, Vec<u8>, Value)> {
    SAMPLES.lines().map(|line| {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap();
        (word(), STANDARD.decode(word()).unwrap(), serde_json::from_str(word()).unwrap())
    })
}

#[test]
fn gos_bytes_are_read_as_the_json_that_go_writes() {
    for (kind, bytes, object) in samples() {
        assert_eq!(decode(&bytes, "", "").unwrap(), object, "{kind}");
    }
}

#[test]
fn objects_are_written_as_the_bytes_that_go_writes() {
    for (kind, bytes, object) in samples() {
        let written = encode(&object).unwrap();
        assert!(written == bytes, "{kind}: {written:x?}\nand not\n{bytes:x?}");
    }
}
