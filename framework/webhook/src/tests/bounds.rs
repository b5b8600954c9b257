//! Answers with more errors and warnings than anyone reads.

use super::*;

/// Returns the JSON that is sent for a response.
fn sent_for(response: AdmissionResponse) -> Value {
    let answer = crate::review::HandlerResponse { response, ..Default::default() };
    let admission = Admission { uid: "7a".to_owned(), ..Admission::default() };
    answer.review(&admission).unwrap()["response"].take()
}

#[test]
fn errors_beyond_a_thousand_are_counted() {
    let mut response = AdmissionResponse::allowed();
    let mut part = AdmissionResponse::allowed();
    for at in 0..1200 {
        let list = if at % 2 == 0 { &mut response } else { &mut part };
        list.required(format!("spec.list[{at}]"), "");
        list.required("spec.same", "");
    }
    response.join(part);
    for at in 0..200 {
        response.required(format!("spec.more[{at}]"), "");
    }
    let status = &sent_for(response)["status"];
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 1000);
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with(", and 401 more errors]"), "{}", &message[message.len() - 80..]);
}

#[test]
fn a_joined_response_brings_its_count_along() {
    let mut part = AdmissionResponse::allowed();
    (0..1002).for_each(|at| part.required(format!("spec.list[{at}]"), ""));
    let mut response = AdmissionResponse::allowed();
    response.join(part);
    let sent = sent_for(response);
    assert!(sent["status"]["message"].as_str().unwrap().ends_with(", and 2 more errors]"));
}

#[test]
fn long_values_and_texts_are_cut_at_a_character() {
    let long = "é".repeat(100_000);
    let mut response = AdmissionResponse::allowed();
    response.invalid(&long, &long, "is too much");
    let sent = sent_for(response);
    let cause = &sent["status"]["details"]["causes"][0];
    for text in [&cause["field"], &cause["message"]] {
        assert_eq!(text.as_str().unwrap().chars().count(), 1024);
    }
    let denied = sent_for(AdmissionResponse::deny(&long));
    assert_eq!(denied["status"]["message"].as_str().unwrap().chars().count(), 4096);
}

/// Returns the lengths of the warnings that are sent for some.
fn lengths(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut response = AdmissionResponse::allowed();
    texts.for_each(|text| response.warn(text));
    let sent = sent_for(response);
    let warnings = sent["warnings"].as_array().into_iter().flatten();
    warnings.map(|text| text.as_str().unwrap().chars().count()).collect()
}

#[test]
fn warnings_are_bounded_as_the_api_server_bounds_them() {
    let text = |at: usize, length: usize| format!("{at:04}{}", "é".repeat(length - 4));
    assert_eq!(lengths((0..8).map(|at| text(at, 512))), [512; 8]);
    assert_eq!(lengths((0..9).map(|at| text(at, 512))), [256; 9]);
    assert_eq!(lengths((0..5000).map(|at| text(at, 512))), [256; 16]);
    assert_eq!(lengths((0..5000).map(|_| text(1, 512))), [512]);
    assert_eq!(lengths([String::new()].into_iter()), [0; 0]);
}
