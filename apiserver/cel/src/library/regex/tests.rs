//! Regular expressions against Go's results, and hostile patterns.

use super::*;

fn error(pattern: &str) -> String {
    Regex::compile(pattern).map_or_else(|error| error.to_string(), |_| "compiles".to_owned())
}

#[test]
fn an_error_has_the_words_of_go() {
    for (pattern, message) in [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("x[a", "missing closing ]: `[a`"),
        ("x[]", "missing closing ]: `[]`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}?", "invalid nested repetition operator: `{2}{3}?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?<a", "invalid named capture: `(?<a`"),
        ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
    ] {
        assert_eq!(error(pattern), format!("error parsing regexp: {message}"), "{pattern}");
    }
}

#[test]
fn a_pattern_means_what_it_means_in_go() {
    for (pattern, text, found) in [
        (r"^a$", "a\n", ""),
        (r"(?m)^b$", "a\nb\nc", "b"),
        (r"\w+", "é_a1é", "_a1"),
        (r"\s", "\u{b}\u{a0}\t", "\t"),
        (r"\d", "٣3", "3"),
        (r"(?i)k", "\u{212a}", "\u{212a}"),
        (r"a{,2}", "aa a{,2}", "a{,2}"),
        (r"(?U)a+", "aaa", "a"),
        (r"a*(?i)*", "aaab", "aaa"),
        (r"\Qa.b\E+", "a.bbb", "a.bbb"),
        (r"[a&&b]+", "x&&", "&&"),
        (r"[[:word:]]+", "-a_1-", "a_1"),
        (r"\07|\x41|\x{42}", "B", "B"),
        (r"(?P<x>a)(?<x>b)", "ab", "ab"),
        (r"\p{greek}+", "aλΣb", "λΣ"),
        (r"\PL+", "a1-b", "1-"),
        (r"[^\x00-\x{10FFFF}]", "a", ""),
        (r"\bfoo\b", "éfoo", "foo"),
    ] {
        let regex = Regex::compile(pattern).expect(pattern);
        assert_eq!(regex.find(text), found, "{pattern}");
    }
}

#[test]
fn all_matches_are_found_up_to_a_limit() {
    let regex = Regex::compile("a*").expect("a pattern");
    assert_eq!(regex.find_all("baac", -1), ["", "aa", ""]);
    assert_eq!(regex.find_all("baac", 2), ["", "aa"]);
    assert!(regex.find_all("baac", 0).is_empty());
    assert!(regex.is_match(""));
}

#[test]
fn a_hostile_pattern_ends_within_the_limits() {
    let patterns = [
        ("(a|b".repeat(10_000), "missing closing )"),
        ("(a|b".repeat(5_000) + &")*c".repeat(5_000), "nests too deeply"),
        ("(?:a*".repeat(330) + &")*c".repeat(330), "compiles"),
        ("(?:a*|b".repeat(15) + &")*c".repeat(15), "compiles"),
        ("(?:".repeat(20_000), "missing closing )"),
        ("a".repeat(1 << 20), "expression too large"),
        ("(?i)a".repeat(10_000), "compiles"),
        ("a*".to_owned() + &"(?i)*".repeat(10_000), "nests too deeply"),
        (r"\pL{1000}".to_owned(), "expression too large"),
        (r"(?i)[\pL\pN]".repeat(5_000), "expression too large"),
        ("(((a{10}){10}){10}){2}".to_owned(), "invalid repeat count"),
        ("(.{1000}|.{999})".repeat(200), "expression too large"),
        ("a?".repeat(5_000) + &"a".repeat(5_000), "compiles"),
        ("|".repeat(60_000), "compiles"),
    ];
    // Half of the stack that a thread of a program has by default.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        for (pattern, expected) in patterns {
            let message = error(&pattern);
            let start: String = message.chars().take(80).collect();
            assert!(message.contains(expected), "{expected}: {start}");
        }
    });
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn the_size_of_a_pattern_counts_each_item_as_often_as_it_is_repeated() {
    let size = |pattern: &str| {
        let pattern = Pattern::parse(pattern).unwrap();
        let ranges = pattern.ranges();
        (pattern.compile().unwrap().items(), ranges)
    };
    assert_eq!(size("a"), (2, 2));
    assert_eq!(size("(ab){10}"), (31, 31));
    assert_eq!(size("a{2,1000}b*"), (1002, 1002));
    for pattern in [r"\pL{60}", r"[^\pL]{60}", r"(?i)(\p{Greek}|a){60}"] {
        let (items, ranges) = size(pattern);
        assert!(items < 200 && ranges >= 60_000, "{pattern}: {items} items, {ranges} ranges");
    }
}
