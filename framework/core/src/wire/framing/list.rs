//! Splitting of a LIST body into items during the transfer; holds at most one unfinished item.

use super::carry::{CarriedBytes, StreamPiece};
use crate::wire::scanner::members::{text, value_at_plain_path};
use crate::wire::scanner::scan::{Malformed, ValueScan, is_space};

/// The members of a list beside the items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// `metadata.resourceVersion`, from which a watch continues.
    #[doc(hidden)]
    pub resource_version: String,
    /// `metadata.continue`; `None` on the last page.
    #[doc(hidden)]
    pub continue_token: Option<String>,
}

/// The position of the splitter: the token that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitterState {
    /// The opening brace of the list.
    Start,
    /// The first member's name, or the closing brace.
    FirstName,
    /// A member's name.
    Name,
    /// The colon behind a name.
    Colon,
    /// The value of a member; of `items` the opening bracket.
    Value,
    /// A comma, or the closing brace of the list.
    AfterValue,
    /// The first item, or the closing bracket.
    FirstItem,
    /// An item.
    Item,
    /// A comma, or the closing bracket of the items.
    AfterItem,
    /// Nothing but blanks.
    End,
}

/// The member of the list whose value comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListMember {
    /// `items`, whose elements are split.
    Items,
    /// `metadata`, with the version and the continue token.
    Metadata,
    /// Any other member; skipped.
    Other,
}

/// The splitter of a single list; feed the body's pieces in order, then `finish`.
#[derive(Debug)]
pub struct ListSplitter {
    /// The token that comes next.
    at: SplitterState,
    /// The member whose value comes next, or is being read.
    field: ListMember,
    /// Scan of the name or value that has begun; `None` between values.
    scan: Option<ValueScan>,
    /// Bytes of a name or value that earlier pieces began.
    carry: CarriedBytes,
    /// The members that were read so far.
    meta: ListMeta,
    /// Whether `items` has come, null included: without `items` the body is no list.
    has_items: bool,
}

impl ListSplitter {
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self::with_limit(super::carry::MAX_PIECE)
    }

    /// Creates a splitter for items of at most `limit` bytes.
    #[doc(hidden)]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            at: SplitterState::Start,
            field: ListMember::Other,
            scan: None,
            carry: CarriedBytes::new(limit),
            meta: ListMeta::default(),
            has_items: false,
        }
    }

    /// Takes the next piece and calls `each` for every item that ends in the piece.
    #[doc(hidden)]
    pub fn push(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(StreamPiece<'_>),
    ) -> Result<(), Malformed> {
        let mut at = 0;
        while at < piece.len() {
            if let Some(scan) = &mut self.scan {
                let Some(length) = scan.feed(&piece[at..]) else {
                    // The value goes on in the next piece.
                    self.carry.extend(&piece[at..]);
                    return Ok(());
                };
                self.scan = None;
                // Moved out, because `complete` borrows the carry while `token` changes `self`.
                let mut carry = std::mem::take(&mut self.carry);
                let outcome = self.token(carry.complete(&piece[at..at + length]), each);
                carry.clear();
                self.carry = carry;
                outcome?;
                at += length;
            } else if is_space(piece[at]) {
                at += 1;
            } else {
                at += self.punctuation(piece[at])?;
            }
        }
        Ok(())
    }

    /// Handles a byte between values; returns 0 when it begins a value.
    fn punctuation(&mut self, byte: u8) -> Result<usize, Malformed> {
        let (next, used) = match (self.at, byte) {
            (SplitterState::Start, b'{') => (SplitterState::FirstName, 1),
            (SplitterState::FirstName | SplitterState::AfterValue, b'}') => (SplitterState::End, 1),
            (SplitterState::FirstName | SplitterState::Name, b'"') => (SplitterState::Name, 0),
            (SplitterState::Colon, b':') => (SplitterState::Value, 1),
            (SplitterState::Value, b'[') if self.field == ListMember::Items => {
                (SplitterState::FirstItem, 1)
            }
            (SplitterState::Value, byte) if !matches!(byte, b',' | b':' | b']' | b'}') => {
                (SplitterState::Value, 0)
            }
            (SplitterState::AfterValue, b',') => (SplitterState::Name, 1),
            (SplitterState::FirstItem | SplitterState::AfterItem, b']') => {
                (SplitterState::AfterValue, 1)
            }
            // A value that is no object is an item nevertheless: a single bad item does not end a
            // list.
            (SplitterState::FirstItem | SplitterState::Item, byte)
                if !matches!(byte, b',' | b':' | b']' | b'}') =>
            {
                (SplitterState::Item, 0)
            }
            (SplitterState::AfterItem, b',') => (SplitterState::Item, 1),
            (at, byte) => {
                let byte = char::from(byte).escape_default().to_string();
                return Err(Malformed::new(format!("unexpected `{byte}` in a list at {at:?}")));
            }
        };
        self.has_items |= next == SplitterState::FirstItem;
        self.at = next;
        // The byte begins a value: the scan receives it again.
        if used == 0 {
            self.scan = Some(ValueScan::default());
        }
        Ok(used)
    }

    /// Handles a complete name, item or value.
    fn token(
        &mut self,
        part: StreamPiece<'_>,
        each: &mut dyn FnMut(StreamPiece<'_>),
    ) -> Result<(), Malformed> {
        match self.at {
            SplitterState::Name => {
                // A name with escapes is none of these, and the value is skipped: API servers write
                // no such names.
                self.field = match part {
                    StreamPiece::Whole(b"\"items\"") => ListMember::Items,
                    StreamPiece::Whole(b"\"metadata\"") => ListMember::Metadata,
                    _ => ListMember::Other,
                };
                self.at = SplitterState::Colon;
            }
            SplitterState::Item => {
                each(part);
                self.at = SplitterState::AfterItem;
            }
            _ => {
                self.value(part)?;
                self.at = SplitterState::AfterValue;
            }
        }
        Ok(())
    }

    /// Handles the value of a member beside the items.
    fn value(&mut self, part: StreamPiece<'_>) -> Result<(), Malformed> {
        match (self.field, part) {
            // Go writes a nil slice as null.
            (ListMember::Items, StreamPiece::Whole(b"null")) => self.has_items = true,
            (ListMember::Items, _) => return Err(Malformed::new("items is not an array")),
            (ListMember::Metadata, StreamPiece::Whole(metadata)) => {
                let field = |name| {
                    value_at_plain_path(metadata, &[name])
                        .and_then(text)
                        .unwrap_or_default()
                        .into_owned()
                };
                self.meta.resource_version = field("resourceVersion");
                self.meta.continue_token =
                    Some(field("continue")).filter(|token| !token.is_empty());
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the members beside the items; an error when the body ended early or was no list.
    #[doc(hidden)]
    pub fn finish(self) -> Result<ListMeta, Malformed> {
        if self.at != SplitterState::End {
            // A connection that broke off: the objects that are missing must not count as deleted.
            return Err(Malformed::new("the list ended before its closing brace"));
        }
        if !self.has_items {
            return Err(Malformed::new("the answer has no `items`: it is not a list"));
        }
        if self.meta.resource_version.is_empty() {
            // Without a version no watch can follow the list.
            return Err(Malformed::new("the list has no resourceVersion"));
        }
        Ok(self.meta)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    type Split = Result<(Vec<Value>, ListMeta), Malformed>;

    fn split(body: &[u8], cuts: &[usize]) -> Split {
        let mut splitter = ListSplitter::new();
        let mut items = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([body.len()]) {
            splitter.push(&body[from..cut.max(from)], &mut |part| match part {
                StreamPiece::Whole(item) => items.push(serde_json::from_slice(item).unwrap()),
                StreamPiece::TooLarge(_) => panic!("nothing here is large"),
            })?;
            from = cut.max(from);
        }
        splitter.finish().map(|meta| (items, meta))
    }

    #[test]
    fn a_list_splits_the_same_wherever_it_is_cut() {
        let items = [json!({"a": "}\\\"]{"}), json!({"b": [{}, [], "é"]}), json!({})];
        let body = json!({"kind": "L", "items": items, "metadata":
            {"resourceVersion": "5", "continue": "t\"k"}, "n": [1, -2.5e3, null, true]})
        .to_string();
        let body = body.replace(',', " ,\r\n\t");
        let expected = split(body.as_bytes(), &[]).unwrap();
        assert_eq!(expected.0.len(), 3);
        assert_eq!(expected.1.continue_token.as_deref(), Some("t\"k"));
        for cut in 0..body.len() {
            assert_eq!(split(body.as_bytes(), &[cut]).unwrap(), expected, "cut at {cut}");
        }
        let bytewise: Vec<_> = (0..body.len()).collect();
        assert_eq!(split(body.as_bytes(), &bytewise).unwrap(), expected);
    }

    #[test]
    fn a_list_that_ends_early_is_no_list() {
        let body = br#"{"metadata":{"resourceVersion":"1"},"items":[{"a":1},{"a":2}]}"#;
        for end in 0..body.len() {
            assert!(split(&body[..end], &[]).is_err(), "end at {end}");
        }
    }

    #[test]
    fn null_items_are_an_empty_list_and_other_bodies_are_refused() {
        let meta = r#""metadata":{"resourceVersion":"1","continue":""}"#;
        let (items, meta_read) =
            split(format!(r#"{{"items":null,{meta}}}"#).as_bytes(), &[]).unwrap();
        assert!(items.is_empty());
        assert_eq!(meta_read.continue_token, None);
        for body in [
            format!("{{{meta}}}"),
            format!(r#"{{{meta},"items":7}}"#),
            format!(r#"{{{meta},"items":[7,]}}"#),
            format!(r#"{{{meta},"items":[,7]}}"#),
            r#"{"items":[]}"#.to_owned(),
            "[]".to_owned(),
            "<html>".to_owned(),
        ] {
            assert!(split(body.as_bytes(), &[]).is_err(), "{body}");
        }
    }

    #[test]
    fn items_that_are_no_objects_are_items_all_the_same() {
        let items = json!([null, {"a": 1}, 7, -1.5e3, "a,]}\"", [], [{}, 2], true, {"b": 2}]);
        let body = format!(r#"{{"items":{items},"metadata":{{"resourceVersion":"1"}}}}"#);
        for cut in 0..body.len() {
            assert_eq!(json!(split(body.as_bytes(), &[cut]).unwrap().0), items, "cut at {cut}");
        }
    }

    /// A13 (one huge object): an object beyond the limit does not affect the others.
    #[test]
    fn an_item_beyond_the_limit_is_identified_by_its_beginning_and_the_others_come_whole() {
        let big = "x".repeat(300);
        let body = format!(
            r#"{{"items":[{{"a":1}},{{"n":"big","v":"{big}"}},{{"b":2}}],"metadata":{{"resourceVersion":"1"}}}}"#
        );
        for step in [1, 7, 64, body.len()] {
            let mut splitter = ListSplitter::with_limit(100);
            let mut seen = Vec::new();
            for piece in body.as_bytes().chunks(step) {
                splitter
                    .push(piece, &mut |part| {
                        seen.push(match part {
                            StreamPiece::Whole(item) => String::from_utf8_lossy(item).into_owned(),
                            StreamPiece::TooLarge(item) => {
                                assert!(item.starts_with(br#"{"n":"big""#));
                                "large".to_owned()
                            }
                        });
                    })
                    .unwrap();
            }
            splitter.finish().unwrap();
            assert_eq!(seen, [r#"{"a":1}"#, "large", r#"{"b":2}"#]);
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\PC\"\\\\{}\\[\\],:]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(
            items in proptest::collection::vec(
                proptest::collection::btree_map("[a-z]{1,4}", json_value(), 0..4), 0..5),
            pretty in any::<bool>(),
            mut cuts in proptest::collection::vec(0_usize..2000, 0..12),
        ) {
            let body = json!({"items": items, "metadata": {"resourceVersion": "9"}, "x": [items.len()]});
            let body = if pretty { serde_json::to_vec_pretty(&body) } else { serde_json::to_vec(&body) };
            let body = body.unwrap();
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(body.len()));
            cuts.sort_unstable();
            let (split, _) = split(&body, &cuts).unwrap();
            prop_assert_eq!(json!(split), json!(items));
        }

        #[test]
        fn any_bytes_split_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut body = br#"{"items":["#.to_vec();
            body.extend_from_slice(&bytes);
            let mut splitter = ListSplitter::with_limit(20);
            let _ = splitter.push(&body, &mut |_| {});
            let _ = splitter.finish();
        }
    }
}
