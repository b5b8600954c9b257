use proptest::prelude::*;
use serde_json::json;

use super::*;

fn lines(body: &[u8], cuts: &[usize]) -> Vec<String> {
    let mut decoder = FrameDecoder::new();
    let mut lines = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([body.len()]) {
        let cut = cut.max(from);
        decoder.push(&body[from..cut], &mut |part| {
            let StreamPiece::Whole(line) = part else { panic!("nothing here is large") };
            lines.push(String::from_utf8_lossy(line).trim().to_owned());
        });
        from = cut;
    }
    lines
}

fn frame(line: &str) -> Frame<'_> {
    Frame::of(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn a4_frames_end_at_newlines_and_a_partial_one_is_never_returned() {
    let body = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\":";
    for cut in 0..body.len() {
        assert_eq!(lines(body, &[cut]), [r#"{"a":1}"#, r#"{"b":2}"#]);
    }
    let mut decoder = FrameDecoder::new();
    decoder.push(body, &mut |_| {});
    assert!(decoder.is_inside());
}

#[test]
fn keep_alive_lines_are_no_frames_and_leave_none_open() {
    let mut decoder = FrameDecoder::new();
    for blank in ["\n", "\r\n", " \t\r\n", "\n\n\n"] {
        decoder.push(blank.as_bytes(), &mut |part| panic!("{part:?}"));
        assert!(!decoder.is_inside(), "{blank:?}");
    }
    let mut told = 0;
    // A form feed is no space of JSON: the byte is not skipped silently.
    decoder.push(b"\x0c\n", &mut |_| told += 1);
    assert_eq!(told, 1);
}

#[test]
fn a_frame_is_its_type_and_its_objects_bytes() {
    let read = frame(r#" {"object": {"x":"}"} , "type" : "ADDED"}"#);
    assert_eq!(read, Frame { event: EventType::Added, object: br#"{"x":"}"}"# });
    assert_eq!(frame(r#"{"type":"NEWS","object":{}}"#).event, EventType::Unknown);
    for (name, event) in TYPES {
        let name = String::from_utf8_lossy(name);
        for line in [
            format!(r#"{{"type":{name},"object":{{"a":{{"b":{{}}}}}}}}"#),
            format!("{{\"type\":{name},\"object\":{{\"a\":{{\"b\":{{}}}}}}}}\r"),
            format!(r#"{{ "type" : {name} , "object" : {{"a":{{"b":{{}}}}}} }} "#),
        ] {
            assert_eq!(frame(&line), Frame { event, object: br#"{"a":{"b":{}}}"# }, "{line}");
        }
    }
    for bad in [&br#"{"type":"ADDED"}"#[..], b"{}", b"oops", br#"{"type":"ADDED","object":{}"#] {
        assert!(Frame::of(bad).is_err());
    }
}

/// The second of two documents on a line must not get lost silently.
#[test]
fn a4_a_line_that_goes_on_after_its_frame_is_refused() {
    for more in ["x", "}", r#"{"type":"ADDED","object":{}}"#, ",", " {}"] {
        for one in [r#"{"type":"ADDED","object":{}}"#, r#"{"object":{},"type":"ADDED"}"#] {
            let line = format!("{one}{more}");
            assert!(Frame::of(line.as_bytes()).is_err(), "{line}");
        }
    }
}

#[test]
fn members_behind_the_object_are_not_taken_for_a_part_of_it() {
    for more in [r#""x":{}"#, r#""x":{"y":{}}"#, r#""x":"}","y":{}"#, r#""x":1"#] {
        for size in 0..150 {
            let pad = "p".repeat(size);
            let object = format!(r#"{{"a":{{"{pad}":{{}}}}}}"#);
            let line = format!(r#"{{"type":"ADDED","object":{object},{more}}}"#);
            assert_eq!(frame(&line).object, object.as_bytes(), "{line}");
        }
    }
}

#[test]
fn a_frame_whose_braces_do_not_match_is_refused() {
    for size in 0..150 {
        let pad = "p".repeat(size);
        for object in [
            format!(r#"{{"a":{{"{pad}":1}}"#),
            format!(r#"{{"a":{{"{pad}":{{}}}}"#),
            format!(r#"{{"a":"{pad}"}}}}"#),
            format!(r#"{{"a":"{pad}"}}}},{{}}"#),
        ] {
            let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
            assert!(Frame::of(line.as_bytes()).is_err(), "{line}");
        }
    }
}

#[test]
fn braces_in_texts_do_not_end_an_object() {
    for text in ["}", "{", "}}}}{{{{", r#"\"}"#, r"\\", r#"\\\"}{"#, r#"","#] {
        let text = text.repeat(40);
        let text = text.trim_end_matches('"').trim_end_matches('\\');
        let object = format!(r#"{{"a":"{text} ","b":{{"c":["{text} ",{{}}]}}}}"#);
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&object) else { continue };
        assert!(value.is_object());
        let line = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
        assert_eq!(frame(&line).object, object.as_bytes(), "{line}");
    }
}

/// Checking only the bytes behind the metadata lets no other frame pass.
#[test]
fn a_frame_that_is_scanned_is_the_frame_that_is_read() {
    for (line, is_scanned) in [
        (r#"{"type":"ADDED","object":{"kind":"A","metadata":{"name":"a"},"b":{"c":"d"}}}"#, true),
        (r#"{"type":"DELETED","object":{"b":{},"metadata":{"name":"a","x":"}"}}}  "#, true),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#, true),
        // Members behind the object.
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}},"x":{}}"#, false),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"b":{}},"x":{}}"#, false),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"b":"}"}}"#, false),
        (r#"{"object":{"metadata":{"name":"a"}},"type":"ADDED"}"#, false),
        // Not an event about an object.
        (r#"{"type":"BOOKMARK","object":{"metadata":{"name":"a"}}}"#, false),
        (r#"{"type":"ADDED","object":{"a":{}}}"#, false),
        (r#"{"type":"ADDED","object":[]}"#, false),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}"#, false),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}}"#, false),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}} x}"#, false),
    ] {
        let scanned = Frame::scanned(line.as_bytes());
        assert_eq!(scanned.is_ok(), Frame::of(line.as_bytes()).is_ok(), "{line}");
        if let Ok((scanned, scan)) = scanned {
            assert_eq!(scanned, frame(line));
            assert_eq!(scan.is_some(), is_scanned, "{line}");
            assert!(scan.is_none_or(|scan| scan.name == "a"), "{line}");
        }
    }
}

#[test]
fn a13_a_frame_beyond_the_limit_is_identified_by_its_beginning() {
    let big = format!(
        "{{\"type\":\"DELETED\",\"object\":{{\"metadata\":{{\"name\":\"a\"}},\"x\":\"{}\"}}}}\n{{}}\n",
        "y".repeat(500)
    );
    for step in [1, 50, 63, 64, 65, 600, big.len()] {
        let mut decoder = FrameDecoder::with_limit(64);
        let mut seen = Vec::new();
        for piece in big.as_bytes().chunks(step) {
            decoder.push(piece, &mut |part| match part {
                StreamPiece::TooLarge(line) => {
                    let frame = Frame::of_beginning(line).unwrap();
                    assert_eq!(frame.event, EventType::Deleted);
                    assert!(frame.object.starts_with(br#"{"metadata":{"name":"a"}"#));
                    seen.push("large");
                }
                StreamPiece::Whole(_) => seen.push("whole"),
            });
        }
        assert_eq!(seen, ["large", "whole"], "in steps of {step}");
    }
}

#[test]
fn a_frame_of_just_the_limit_is_whole() {
    for (length, whole) in [(63, true), (64, true), (65, false)] {
        let body = format!("{}\n", "x".repeat(length));
        for step in [1, 7, 100] {
            let mut decoder = FrameDecoder::with_limit(64);
            let mut told = Vec::new();
            for piece in body.as_bytes().chunks(step) {
                decoder.push(piece, &mut |part| told.push(matches!(part, StreamPiece::Whole(_))));
            }
            assert_eq!(told, [whole], "{length} in steps of {step}");
        }
    }
}

#[test]
fn the_beginning_of_a_large_frame_is_read_by_its_members_and_not_by_what_texts_say() {
    let read = |line: &'static str| Frame::of_beginning(line.as_bytes());
    let cut = r#"{"type":"ADDED","note":"\"object\":{","object":{"metadata":{"na"#;
    assert_eq!(read(cut).unwrap().object, br#"{"metadata":{"na"#);
    let whole = r#"{"type":"ADDED","object":{"a":1},"more":"xxx"#;
    assert_eq!(read(whole).unwrap().object, br#"{"a":1}"#);
    let spaced = "{ \"type\" : \"ADDED\" ,\n \"object\" : [";
    assert_eq!(read(spaced).unwrap(), Frame { event: EventType::Added, object: b"[" });
    for bad in [
        "",
        "{",
        r#"{"type":"ADDED"#,
        r#"{"type":"ADDED","obj"#,
        r#"{"type":"ADDED","object""#,
        r#"{"object":{"type":"ADDED","#,
        r#"{"type":"ADDED","note":"\"object\":{"#,
        r#"["type":"ADDED","object":{"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_error_frame_becomes_a_status_whatever_is_inside() {
    let status = |object: &str| {
        let line = format!(r#"{{"type":"ERROR","object":{object}}}"#);
        let read = frame(&line);
        assert_eq!(read.event, EventType::Error);
        read.status()
    };
    let gone = status(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"too old resource version","reason":"Expired","code":410}"#,
    );
    assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
    // A single field of a wrong type does not hide the decisive fields.
    let half = status(r#"{"code":410,"reason":"Expired","details":{"causes":null},"message":7}"#);
    assert_eq!((half.code, half.reason.as_str(), half.message.as_str()), (410, "Expired", ""));
    for garbage in ["{}", "null", "7", "[]", r#"{"kind":"Pod"}"#, r#"{"code":"x"}"#, r#""oops""#] {
        let none = status(garbage);
        assert_eq!((none.code, none.reason.as_str()), (0, ""), "{garbage}");
        assert_eq!(none.message, garbage);
    }
    assert!(status(&format!(r#"{{"x":"{}"}}"#, "y".repeat(9000))).message.len() < 2100);
    let raw = Frame { event: EventType::Error, object: b"\xff\xfe{" };
    assert_eq!(raw.status().code, 0);
}

#[test]
fn deep_nesting_bad_utf8_and_huge_numbers_are_the_objects_own_business() {
    let deep = format!("{}{}", "{\"a\":[".repeat(100_000), "]}".repeat(100_000));
    let line = format!(r#"{{"type":"ADDED","object":{deep}}}"#);
    assert_eq!(frame(&line).object, deep.as_bytes());
    let line = format!(r#"{{"object":{deep},"type":"ADDED"}}"#);
    assert_eq!(frame(&line).object, deep.as_bytes());
    assert!(
        Frame::of(format!(r#"{{"type":"ADDED","object":{}"#, &deep[..9999]).as_bytes()).is_err()
    );

    let mut bad = br#"{"type":"ADDED","object":{"a":""#.to_vec();
    bad.extend_from_slice(b"\xff\xc3\x28\xed\xa0\x80\"}}");
    assert_eq!(Frame::of(&bad).unwrap().object, &bad[25..bad.len() - 1]);

    let huge = format!(r#"{{"metadata":{{"name":"a","generation":{}e99999}}}}"#, "9".repeat(5000));
    let line = format!(r#"{{"type":"ADDED","object":{huge}}}"#);
    let scan = crate::wire::MetadataScan::of(frame(&line).object).unwrap();
    assert_eq!(scan.offsets().metadata(frame(&line).object).generation(), 0);
}

/// The shortcut finds the same frame as a scan of every member.
#[test]
fn frames_as_go_writes_them_are_read_as_all_others() {
    for size in 0..200 {
        let object =
            json!({"metadata": {"name": "x".repeat(size)}, "spec": {"a": [{"b": {}}, {}]}});
        let object = object.to_string();
        let go = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
        let other = format!(r#"{{"object":{object},"type":"MODIFIED"}}"#);
        assert!(Frame::usual(go.as_bytes()).is_some(), "{go}");
        assert_eq!(frame(&go), frame(&other));
    }
}

proptest! {
    #[test]
    fn chunking_does_not_matter(
        body in "([a-z{}\"]{0,9}\r?\n?){0,9}",
        mut cuts in proptest::collection::vec(0_usize..120, 0..8),
    ) {
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(body.len()));
        cuts.sort_unstable();
        prop_assert_eq!(lines(body.as_bytes(), &cuts), lines(body.as_bytes(), &[]));
    }
}
