//! Answers as kube-apiserver 1.36.3 gave them, byte for byte but for shortened texts.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::error::{Error, ErrorKind};
use crate::wire::status::of_answer;

fn error(code: u16, retry_after: Option<&'static str>, body: &str) -> Error {
    let mut headers = HeaderMap::new();
    if let Some(wait) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from_static(wait));
    }
    let status = of_answer(StatusCode::from_u16(code).unwrap(), &headers, body.as_bytes());
    Error::from_status("try it", status)
}

/// A Status without the keys that all of them have.
fn failure(code: u16, rest: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",{rest},"code":{code}}}"#
    )
}

type Question = (&'static str, fn(&Error) -> bool);

/// Every predicate, by name.
fn holds(error: &Error) -> Vec<&'static str> {
    let all: [Question; 21] = [
        ("not_found", Error::is_not_found),
        ("already_exists", Error::is_already_exists),
        ("conflict", Error::is_conflict),
        ("field_conflict", Error::is_field_conflict),
        ("invalid", Error::is_invalid),
        ("bad_request", Error::is_bad_request),
        ("expired", Error::is_expired),
        ("gone", Error::is_gone),
        ("unauthorized", Error::is_unauthorized),
        ("forbidden", Error::is_forbidden),
        ("timeout", Error::is_timeout),
        ("server_timeout", Error::is_server_timeout),
        ("too_many", Error::is_too_many_requests),
        ("budget", Error::is_disruption_budget),
        ("unavailable", Error::is_service_unavailable),
        ("internal", Error::is_internal),
        ("method", Error::is_method_not_supported),
        ("not_acceptable", Error::is_not_acceptable),
        ("media_type", Error::is_unsupported_media_type),
        ("too_large", Error::is_request_entity_too_large),
        ("terminating", Error::namespace_terminating),
    ];
    all.into_iter().filter(|(_, holds)| holds(error)).map(|(name, _)| name).collect()
}

#[test]
fn recorded_answers_mean_what_their_reason_says() {
    let status = |code, rest: &str, means: &[&'static str]| {
        let error = error(code, None, &failure(code, rest));
        assert_eq!(holds(&error), means, "{error}");
    };
    status(
        404,
        r#""message":"configmaps \"a\" not found","reason":"NotFound","details":{"name":"a","kind":"configmaps"}"#,
        &["not_found"],
    );
    status(
        409,
        r#""message":"object is being deleted: configmaps \"fin\" already exists","reason":"AlreadyExists","details":{"name":"fin","kind":"configmaps"}"#,
        &["already_exists"],
    );
    status(
        409,
        r#""message":"Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"a","kind":"configmaps"}"#,
        &["conflict"],
    );
    status(
        409,
        r#""message":"Apply failed with 1 conflict: conflict with \"m1\": .data.k","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"m1\"","field":".data.k"}]}"#,
        &["conflict", "field_conflict"],
    );
    status(
        422,
        r#""message":"spec.size: Invalid value: 0","reason":"Invalid","details":{"name":"a","kind":"Widget","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 0","field":"spec.size"},{"reason":"FieldValueInvalid","message":"some validation rules were not checked","field":"<nil>"}]}"#,
        &["invalid"],
    );
    status(
        400,
        r#""message":"metadata.managedFields must be nil","reason":"BadRequest""#,
        &["bad_request"],
    );
    status(
        410,
        r#""message":"The resourceVersion for the provided list is too old.","reason":"Expired""#,
        &["expired"],
    );
    status(410, r#""message":"gone","reason":"Gone""#, &["expired", "gone"]);
    status(401, r#""message":"Unauthorized","reason":"Unauthorized""#, &["unauthorized"]);
    status(
        403,
        r#""message":"configmaps is forbidden: User \"alice\" cannot list resource","reason":"Forbidden","details":{"kind":"configmaps"}"#,
        &["forbidden"],
    );
    status(
        403,
        r#""message":"configmaps \"a\" is forbidden: unable to create new content in namespace tn because it is being terminated","reason":"Forbidden","details":{"name":"a","kind":"configmaps","causes":[{"reason":"NamespaceTerminating","message":"namespace tn is being terminated","field":"metadata.namespace"}]}"#,
        &["forbidden", "terminating"],
    );
    status(
        500,
        r#""message":"resourceVersion should not be set on objects to be created""#,
        &["internal"],
    );
    status(
        500,
        r#""message":"Internal error occurred: failed calling webhook","reason":"InternalError","details":{"causes":[{"message":"connection refused"}]}"#,
        &["internal"],
    );
    // A known reason wins over the code: this Status is no internal error.
    status(500, r#""message":"try again","reason":"ServerTimeout""#, &["server_timeout"]);
    status(
        405,
        r#""message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{}"#,
        &["method"],
    );
    status(406, r#""message":"406: Not Acceptable","reason":"NotAcceptable""#, &["not_acceptable"]);
    status(
        415,
        r#""message":"415: Unsupported Media Type","reason":"UnsupportedMediaType","details":{}"#,
        &["media_type"],
    );
    status(
        413,
        r#""message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge""#,
        &["too_large"],
    );
    status(
        429,
        r#""message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget b needs 1 healthy pods and has 1 currently"}]}"#,
        &["too_many", "budget"],
    );
    status(503, r#""message":"unavailable","reason":"ServiceUnavailable""#, &["unavailable"]);
}

#[test]
fn answers_of_proxies_and_of_the_servers_own_filters_are_judged_by_their_code() {
    assert_eq!(holds(&error(404, None, "404 page not found\n")), ["not_found"]);
    assert_eq!(
        holds(&error(429, Some("1"), "Too many requests, please try again later.")),
        ["too_many"]
    );
    assert_eq!(holds(&error(503, None, "<html>no backend</html>")), ["unavailable"]);
    assert_eq!(holds(&error(413, None, "")), ["too_large"]);
    assert_eq!(holds(&error(504, None, "upstream timed out")), ["timeout"]);
    // A denial by a webhook keeps the code that the webhook chose.
    assert_eq!(holds(&error(499, None, &failure(499, r#""message":"denied""#))), [""; 0]);
}

#[test]
fn a_wait_is_read_from_header_and_details_alike() {
    let storage = failure(
        429,
        r#""message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":1}"#,
    );
    assert_eq!(error(429, None, &storage).retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(error(429, Some("10"), &storage).retry_after(), Some(Duration::from_secs(10)));
    assert_eq!(error(503, Some("2"), "").retry_after(), Some(Duration::from_secs(2)));
}

#[test]
fn a_version_from_the_future_is_a_timeout_with_its_cause() {
    let body = failure(
        504,
        r#""message":"Timeout: Too large resource version: 99999999, current: 4921","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#,
    );
    let error = error(504, Some("1"), &body);
    assert!(error.is_version_too_large() && error.is_timeout());
    assert!(error.has_cause("ResourceVersionTooLarge"));
}

#[test]
fn an_expired_page_tells_where_to_go_on() {
    let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"next","resourceVersion":"9"},
        "status":"Failure","message":"The provided continue parameter is too old","reason":"Expired","code":410}"#;
    let error = error(410, None, body);
    assert!(error.is_expired() && !error.is_gone());
    assert_eq!(error.status().unwrap().metadata.continue_token, "next");
}

#[test]
fn field_errors_leave_out_what_names_no_field() {
    let body = failure(
        422,
        r#""message":"m","reason":"Invalid","details":{"causes":[
            {"reason":"FieldValueInvalid","message":"too small","field":"spec.size"},
            {"reason":"FieldValueInvalid","message":"not checked","field":"<nil>"},
            {"message":"denied"}]}"#,
    );
    let error = error(422, None, &body);
    let fields: Vec<_> = error.field_errors().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["spec.size"]);
    assert_eq!(error.causes().len(), 3);
    assert_eq!((error.reason(), error.code()), ("Invalid", Some(422)));
}

#[test]
fn a_status_with_nulls_is_still_the_servers_own() {
    let body = r#"{"kind":"Status","metadata":null,"message":"m","reason":"Conflict","code":409,"details":{"causes":null}}"#;
    let error = error(409, None, body);
    assert!(error.is_conflict() && error.causes().is_empty());
    assert_eq!(error.status().unwrap().message, "m");
}

#[test]
fn an_ambiguous_write_keeps_what_the_server_said() {
    let body = failure(504, r#""message":"Timeout: request did not complete","reason":"Timeout""#);
    let error = error(504, None, &body).with_kind(ErrorKind::Ambiguous);
    assert!(error.is_ambiguous() && error.is_timeout());
}
