//! Requests, answers and services, as layers see them.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tower::util::BoxCloneSyncService;

use super::payload::RequestBody;
use windlass_core::error::BoxError;

/// Body of an answer that is still being received.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
/// A request as passed through [layers](crate::client::ClientBuilder::layer): absolute URI,
/// credentials set.
pub type HttpRequest = http::Request<RequestBody>;
/// An answer as passed through layers.
pub type HttpResponse = http::Response<ResponseBody>;
/// The services that an attempt passes, from the outermost layer to the connection.
pub type Stack = BoxCloneSyncService<HttpRequest, HttpResponse, BoxError>;
