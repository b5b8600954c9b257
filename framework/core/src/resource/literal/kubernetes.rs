//! Kubernetes' own types of values: quantities, ports, times, bytes and free content.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::values;

values! {
    &str => Quantity: |text| Quantity(text.to_owned());
    String => Quantity: Quantity;
    &String => Quantity: |text| Quantity(text.clone());
    i32 => Quantity: |number| Quantity(number.to_string());
    i64 => Quantity: |number| Quantity(number.to_string());
    i32 => IntOrString: IntOrString::Int;
    u16 => IntOrString: |number| IntOrString::Int(number.into());
    &i32 => IntOrString: |number| IntOrString::Int(*number);
    &str => IntOrString: |text| IntOrString::String(text.to_owned());
    String => IntOrString: IntOrString::String;
    &String => IntOrString: |text| IntOrString::String(text.clone());
    Timestamp => Time: Time;
    Timestamp => MicroTime: MicroTime;
    Vec<u8> => ByteString: ByteString;
    &[u8] => ByteString: |bytes| ByteString(bytes.to_owned());
    Value => RawExtension: RawExtension;
    Value => JSON: JSON;
}

// `b"…"`. No text becomes bytes: in a manifest it would be base64.
#[diagnostic::do_not_recommend]
impl<const N: usize> crate::resource::FieldValue<ByteString> for &[u8; N] {
    fn into_field(self) -> ByteString {
        ByteString(self.to_vec())
    }
}
