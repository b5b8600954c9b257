use super::*;

#[test]
fn a_missing_value_is_no_value() {
    for bad in [&b"{\"a\":,}"[..], b"{\"a\":}", b"{\"a\":1,}", b"{,}", b"{\"a\"::1}"] {
        assert!(members(bad, &mut |_| true).is_err(), "{}", String::from_utf8_lossy(bad));
    }
    for bad in [&b"[,]"[..], b"[1,]", b"[1,,2]", b"[:]"] {
        assert!(elements(bad, &mut |_, _| {}).is_err(), "{}", String::from_utf8_lossy(bad));
    }
}

#[test]
fn a_path_into_values_nested_without_end_has_an_end() {
    let deep = "[".repeat(100_000);
    assert_eq!(path_at(deep.as_bytes(), 99_999), "");
    let deep = format!("{deep}{}", "]".repeat(100_000));
    assert_eq!(path_at(deep.as_bytes(), 99_999), "[0]".repeat(MOST_STEPS));
}

#[test]
fn an_offset_is_told_as_a_path() {
    let object = br#"{"a":1,"spec":{"ports":[{"port":1},{"port":"x"}]}}"#;
    let offset = object.iter().position(|b| *b == b'x').unwrap();
    assert_eq!(path_at(object, offset), ".spec.ports[1].port");
}

#[test]
fn a_member_that_is_missing_is_missing_in_the_object_and_not_in_its_last_member() {
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Spec {
        containers: Vec<Container>,
        pair: Option<(u8, u8)>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)]
    struct Container {
        name: String,
        image: Option<String>,
        size: Option<u8>,
    }
    for (text, expected) in [
        (r#"{"containers":[{"name":"a"},{"image":"i"}]}"#, ".containers[1]"),
        (r#"{"containers":[{"name":"a"},{"image":"i" } ]}"#, ".containers[1]"),
        (r#"{"containers":[{}]}"#, ".containers[0]"),
        (r#"{"other":[1]}"#, ""),
        (r#"{"containers":[{"name":"a","size":300}]}"#, ".containers[0].size"),
        (r#"{"containers":[{"name":7}]}"#, ".containers[0].name"),
        (r#"{"containers":[],"pair":[1]}"#, ".pair"),
        (r#"{"containers":[],"pair":[1,true]}"#, ".pair[1]"),
        (r#"{"containers":{}}"#, ".containers"),
        (r#"{"containers":"none"}"#, ".containers"),
    ] {
        let error = serde_json::from_str::<Spec>(text).unwrap_err();
        assert_eq!(path_at(text.as_bytes(), error.column() - 1), expected, "{text}: {error}");
    }
}
