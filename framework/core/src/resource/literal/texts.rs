//! Texts.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::sync::Arc;

use super::values;

values! {
    &str => String: str::to_owned;
    &&str => String: |text| (*text).to_owned();
    &&String => String: |text| (*text).clone();
    &mut str => String: |text| text.to_owned();
    char => String: String::from;
    Cow<'_, str> => String: |text| text.into_owned();
    &Cow<'_, str> => String: |text| text.clone().into_owned();
    Box<str> => String: String::from;
    Arc<str> => String: |text| text.as_ref().to_owned();
    &Arc<str> => String: |text| text.as_ref().to_owned();
    Arguments<'_> => String: |text| text.to_string();
}
