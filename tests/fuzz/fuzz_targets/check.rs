#![no_main]

#[path = "../expressions.rs"]
#[allow(dead_code)]
mod expressions;

libfuzzer_sys::fuzz_target!(|data: &[u8]| expressions::check_any(data));
