mod calls;
mod configurations;
mod conversion;
mod mutating;
mod support;
mod validating;
