mod calls;
mod configurations;
mod conversion;
mod limits;
mod mutating;
pub(crate) mod support;
mod validating;
