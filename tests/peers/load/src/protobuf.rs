//! Pods in protobuf: taken apart once, put together with new holes for each version.
//!
//! The bytes come from a file that the Go driver wrote from the same objects (`go/`): for each a
//! length of four bytes, big-endian, and the encoded Pod.

use std::fs;
use std::io;

use crate::objects::push_digits;
use crate::state::State;

const PADDING: &[u8] = b"peers.example.dev/padding";
/// Field numbers of `ObjectMeta`.
const RESOURCE_VERSION: u64 = 6;
const ANNOTATIONS: u64 = 12;

/// An encoded object: the metadata before and after the padding, and the rest.
#[derive(Debug)]
pub struct Object {
    before: Box<[u8]>,
    after: Box<[u8]>,
    rest: Box<[u8]>,
    version: usize,
    stamp: usize,
}

pub fn load(file: &str, count: usize) -> io::Result<Vec<Object>> {
    let bytes = fs::read(file)?;
    let mut rest = &bytes[..];
    let mut objects = Vec::with_capacity(count);
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((object, more)) = more.split_at_checked(length) else { break };
        objects.extend(Object::take_apart(object));
        rest = more;
    }
    if objects.len() == count {
        return Ok(objects);
    }
    Err(io::Error::other(format!("{file} has {} objects, not {count}", objects.len())))
}

/// A field of a message: number, begin of the field, begin of the content, end.
type Field = (u64, usize, usize, usize);

fn fields(message: &[u8]) -> Option<Vec<Field>> {
    let mut at = 0;
    let mut fields = Vec::new();
    while at < message.len() {
        let begin = at;
        let tag = varint(message, &mut at)?;
        let content = match tag & 7 {
            0 => {
                varint(message, &mut at)?;
                at
            }
            2 => {
                let length = usize::try_from(varint(message, &mut at)?).ok()?;
                let content = at;
                at = at.checked_add(length).filter(|end| *end <= message.len())?;
                content
            }
            _ => return None,
        };
        fields.push((tag >> 3, begin, content, at));
    }
    Some(fields)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Object {
    fn take_apart(object: &[u8]) -> Option<Self> {
        let &(1, _, from, to) = fields(object)?.first()? else { return None };
        let meta = &object[from..to];
        let (mut version, mut stamp, mut padding) = (None, None, None);
        for (number, begin, content, end) in fields(meta)? {
            match number {
                RESOURCE_VERSION => version = Some(content),
                ANNOTATIONS => {
                    let entry = &meta[content..end];
                    let parts = fields(entry)?;
                    let (key, value) = (parts.first()?, parts.get(1)?);
                    match &entry[key.2..key.3] {
                        PADDING => padding = Some((begin, end)),
                        key if key == measure::STAMP.as_bytes() => stamp = Some(content + value.2),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        let (begin, end) = padding?;
        let moved = |at: usize| if at >= end { at - (end - begin) } else { at };
        Some(Self {
            before: meta[..begin].into(),
            after: meta[end..].into(),
            rest: object[to..].into(),
            version: moved(version?),
            stamp: moved(stamp?),
        })
    }

    /// Writes the object with the values of the holes.
    fn render(&self, filling: crate::objects::Filling<'_>, out: &mut Vec<u8>) {
        let mut entry = Vec::with_capacity(filling.padding.len() + 64);
        push_field(&mut entry, 1, PADDING);
        push_field(&mut entry, 2, filling.padding.as_bytes());
        let mut meta = Vec::with_capacity(self.before.len() + self.after.len());
        meta.extend_from_slice(&self.before);
        meta.extend_from_slice(&self.after);
        let mut digits = Vec::with_capacity(32);
        push_digits(&mut digits, filling.version, 8);
        meta[self.version..self.version + 8].copy_from_slice(&digits);
        digits.clear();
        push_digits(&mut digits, filling.stamp, 19);
        meta[self.stamp..self.stamp + 19].copy_from_slice(&digits);
        // The order of fields means nothing: the padding may come last.
        push_field(&mut meta, ANNOTATIONS, &entry);
        push_field(out, 1, &meta);
        out.extend_from_slice(&self.rest);
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn push_field(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    push_varint(out, number << 3 | 2);
    push_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// `runtime.Unknown`, with the magic number.
fn enveloped(kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    push_field(&mut meta, 1, b"v1");
    push_field(&mut meta, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    push_field(&mut out, 1, &meta);
    push_field(&mut out, 2, raw);
    push_field(&mut out, 3, b"");
    push_field(&mut out, 4, b"");
    out
}

pub fn list(state: &State, objects: &[Object], from: usize, next: &str) -> Vec<u8> {
    let mut meta = Vec::new();
    push_field(&mut meta, 2, state.current().to_string().as_bytes());
    push_field(&mut meta, 3, next.as_bytes());
    let mut list = Vec::new();
    push_field(&mut list, 1, &meta);
    let mut item = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        item.clear();
        object.render(state.filling(from + at), &mut item);
        push_field(&mut list, 2, &item);
    }
    enveloped("PodList", &list)
}

/// A frame of a watch: the length, then `WatchEvent` with the enveloped object inside.
fn frame(event: &str, kind: &str, raw: &[u8], out: &mut Vec<u8>) {
    let mut extension = Vec::with_capacity(raw.len() + 64);
    push_field(&mut extension, 1, &enveloped(kind, raw));
    let mut message = Vec::with_capacity(extension.len() + 64);
    push_field(&mut message, 1, event.as_bytes());
    push_field(&mut message, 2, &extension);
    out.extend_from_slice(&u32::try_from(message.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(&message);
}

pub fn event(state: &State, event: &str, index: usize, object: &Object, out: &mut Vec<u8>) {
    let mut raw = Vec::with_capacity(8 << 10);
    object.render(state.filling(index), &mut raw);
    frame(event, "Pod", &raw, out);
}

pub fn end_of_list(version: u64, out: &mut Vec<u8>) {
    let mut entry = Vec::new();
    push_field(&mut entry, 1, b"k8s.io/initial-events-end");
    push_field(&mut entry, 2, b"true");
    let mut meta = Vec::new();
    push_field(&mut meta, RESOURCE_VERSION, version.to_string().as_bytes());
    push_field(&mut meta, ANNOTATIONS, &entry);
    let mut pod = Vec::new();
    push_field(&mut pod, 1, &meta);
    frame("BOOKMARK", "Pod", &pod, out);
}

pub fn expired(out: &mut Vec<u8>) {
    let mut status = Vec::new();
    push_field(&mut status, 2, b"Failure");
    push_field(&mut status, 3, b"too old resource version");
    push_field(&mut status, 4, b"Expired");
    // `code`, a varint.
    push_varint(&mut status, 6 << 3);
    push_varint(&mut status, 410);
    frame("ERROR", "Status", &status, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Filling;

    #[test]
    fn an_object_gets_new_holes_and_keeps_the_rest() {
        let mut padding = Vec::new();
        push_field(&mut padding, 1, PADDING);
        push_field(&mut padding, 2, b"old");
        let mut stamp = Vec::new();
        push_field(&mut stamp, 1, measure::STAMP.as_bytes());
        push_field(&mut stamp, 2, b"0000000000000000000");
        let mut meta = Vec::new();
        push_field(&mut meta, 1, b"name");
        push_field(&mut meta, ANNOTATIONS, &padding);
        push_field(&mut meta, RESOURCE_VERSION, b"00000001");
        push_field(&mut meta, ANNOTATIONS, &stamp);
        let mut pod = Vec::new();
        push_field(&mut pod, 1, &meta);
        push_field(&mut pod, 2, b"spec");
        let object = Object::take_apart(&pod).expect("a message");
        let mut out = Vec::new();
        object.render(Filling { version: 42, stamp: 7, padding: "new one" }, &mut out);
        let again = Object::take_apart(&out).expect("a message");
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("00000042") && text.contains("0000000000000000007"));
        assert!(text.contains("new one") && !text.contains("old"));
        assert_eq!((&*again.rest, &*again.before), (&*object.rest, &again.before[..]));
    }
}
