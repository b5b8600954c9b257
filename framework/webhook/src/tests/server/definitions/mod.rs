//! Conversions in definitions: when they are written, and with which authorities.

mod installed;
mod unknown;

use super::*;
