use super::{ParserOptions, parse};
use crate::syntax::source::Source;

fn error(text: &str) -> String {
    match parse(Source::new(text), &ParserOptions::default()) {
        Ok(_) => String::new(),
        Err(issues) => issues.to_string(),
    }
}

#[test]
fn valid_expressions_parse() {
    for text in [
        "self.a + 1 == -1 && !has(self.b)",
        "[1, ?a, 2,].all(x, x > 1u) ? {'a': 1, ?'b': c} : {}",
        "a.b.c{d: 1, ?e: 2}.f(1)[?2].?x",
        "m.transformMap(k, v, k != 'x', v + 1).exists(k, v, k in v)",
        "x.optMap(v, v.size()).orValue(0) // comment",
        "-9223372036854775808 + 0x1F + 1e3 - --1",
        "r'\\d' + \"\"\"a\nb\"\"\" + string(b'\\xff')",
    ] {
        assert_eq!(error(text), "", "{text}");
    }
}

#[test]
fn deep_input_is_an_error_on_a_small_stack() {
    let deep = || {
        for c in ["(", "[", "{", "!", "-", "a.b(", "-1[", "a?a:", "1+("] {
            let text = c.repeat(90_000 / c.len());
            assert!(error(&text).starts_with("ERROR: <input>:"), "{c}");
        }
        let nested = format!("{}1{}", "[".repeat(240), "]".repeat(240));
        assert_eq!(error(&nested), "");
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(deep);
    thread.unwrap().join().unwrap();
}
