//! The answer of a handler: allowed, denied, or failed, with warnings.

use serde::Serialize;

use crate::cut::{LONGEST, cut};
use crate::field::{Field, FieldError, FieldFault};

/// The answer of a handler. Default: allowed.
///
/// Errors of fields add up, and each of them denies the request: the client gets `422 Invalid` with
/// a cause per field, which kubectl prints as it prints the API server's own. Repeated errors are
/// sent once, and beyond 1000 they are only counted. [`deny`](Self::deny) refuses without a field,
/// [`fail`](Self::fail) lets the failure policy of the webhook decide.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use windlass::webhook::AdmissionResponse;
///
/// let mut response = AdmissionResponse::allowed();
/// response.warn("spec.host is deprecated: use spec.hosts");
/// assert!(response.is_allowed());
///
/// response.invalid("spec.replicas", -1, "must be at least 0");
/// response.not_supported("spec.tier", "gold", &["free", "paid"]);
/// assert!(!response.is_allowed());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a request is denied by the response that its handler returns"]
pub struct AdmissionResponse {
    pub(crate) errors: Vec<FieldError>,
    pub(crate) denial: Option<String>,
    pub(crate) failure: Option<String>,
    pub(crate) warnings: Vec<String>,
    /// Number of errors beyond [`MOST_ERRORS`].
    pub(crate) left_out: usize,
}

/// Most errors of an answer; more are counted. API servers have no such limit: lists are long.
const MOST_ERRORS: usize = 1000;
impl AdmissionResponse {
    /// Returns a response without an error: the request is allowed.
    pub fn allowed() -> Self {
        Self::default()
    }

    /// Returns a response that refuses the request with `403 Forbidden` and this text, for a reason
    /// that is not one field.
    pub fn deny(why: impl Into<String>) -> Self {
        Self { denial: Some(cut(&why.into(), LONGEST).to_owned()), ..Self::default() }
    }

    /// Returns a response for a request that could not be judged: the API server allows or refuses
    /// it by the `failurePolicy` of the webhook. `why` is shown to the client.
    pub fn fail(why: impl Into<String>) -> Self {
        Self { failure: Some(cut(&why.into(), LONGEST).to_owned()), ..Self::default() }
    }

    /// Whether nothing denies the request yet.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty() && self.denial.is_none() && self.failure.is_none()
    }

    /// Adds a warning, which kubectl prints, whether the request is allowed or not.
    ///
    /// Repeated warnings are sent once. When those of a request have more than 4096 characters in
    /// all, API servers cut each to 256, and leave out those that come after 4096.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Adds the error of a value that breaks a rule: `detail` has the rule, such as
    /// `must be at most 10`.
    pub fn invalid(&mut self, field: impl Field, value: impl Serialize, detail: &str) {
        self.add(FieldError::new(FieldFault::Invalid, field, Some(&value), detail));
    }

    /// Adds the error of a value that is missing.
    pub fn required(&mut self, field: impl Field, detail: &str) {
        self.add(FieldError::new(FieldFault::Required, field, None, detail));
    }

    /// Adds the error of a value that must not be there, or not be changed.
    pub fn forbidden(&mut self, field: impl Field, detail: &str) {
        self.add(FieldError::new(FieldFault::Forbidden, field, None, detail));
    }

    /// Adds the error of a value that another element has, too.
    pub fn duplicate(&mut self, field: impl Field, value: impl Serialize) {
        self.add(FieldError::new(FieldFault::Duplicate, field, Some(&value), ""));
    }

    /// Adds the error of a reference to something that does not exist.
    pub fn not_found(&mut self, field: impl Field, value: impl Serialize) {
        self.add(FieldError::new(FieldFault::NotFound, field, Some(&value), ""));
    }

    /// Adds the error of a value that is none of `supported`.
    pub fn not_supported(&mut self, field: impl Field, value: impl Serialize, supported: &[&str]) {
        let shown: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail = match shown.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", shown.join(", ")),
        };
        self.add(FieldError::new(FieldFault::NotSupported, field, Some(&value), &detail));
    }

    /// Adds the error of a text of more than `most` bytes.
    pub fn too_long(&mut self, field: impl Field, most: usize) {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {bytes}");
        self.add(FieldError::new(FieldFault::TooLong, field, None, &detail));
    }

    /// Adds the error of a list with `count` elements, of which at most `most` are allowed.
    pub fn too_many(&mut self, field: impl Field, count: usize, most: usize) {
        let items = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {items}");
        self.add(FieldError::new(FieldFault::TooMany, field, Some(&count), &detail));
    }

    /// Adds errors and warnings of another response; of two denials or failures the first stays.
    pub fn join(&mut self, other: AdmissionResponse) {
        other.errors.into_iter().for_each(|error| self.add(error));
        self.left_out += other.left_out;
        self.warnings.extend(other.warnings);
        self.denial = self.denial.take().or(other.denial);
        self.failure = self.failure.take().or(other.failure);
    }

    /// Adds an error that is not among the errors yet.
    fn add(&mut self, error: FieldError) {
        if self.errors.len() >= MOST_ERRORS {
            self.left_out += 1;
        } else if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}
