use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    #[schema(pattern = "^[a-z]+$")]
    host: String,
    port: u16,
}

impl TryFrom<String> for Address {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (host, port) = text.split_once(':').unwrap_or((&text, "80"));
        Ok(Self { host: host.to_owned(), port: port.parse()? })
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        format!("{}:{}", address.host, address.port)
    }
}

fn main() {}
