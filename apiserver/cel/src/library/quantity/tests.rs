//! Tables of quantities; the expectations are those of apimachinery.

use std::cmp::Ordering;

use super::{Fault, Quantity};

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_text_is_a_quantity_or_has_the_error_of_apimachinery() {
    let format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let (numeric, suffix) =
        ("unable to parse numeric part of quantity", "unable to parse quantity's suffix");
    let cases = [
        ("", format),
        ("1 ", format),
        ("1x", format),
        ("--1", suffix),
        ("1.2.3", format),
        (".e-10", numeric),
        ("1e", suffix),
        ("1e-", suffix),
        ("1kk", suffix),
        ("1ki", suffix),
        ("1KiB", format),
    ];
    for (text, expected) in cases {
        assert_eq!(Quantity::parse(text).unwrap_err(), expected, "{text:?}");
    }
    for text in ["+", "-", ".", ".Ki", "0", "-0", "00"] {
        assert_eq!(quantity(text).sign(), 0, "{text:?}");
    }
}

#[test]
fn only_a_number_without_fraction_that_was_short_enough_is_an_integer() {
    let cases = [
        ("100", Some(100)),
        ("1k", Some(1000)),
        ("-2Ki", Some(-2048)),
        ("1e3", Some(1000)),
        ("1.5k", Some(1500)),
        ("1500m", None),
        ("1000m", None),
        ("1.5Ki", None),
        ("1Pi", None),
        ("1E", Some(1_000_000_000_000_000_000)),
        ("10E", None),
        ("1e400", None),
    ];
    for (text, expected) in cases {
        assert_eq!(quantity(text).to_int(), expected, "{text}");
    }
}

#[test]
fn quantities_are_ordered_by_their_values() {
    let cases = [
        ("1", "1000m", Ordering::Equal),
        ("1Ki", "1024", Ordering::Equal),
        ("1.5Ki", "1536", Ordering::Equal),
        ("0.1n", "1n", Ordering::Equal),
        ("1e18", "1E", Ordering::Equal),
        ("1e400", "1E", Ordering::Greater),
        ("-1e400", "1n", Ordering::Less),
        ("9Ei", "9223372036854775807", Ordering::Equal),
        ("1.000000001", "1", Ordering::Greater),
    ];
    for (a, b, expected) in cases {
        assert_eq!(quantity(a).compare(&quantity(b)), Ok(expected), "{a} {b}");
        assert_eq!(quantity(b).compare(&quantity(a)), Ok(expected.reverse()), "{b} {a}");
    }
}

#[test]
fn sums_are_exact() {
    let cases = [
        ("1", "1m", "1001m"),
        ("1Ki", "-24", "1000"),
        ("9223372036854775807", "1", "9.223372036854775808E"),
    ];
    for (a, b, expected) in cases {
        let sum = quantity(a).add(&quantity(b)).unwrap();
        assert_eq!(sum.compare(&quantity(expected)), Ok(Ordering::Equal), "{a} {b}");
        let back = sum.sub(&quantity(b)).unwrap();
        assert_eq!(back.compare(&quantity(a)), Ok(Ordering::Equal), "{a} {b}");
    }
}

#[test]
fn an_operation_changes_a_decimal_that_it_is_called_on() {
    let half = quantity("0.5Ki");
    let sum = half.add(&quantity("1")).unwrap();
    assert_eq!(half.compare(&sum), Ok(Ordering::Equal), "the receiver is the sum");
    let one = quantity("1");
    assert_eq!(one.to_int(), Some(1));
    assert_eq!(one.compare(&quantity("0.5Ki")), Ok(Ordering::Less));
    assert_eq!(one.to_int(), None, "a comparison with a decimal makes a decimal");
}

#[test]
fn numbers_too_far_apart_are_a_fault_and_no_endless_computation() {
    let (huge, tiny) = (quantity("1e2147483647"), quantity("1n"));
    assert_eq!(huge.compare(&tiny), Err(Fault::DivisionByZero));
    assert_eq!(huge.compare(&quantity("1")), Err(Fault::TooLarge));
    assert!(Quantity::parse("1234567890123456789e2147483000").is_err());
}

#[test]
fn doubles_are_rounded_as_in_go() {
    let cases = [
        ("1500m", 1.5),
        ("0.1", 0.1),
        ("1e308", 1e308),
        ("1e400", f64::INFINITY),
        ("1.5Ki", 1536.0),
        ("-3u", -3e-6),
    ];
    for (text, expected) in cases {
        assert_eq!(quantity(text).to_f64(), expected, "{text}");
    }
}
