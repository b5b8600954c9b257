//! The wire format: varints, keys and the values behind them.
//!
//! Errors have the words of Go's generated decoders, because clients see them in answers.

/// Value of a field, in wire form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WireValue<'a> {
    /// A variable number.
    Varint(u64),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Bytes of a given length: text, bytes or a message.
    Bytes(&'a [u8]),
    /// A group, which no type has; skipped.
    Group,
    /// Four bytes, which no type has.
    Fixed32,
    /// A wire type whose value could not be read, and the reason.
    Broken(u8, String),
}

impl<'a> WireValue<'a> {
    /// Returns the number of the wire type.
    fn wire_type(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32 => 5,
            Self::Broken(number, _) => *number,
        }
    }

    /// Returns the number; fails if `field` has another form.
    pub(super) fn varint(self, field: &str) -> Result<u64, String> {
        match self {
            Self::Varint(value) => Ok(value),
            Self::Broken(0, why) => Err(why),
            other => Err(other.wrong(field)),
        }
    }

    /// Returns the floating-point number; fails if `field` has another form.
    pub(super) fn double(self, field: &str) -> Result<f64, String> {
        match self {
            Self::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            Self::Broken(1, why) => Err(why),
            other => Err(other.wrong(field)),
        }
    }

    /// Returns the bytes; fails if `field` has another form.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Broken(2, why) => Err(why),
            other => Err(other.wrong(field)),
        }
    }

    /// Returns the text, in which bytes that are no UTF-8 are replaced.
    pub(super) fn text(self, field: &str) -> Result<String, String> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Accepts the value of a field that is not known; fails if the value has no form at all.
    pub(super) fn skip(self) -> Result<(), String> {
        match self {
            Self::Broken(_, why) => Err(why),
            _ => Ok(()),
        }
    }

    /// Returns the error about a field of another form. Go names the field as in the struct, which
    /// is nearly the name in JSON.
    fn wrong(&self, field: &str) -> String {
        let number = self.wire_type();
        let mut letters = field.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let name: String = first.into_iter().chain(letters).collect();
        let name = if name == "Metadata" { "ObjectMeta" } else { &name };
        format!("proto: wrong wireType = {number} for field {name}")
    }
}

/// A position in the bytes of a message.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Returns a reader at the beginning of the bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads the next field; `None` at the end. `message` is the type's name, for errors.
    ///
    /// A value that cannot be read is the last: Go looks at the wire type before the value, so the
    /// user of the value decides about the error.
    pub(super) fn next(&mut self, message: &str) -> Result<Option<(u32, WireValue<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        // As in Go: the number is 32 bits wide, whatever the key says.
        #[expect(clippy::cast_possible_truncation, reason = "the upper bits do not count")]
        let (number, wire) = ((key >> 3) as u32, (key & 7) as u8);
        if wire == 4 {
            return Err(format!("proto: {message}: wiretype end group for non-group"));
        }
        if number == 0 || i32::try_from(number).is_err() {
            let number = number.cast_signed();
            return Err(format!("proto: {message}: illegal tag {number} (wire type {key})"));
        }
        Ok(Some((number, self.piece_or_end(wire))))
    }

    /// Reads the next field of a map's entry; `None` at the end. From fields 1 and 2 Go reads
    /// bytes, whatever the wire type.
    pub(super) fn next_of_entry(&mut self) -> Result<Option<(u32, WireValue<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        #[expect(clippy::cast_possible_truncation, reason = "the upper bits do not count")]
        let (number, wire) = ((key >> 3) as u32, (key & 7) as u8);
        let wire = if matches!(number, 1 | 2) { 2 } else { wire };
        Ok(Some((number, self.piece_or_end(wire))))
    }

    /// Reads a value; nothing is left after an unreadable value.
    fn piece_or_end(&mut self, wire: u8) -> WireValue<'a> {
        self.piece(wire).unwrap_or_else(|why| {
            self.rest = &[];
            WireValue::Broken(wire, why)
        })
    }

    /// Whether everything has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a variable number.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(end)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }

    /// Reads a value.
    fn piece(&mut self, wire: u8) -> Result<WireValue<'a>, String> {
        Ok(match wire {
            0 => WireValue::Varint(self.varint()?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(end)?;
                self.rest = rest;
                WireValue::Fixed64(*bytes)
            }
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.take(length)?)
            }
            3 => {
                self.group()?;
                WireValue::Group
            }
            5 => {
                self.take(4)?;
                WireValue::Fixed32
            }
            4 => return Err("proto: unexpected end of group".to_owned()),
            other => return Err(format!("proto: illegal wireType {other}")),
        })
    }

    /// Takes bytes of a length that a client chose.
    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        if i64::try_from(length).is_err() {
            return Err("proto: negative length found during unmarshaling".to_owned());
        }
        let length = usize::try_from(length).map_err(|_| end())?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(end)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Skips the rest of a group with all inner groups, without recursion.
    fn group(&mut self) -> Result<(), String> {
        let mut open = 1_usize;
        while open > 0 {
            let key = self.varint()?;
            match key & 7 {
                3 => open += 1,
                4 => open -= 1,
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => {
                    let length = self.varint()?;
                    self.take(length)?;
                }
                5 => drop(self.take(4)?),
                other => return Err(format!("proto: illegal wireType {other}")),
            }
        }
        Ok(())
    }
}

/// Returns the error about bytes that end too early.
fn end() -> String {
    "unexpected EOF".to_owned()
}

/// Appends a variable number.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        // The lower seven bits, marked as not the last.
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the key of a field.
fn put_key(out: &mut Vec<u8>, number: u32, wire: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire));
}

/// Appends a field with a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_key(out, number, 0);
    put_varint(out, value);
}

/// Appends a field with a floating-point number.
pub(crate) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_key(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field with bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_key(out, number, 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field whose bytes `write` appends.
pub(crate) fn put_inner(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_key(out, number, 2);
    let start = out.len();
    write(out);
    // The length stands before the bytes, and is known only now.
    let mut length = Vec::with_capacity(5);
    put_varint(&mut length, (out.len() - start) as u64);
    out.splice(start..start, length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_is_read_as_it_was_written() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_refused_in_gos_words() {
        for (bytes, text) in [
            (&b"\x0a"[..], "unexpected EOF"),
            (b"\x0a\x05ab", "unexpected EOF"),
            (b"\x09ab", "unexpected EOF"),
            (b"\x80", "unexpected EOF"),
            (b"\x0c", "proto: Pod: wiretype end group for non-group"),
            (b"\x00\x01", "proto: Pod: illegal tag 0 (wire type 0)"),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
            (
                b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                "proto: negative length found during unmarshaling",
            ),
            (b"\x0b\x0b\x0c", "unexpected EOF"),
        ] {
            let read = Reader::new(bytes).next("Pod").and_then(|found| found.unwrap().1.skip());
            assert_eq!(read, Err(text.to_owned()), "{bytes:x?}");
        }
        let piece = Reader::new(b"\x0e\x01").next("Pod").unwrap().unwrap().1;
        let text = "proto: wrong wireType = 6 for field ObjectMeta";
        assert_eq!(piece.clone().bytes("metadata"), Err(text.to_owned()));
        assert_eq!(piece.skip(), Err("proto: illegal wireType 6".to_owned()));
        let piece = Reader::new(b"\x09ab").next("Pod").unwrap().unwrap().1;
        let text = "proto: wrong wireType = 1 for field Spec";
        assert_eq!(piece.bytes("spec"), Err(text.to_owned()), "the wire type counts first");
    }

    #[test]
    fn groups_are_skipped_with_the_groups_in_them() {
        let mut reader = Reader::new(b"\x0b\x13\x08\x01\x14\x12\x01a\x0c\x08\x07");
        assert_eq!(reader.next("Pod"), Ok(Some((1, WireValue::Group))));
        assert_eq!(reader.next("Pod"), Ok(Some((1, WireValue::Varint(7)))));
        assert!(reader.is_at_end());
    }
}
