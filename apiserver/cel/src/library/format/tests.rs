//! Formats against cel-go's results.

use super::*;

fn one(template: &str, value: Argument<'_>) -> Result<String, String> {
    format(template, |index| (index == 0).then(|| value.clone()))
}

#[test]
fn each_clause_has_its_text() {
    for (template, value, text) in [
        ("%s", Argument::Double(1e6), "1e+06"),
        ("%d", Argument::Int(-5), "-5"),
        ("%f", Argument::Double(1_234_567.891), "1,234,567.891000"),
        ("%.0f", Argument::Double(2.5), "2"),
        ("%.0f", Argument::Double(-0.4), "-0"),
        ("%f", Argument::String("Infinity".into()), "∞"),
        ("%e", Argument::Double(1_052.032_911_275), "1.052033×10⁰³"),
        // The precision is the width, as in cel-go.
        ("%.16e", Argument::Double(1e-7), "  1.000000×10⁻⁰⁷"),
        ("%b", Argument::Int(-5), "-101"),
        ("%b", Argument::Bool(true), "1"),
        ("%x", Argument::Int(-255), "-ff"),
        ("%X", Argument::String("hé".into()), "68C3A9"),
        ("%o", Argument::Uint(8), "10"),
        ("100%% %s", Argument::Null, "100% null"),
    ] {
        assert_eq!(one(template, value), Ok(text.to_owned()), "{template}");
    }
}

#[test]
fn elements_are_literals_and_entries_are_sorted_by_text() {
    let list = Argument::List(vec![
        Argument::String("a\"".into()),
        Argument::Bytes(b"b".as_slice().into()),
        Argument::Double(0.5),
        Argument::Double(f64::NAN),
        Argument::Duration(Duration::from_nanos(1_500_000_000)),
    ]);
    assert_eq!(
        one("%s", list),
        Ok(r#"["a\"", b"b", 0.500000, "NaN", duration("1.5s")]"#.to_owned())
    );
    let map = Argument::Map(vec![
        (Argument::Int(9), Argument::Null),
        (Argument::Int(10), Argument::Bool(true)),
    ]);
    assert_eq!(one("%s", map), Ok("{10:true, 9:null}".to_owned()));
}

#[test]
fn an_error_has_the_words_of_cel_go() {
    let parse = "could not parse formatting clause";
    let precision = "could not parse formatting clause: error while parsing precision";
    for (template, message) in [
        ("%s%s", "index 1 out of range".to_owned()),
        ("%", "unexpected end of string".to_owned()),
        ("%é", format!("{parse}: unrecognized formatting clause \"Ã\"")),
        ("%.3", format!("{precision}: could not find end of precision specifier")),
        (
            "%.f",
            format!("{precision}: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax"),
        ),
        (
            "%d",
            "error during formatting: decimal clause can only be used on integers, was given string".to_owned(),
        ),
    ] {
        assert_eq!(one(template, Argument::String("x".into())), Err(message), "{template}");
    }
}

#[test]
fn a_precision_is_bounded_as_in_go() {
    assert_eq!(one("%.99999999f", Argument::Double(1.0)), Ok("%!(NOVERB)".to_owned()));
    assert_eq!(
        one("%.9999999e", Argument::Double(1.0)).map(|text| text.chars().count()),
        Ok(38_527)
    );
}

#[test]
fn a_deep_value_is_an_error() {
    let deep = (0..300).fold(Argument::Null, |inner, _| Argument::List(vec![inner]));
    assert!(one("%s", deep).is_err());
}
