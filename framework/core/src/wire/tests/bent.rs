//! Objects written in every way that JSON allows, and bytes changed in ways that JSON does not
//! allow.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// Pieces that are put into bytes: syntax, wanted members, and bytes that are no JSON.
const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\\"",
    b",",
    b":",
    b" \r\n\t",
    b"null",
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"\\u0061",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\x00",
    b"\xed\xa0\x80",
    b"\"metadata\":",
    b"\"metadata\":null,",
    b"\"metadata\":{\"name\":\"x\"},",
    b"\"kind\":\"K\",",
    b"\"apiVersion\":{},",
    b"\"managedFields\":[{\"a\":\"}\"}],",
    b"\"name\":7,",
    b"\"name\":\"\",",
    b"\"labels\":null,",
    b"\"labels\":{\"a\":1},",
    b"\"uid\":\"\\u0041\",",
    b"\"\\u006eame\":\"e\",",
    b"[[[[[[[[",
    b"]]]]]]]]",
    b"{\"a\":{\"a\":{\"a\":",
    b"}}}",
    b"/",
    b"//x\n",
    b"'",
    b"NaN",
    b"\"object\":{},",
    b"\"items\":[],",
];

fn pick<'a, T>(rng: &Rng, of: &'a [T]) -> &'a T {
    &of[rng.below(of.len() as u64) as usize]
}

fn place(rng: &Rng, bytes: &[u8]) -> usize {
    rng.below(bytes.len() as u64 + 1) as usize
}

/// Changes bytes at one to three places.
pub(super) fn bend(bytes: &mut Vec<u8>, rng: &Rng) {
    for _ in 0..=rng.below(3) {
        let (a, b) = (place(rng, bytes), place(rng, bytes));
        let near = a.min(b)..a.max(b).min(a.min(b) + 12);
        match rng.below(8) {
            0 => bytes.truncate(a),
            1 => drop(bytes.drain(near)),
            2 => {
                let again = bytes[near].to_vec();
                bytes.splice(b..b, again);
            }
            3 if !near.is_empty() => {
                let (x, y) = (near.start, near.end - 1);
                bytes.swap(x, y);
            }
            4 if a < bytes.len() => bytes[a] = rng.below(256) as u8,
            _ => {
                // Between two members as a rule: there a word may fit.
                let comma = bytes[a..].iter().position(|byte| matches!(byte, b',' | b'{'));
                let at = comma.map_or(a, |comma| a + comma + 1);
                bytes.splice(at..at, pick(rng, WORDS).iter().copied());
            }
        }
    }
}

/// Puts other values at a few places of the object.
pub(super) fn rearrange(value: &mut Value, rng: &Rng) {
    for _ in 0..rng.below(3) {
        let place = somewhere(value, rng);
        *place = match rng.below(12) {
            0 => Value::Null,
            1 => json!({}),
            2 => json!([]),
            3 => json!("\"}],\\"),
            4 => json!(""),
            5 => json!(-7),
            6 => json!(1.5e300),
            7 => json!({"metadata": {"name": "inner"}, "kind": "I", "managedFields": 1}),
            8 => json!([[["deep", {"uid": "d"}]], "flat"]),
            9 => json!("é\u{1f600}\u{0}\u{1f}"),
            10 => json!("x".repeat(rng.below(200) as usize)),
            _ => json!({"kind": "O", "uid": "o", "name": "n", "a": "1", "apiVersion": "v1"}),
        };
    }
}

fn somewhere<'a>(value: &'a mut Value, rng: &Rng) -> &'a mut Value {
    let below = match &*value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    // One of four walks stops here; never at the top.
    if below == 0 {
        return value;
    }
    let at = rng.below(below as u64) as usize;
    let inner = match value {
        Value::Object(map) => map.values_mut().nth(at).expect("a member"),
        Value::Array(items) => &mut items[at],
        _ => unreachable!("only these have something below"),
    };
    if rng.below(4) == 0 { inner } else { somewhere(inner, rng) }
}

/// Writes `value` with its members in any order, with random blanks and escapes. Returns whether a
/// key has an escape.
pub(super) fn write_json(value: &Value, rng: &Rng, out: &mut Vec<u8>) -> bool {
    let mut odd_keys = false;
    blank(rng, out);
    match value {
        Value::Object(map) => odd_keys = write_object(map, rng, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                odd_keys |= write_json(item, rng, out);
            }
            blank(rng, out);
            out.push(b']');
        }
        Value::String(text) => {
            write_text(text, rng, 40, out);
        }
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
    blank(rng, out);
    odd_keys
}

fn write_object(map: &Map<String, Value>, rng: &Rng, out: &mut Vec<u8>) -> bool {
    let mut odd_keys = false;
    let mut members: Vec<_> = map.iter().collect();
    if rng.below(2) == 0 {
        for last in (1..members.len()).rev() {
            members.swap(last, rng.below(last as u64 + 1) as usize);
        }
    }
    out.push(b'{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        blank(rng, out);
        odd_keys |= write_text(name, rng, 4000, out);
        blank(rng, out);
        out.push(b':');
        odd_keys |= write_json(value, rng, out);
    }
    blank(rng, out);
    out.push(b'}');
    odd_keys
}

fn blank(rng: &Rng, out: &mut Vec<u8>) {
    if rng.below(12) == 0 {
        out.extend_from_slice(pick(rng, &[" ", "\t ", "\r", "  "]).as_bytes());
    }
}

/// Writes a text; one character in `odds` gets an escape that is not necessary. Returns whether any
/// character did.
fn write_text(text: &str, rng: &Rng, odds: u64, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.push(b'"');
    for character in text.chars() {
        let needs_one = matches!(character, '"' | '\\' | '\u{0}'..='\u{1f}');
        if !needs_one && rng.below(odds) > 0 {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else if matches!(character, '"' | '\\') {
            out.extend([b'\\', character as u8]);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }
    out.push(b'"');
    memchr::memchr(b'\\', &out[start..]).is_some()
}
