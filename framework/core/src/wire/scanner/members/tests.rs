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
