//! Timestamps against the results of Go and cel-go.

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).expect("a timestamp")
}

#[test]
fn a_text_keeps_its_offset() {
    for text in [
        "2024-02-29T12:34:56Z",
        "2024-02-29T12:34:56.5+05:30",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-00:30",
    ] {
        assert_eq!(at(text).to_rfc3339(), text);
    }
    assert_eq!(at("2024-01-01T00:00:00+01:00").to_rfc3339_utc(), "2023-12-31T23:00:00Z");
    assert_eq!(at("2024-01-01T00:00:00+01:00"), at("2023-12-31T23:00:00Z"));
}

#[test]
fn go_reads_more_than_rfc3339() {
    for (text, read) in [
        ("2024-02-29T1:34:56Z", "2024-02-29T01:34:56Z"),
        ("2024-02-29T12:34:56,5Z", "2024-02-29T12:34:56.5Z"),
        ("2024-02-29T12:34:56.1234567899Z", "2024-02-29T12:34:56.123456789Z"),
        ("2024-01-01T00:00:00+24:60", "2024-01-01T00:00:00+25:00"),
    ] {
        assert_eq!(at(text).to_rfc3339(), read);
    }
}

#[test]
fn a_text_beyond_the_years_is_an_overflow() {
    for text in ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"] {
        assert_eq!(Timestamp::parse(text), Err(TIMESTAMP_OVERFLOW), "{text}");
    }
    assert_eq!(Timestamp::parse("2024-01-01"), Err(NOT_A_TIMESTAMP));
    assert_eq!(Timestamp::from_unix(253_402_300_800), Err(TIMESTAMP_OVERFLOW));
}

#[test]
fn an_error_has_the_words_of_go() {
    const LAYOUT: &str = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
    for (text, message) in [
        ("", format!("parsing time \"\" {LAYOUT} \"\" as \"2006\"")),
        (
            "2024-1-01T00:00:00Z",
            format!("parsing time \"2024-1-01T00:00:00Z\" {LAYOUT} \"1-01T00:00:00Z\" as \"01\""),
        ),
        ("2024-01-01", format!("parsing time \"2024-01-01\" {LAYOUT} \"\" as \"T\"")),
        (
            "2023-02-29T00:00:00Z",
            "parsing time \"2023-02-29T00:00:00Z\": day out of range".to_owned(),
        ),
        (
            "2024-13-01T00:00:00Z",
            "parsing time \"2024-13-01T00:00:00Z\": month out of range".to_owned(),
        ),
        (
            "2024-01-01T00:00:00Zé",
            "parsing time \"2024-01-01T00:00:00Z\\xc3\\xa9\": extra text: \"\\xc3\\xa9\""
                .to_owned(),
        ),
    ] {
        assert_eq!(Timestamp::parse_rfc3339(text), Err(message), "{text}");
    }
}

#[test]
fn schema_formats_have_their_own_forms() {
    assert_eq!(Timestamp::parse_schema_date("2024-02-29"), Ok(at("2024-02-29T00:00:00Z")));
    assert_eq!(
        Timestamp::parse_schema_date_time(""),
        Timestamp::from_unix(0).map_err(str::to_owned)
    );
    assert_eq!(
        Timestamp::parse_schema_date_time("2024-02-29T01:02:03.5"),
        Ok(at("2024-02-29T01:02:03.5Z"))
    );
    // The message is about the last form that was tried.
    assert_eq!(
        Timestamp::parse_schema_date_time("x"),
        Err("parsing time \"x\" as \"2006-01-02T15:04:05\": cannot parse \"x\" as \"2006\""
            .to_owned())
    );
}

#[test]
fn arithmetic_beyond_the_years_is_an_error() {
    let (first, last) = (at("0001-01-01T00:00:00Z"), at("9999-12-31T23:59:59.999999999Z"));
    let nano = Duration::from_nanos(1);
    assert_eq!(first.checked_sub(nano), Err(TIMESTAMP_OVERFLOW));
    assert_eq!(last.checked_add(nano), Err(TIMESTAMP_OVERFLOW));
    assert_eq!(last.duration_since(first), Err(INT_OVERFLOW));
    assert_eq!(last.checked_sub(Duration::from_nanos(i64::MIN)), Err(INT_OVERFLOW));
    assert_eq!(
        first.checked_add(nano).map(Timestamp::to_rfc3339),
        Ok("0001-01-01T00:00:00.000000001Z".to_owned())
    );
}

#[test]
fn parts_are_those_of_the_zone() {
    use Part::{
        Date, DayOfMonth, DayOfWeek, DayOfYear, FullYear, Hours, Milliseconds, Minutes, Month,
        Seconds,
    };
    let parts = [
        FullYear,
        Month,
        Date,
        DayOfMonth,
        DayOfWeek,
        DayOfYear,
        Hours,
        Minutes,
        Seconds,
        Milliseconds,
    ];
    let timestamp = at("2024-03-10T07:00:01.234Z");
    for (zone, expected) in [
        ("", [2024, 2, 10, 9, 0, 69, 7, 0, 1, 234]),
        ("America/New_York", [2024, 2, 10, 9, 0, 69, 3, 0, 1, 234]),
        ("America/Los_Angeles", [2024, 2, 9, 8, 6, 68, 23, 0, 1, 234]),
        ("-07:30", [2024, 2, 9, 8, 6, 68, 23, 30, 1, 234]),
        ("14:00", [2024, 2, 10, 9, 0, 69, 21, 0, 1, 234]),
    ] {
        let zone = Zone::parse(zone).expect("a zone");
        assert_eq!(parts.map(|part| timestamp.part(part, &zone)), expected);
    }
}

#[test]
fn a_zone_that_is_unknown_is_an_error() {
    for (text, message) in [
        ("Foo", "unknown time zone Foo"),
        ("america/new_york", "unknown time zone america/new_york"),
        ("Etc/Unknown", "unknown time zone Etc/Unknown"),
        ("../x", "time: invalid location name"),
        ("x:1", "strconv.Atoi: parsing \"x\": invalid syntax"),
        ("1:", "strconv.Atoi: parsing \"\": invalid syntax"),
    ] {
        assert_eq!(Zone::parse(text).map(|_| ()), Err(message.to_owned()));
    }
}
