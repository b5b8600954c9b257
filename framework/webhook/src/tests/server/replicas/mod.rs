//! Replicas that know different things: other webhooks, other certificates, another time.

mod early;
mod mounted;
mod trusted;
mod upgrades;

use super::*;
