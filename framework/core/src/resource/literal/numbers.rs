//! Numbers, from types that hold no more than the field does.
//!
//! Only fields of the two widths that Kubernetes has, `i32` and `i64`, take other types. With a
//! single type to choose from, the compiler gives that type to an integer without suffix, as in
//! `if tls { 443 } else { 80 }`; with several it chooses `i32`, which fields of both widths accept.

use super::values;

values! {
    i8 => i32: i32::from;
    u8 => i32: i32::from;
    i16 => i32: i32::from;
    u16 => i32: i32::from;
    i8 => i64: i64::from;
    u8 => i64: i64::from;
    i16 => i64: i64::from;
    u16 => i64: i64::from;
    i32 => i64: i64::from;
    u32 => i64: i64::from;
}
