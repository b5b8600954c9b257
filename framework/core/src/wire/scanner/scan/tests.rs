use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn a_value_ends_at_its_own_brace_whatever_its_strings_hold() {
    let value = br#"{"a":"}\\\"]","b":[{"c":"\u007d"}]}"#;
    let mut tail = value.to_vec();
    tail.extend_from_slice(b",{}");
    for cut in 0..value.len() {
        let mut scan = ValueScan::default();
        assert_eq!(scan.feed(&tail[..cut]), None, "cut at {cut}");
        assert_eq!(scan.feed(&tail[cut..]), Some(value.len() - cut), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn blocks_end_a_value_where_single_bytes_do(
        bytes in prop::collection::vec(
            prop::sample::select(br#""\{}[],x: "#.to_vec()), 0..300),
        mut cuts in prop::collection::vec(0_usize..300, 0..4),
    ) {
        let mut value = vec![b'{'];
        value.extend(bytes);
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(value.len()));
        cuts.sort_unstable();
        let mut single = ValueScan { mode: ScanState::Nested, depth: 1 };
        let expected = single.bytewise(&value[1..]).map(|length| length + 1);
        let mut scan = ValueScan::default();
        let (mut from, mut end) = (0, None);
        for cut in cuts.into_iter().chain([value.len()]) {
            end = end.or_else(|| scan.feed(&value[from..cut]).map(|length| from + length));
            from = cut;
        }
        prop_assert_eq!(end, expected);
    }
}

#[test]
fn the_next_mark_of_a_text_is_found_wherever_it_stands() {
    for length in 0..80 {
        for filler in [b'x', b'!', b'#', b'[', b']', 0, 0x80, 0xa2, 0xdc, 0xff] {
            let mut text = vec![filler; length];
            assert_eq!(text_mark(&text, 0), None);
            for at in 0..length {
                for (mark, other) in [(b'"', b'\\'), (b'\\', b'"')] {
                    text[at] = mark;
                    assert_eq!(text_mark(&text, 0), Some(at));
                    if at + 1 < length {
                        text[at + 1] = other;
                        assert_eq!(text_mark(&text, 0), Some(at));
                        text[at + 1] = filler;
                    }
                }
                text[at] = filler;
            }
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[ab\"\\\\{}\\[\\]é]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[ab\"]{0,3}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The scan may start from any position inside, as long as the position is outside of texts.
    #[test]
    fn an_object_ends_at_the_same_place_when_it_is_looked_for_from_within(value in value()) {
        let text = json!([value]).to_string();
        let (mut depth, mut is_text, mut is_escaped) = (0, false, false);
        for (at, byte) in text.bytes().enumerate() {
            if depth > 0 && !is_text {
                prop_assert_eq!(nested_end(text.as_bytes(), at, depth), Ok(text.len()), "{} in {}", at, text);
            }
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_text = !is_text,
                b'{' | b'[' if !is_text => depth += 1,
                b'}' | b']' if !is_text => depth -= 1,
                _ => {}
            }
        }
    }

    #[test]
    fn a_text_ends_at_its_quote_and_is_plain_without_a_backslash(
        text in "[a\"\\\\é]{0,3}[a-z]{0,40}[a\"\\\\é]{0,3}", tail in "[\",}a]{0,9}",
    ) {
        let text = Value::from(text).to_string();
        let end = text_end(format!("{text}{tail}").as_bytes(), 0).expect("it ends");
        prop_assert_eq!((end.end, end.is_plain), (text.len(), !text.contains('\\')));
    }
}
