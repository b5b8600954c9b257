use proptest::prelude::*;

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
        let mut single = ValueScan { mode: Mode::Nested, depth: 1 };
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
