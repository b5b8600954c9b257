//! Programs that must compile, and the behaviour of their derived code.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each is written as a program of its own"
)]

#[path = "../pass/any_names.rs"]
mod any_names;
#[path = "../pass/embedded.rs"]
mod embedded;
#[path = "../pass/every_grant.rs"]
mod every_grant;
#[path = "../pass/grants.rs"]
mod grants;
#[path = "../pass/object.rs"]
mod object;
#[path = "../pass/projection.rs"]
mod projection;
#[path = "../pass/schema.rs"]
mod schema;
#[path = "../pass/website.rs"]
mod website;

#[test]
fn types_and_fields_may_have_names_that_generated_code_uses() {
    any_names::main().unwrap();
}

#[test]
fn a_grant_permits_its_verbs_and_the_views_that_they_lead_to() {
    grants::main();
}

#[test]
fn literals_and_apply_configurations_need_no_name_of_the_prelude_and_no_allowed_lint() {
    object::main();
}

#[test]
fn a_kind_in_another_kind_is_applied_by_its_own_configuration() {
    embedded::main();
}

#[test]
fn every_form_of_a_grant_becomes_a_rule_and_permits_its_calls() {
    every_grant::main();
}

#[test]
fn a_projection_reads_fields_by_name_and_path() {
    projection::main().unwrap();
}

#[test]
fn a_schema_follows_from_a_type_wherever_it_stands() {
    schema::main().unwrap();
}

#[test]
fn the_documented_website_types_compile_and_run() {
    website::main();
}
