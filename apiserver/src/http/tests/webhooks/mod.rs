mod calls;
mod conversion;
mod mutating;
mod support;
mod validating;
