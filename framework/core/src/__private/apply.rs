//! Apply configurations of derived types: the fields that were set, as JSON.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, to_value};

use super::literal::{OptionMarker, Present};
use crate::resource::FieldValue;

/// A value for a field of type `T` in an apply configuration: a whole value, or the apply
/// configuration of `T`.
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` takes no `{Self}`",
    label = "expected a value for `{T}`",
    note = "a nested type has an apply configuration if it derives `ApplyConfiguration`",
    note = "a field takes no `Option`: set the value inside, `if let Some(value) = …`, or leave the field out"
)]
pub trait ApplyValue<T> {
    /// Returns the value as JSON.
    ///
    /// # Errors
    /// The errors of the value's `Serialize`.
    fn into_value(self) -> serde_json::Result<Value>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize, V: FieldValue<T>> ApplyValue<T> for V {
    fn into_value(self) -> serde_json::Result<Value> {
        to_value(self.into_field()).map(|mut value| {
            drop_nulls(&mut value);
            value
        })
    }
}

/// A value for a field of type `T`, which may be another name of an option: then also a value of
/// the type inside. `How` separates both: the compiler finds the matching implementation.
#[diagnostic::on_unimplemented(
    message = "a field of type `{T}` takes no `{Self}`",
    label = "expected a value for `{T}`",
    note = "a nested type has an apply configuration if it derives `ApplyConfiguration`",
    note = "a field takes no `Option`: set the value inside, `if let Some(value) = …`, or leave the field out"
)]
pub trait ApplyAlias<T, How> {
    /// Returns the value as JSON.
    ///
    /// # Errors
    /// The errors of the value's `Serialize`.
    fn into_value(self) -> serde_json::Result<Value>;
}

#[diagnostic::do_not_recommend]
impl<T, V: ApplyValue<T>> ApplyAlias<T, Present> for V {
    fn into_value(self) -> serde_json::Result<Value> {
        ApplyValue::into_value(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T, V: ApplyValue<T>> ApplyAlias<Option<T>, OptionMarker> for V {
    fn into_value(self) -> serde_json::Result<Value> {
        ApplyValue::into_value(self)
    }
}

/// Removes members that are null: an apply names no field that has no value.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The fields of an apply configuration that were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    fields: Map<String, Value>,
    /// The first value that did not become JSON.
    fault: Option<String>,
}

impl Applied {
    /// The fields of an object of that kind and name.
    pub fn object(api_version: &str, kind: &str, name: String) -> Self {
        let mut applied = Self::default();
        let texts = [("apiVersion", api_version), ("kind", kind)];
        let texts = texts.map(|(name, text)| (name.to_owned(), Value::from(text)));
        applied.fields.extend(texts);
        applied.metadata().insert("name".to_owned(), name.into());
        applied
    }

    /// The metadata, to change.
    fn metadata(&mut self) -> &mut Map<String, Value> {
        member(&mut self.fields, "metadata")
    }

    /// Sets a member of the metadata.
    #[must_use]
    pub fn with_metadata(mut self, name: &str, value: String) -> Self {
        self.metadata().insert(name.to_owned(), value.into());
        self
    }

    /// Sets a member of a map of the metadata.
    #[must_use]
    pub fn with_metadata_entry(mut self, map: &str, key: String, value: String) -> Self {
        member(self.metadata(), map).insert(key, value.into());
        self
    }

    /// Keeps the value, or the first fault.
    fn keep(
        &mut self,
        field: &str,
        value: serde_json::Result<Value>,
        put: impl FnOnce(&mut Self, Value),
    ) {
        match value {
            Ok(value) => put(self, value),
            Err(error) => {
                self.fault.get_or_insert_with(|| format!("`{field}` is not JSON: {error}"));
            }
        }
    }

    /// Sets a field.
    #[must_use]
    pub fn with<T>(mut self, name: &'static str, value: impl ApplyValue<T>) -> Self {
        self.keep(name, value.into_value(), |applied, value| {
            applied.fields.insert(name.to_owned(), value);
        });
        self
    }

    /// Sets a field whose type may be another name of an option.
    #[must_use]
    pub fn with_alias<T, How>(
        mut self,
        name: &'static str,
        value: impl ApplyAlias<T, How>,
    ) -> Self {
        self.keep(name, value.into_value(), |applied, value| {
            applied.fields.insert(name.to_owned(), value);
        });
        self
    }

    /// Sets a field that is a list.
    #[must_use]
    pub fn with_list<T, V: ApplyValue<T>>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values: serde_json::Result<_> = values.into_iter().map(V::into_value).collect();
        self.keep(name, values.map(Value::Array), |applied, value| {
            applied.fields.insert(name.to_owned(), value);
        });
        self
    }

    /// Sets a field that is a map.
    #[must_use]
    pub fn with_map<A, B, K: ApplyValue<A>, V: ApplyValue<B>>(
        mut self,
        name: &'static str,
        values: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let values: serde_json::Result<_> = values.into_iter().map(entry).collect();
        self.keep(name, values.map(Value::Object), |applied, value| {
            applied.fields.insert(name.to_owned(), value);
        });
        self
    }

    /// Sets the fields of a flattened type.
    #[must_use]
    pub fn with_flattened<T>(mut self, name: &'static str, value: impl ApplyValue<T>) -> Self {
        self.keep(name, value.into_value(), |applied, value| {
            if let Value::Object(fields) = value {
                applied.fields.extend(fields);
            }
        });
        self
    }

    /// Returns the fields.
    ///
    /// # Errors
    /// The first value that did not become JSON.
    pub fn into_value(self) -> serde_json::Result<Value> {
        match self.fault {
            None => Ok(Value::Object(self.fields)),
            Some(fault) => Err(serde::ser::Error::custom(fault)),
        }
    }
}

impl Serialize for Applied {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.fault {
            None => self.fields.serialize(serializer),
            Some(fault) => Err(serde::ser::Error::custom(fault)),
        }
    }
}

/// Returns the object of that name, which is made if there is none.
fn member<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = fields.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("it was made an object"),
    }
}

/// Returns an entry of a map; keys of JSON are texts.
fn entry<A, B>(
    (key, value): (impl ApplyValue<A>, impl ApplyValue<B>),
) -> serde_json::Result<(String, Value)> {
    let key = match key.into_value()? {
        Value::String(key) => key,
        Value::Number(key) => key.to_string(),
        Value::Bool(key) => key.to_string(),
        other => {
            let text = format!("`{other}` is not a key of an object");
            return Err(serde::ser::Error::custom(text));
        }
    };
    Ok((key, value.into_value()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use windlass_macros::{ApplyConfiguration, ConditionType, CustomResource};

    use super::*;
    use crate::conditions::{Conditions, met};
    use crate::resource::{ApplyObject, Resource, StatusPatch};

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Website {
        metadata: ObjectMeta,
        spec: Spec,
        status: Option<Status>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        host: String,
        max_replicas: Option<u16>,
        rules: Option<Vec<Rule>>,
        labels: BTreeMap<String, String>,
        #[serde(flatten)]
        rest: Rest,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
    struct Rule {
        path: String,
        weight: Option<i64>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
    struct Rest {
        mode: Mode,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    enum Mode {
        Fast,
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
    struct Status {
        url: Option<String>,
        conditions: Conditions,
    }

    #[test]
    fn an_apply_configuration_has_what_was_set_and_nothing_else() {
        let whole = Rule { path: "/a".to_owned(), weight: None };
        let spec = SpecApply::new()
            .host("a.example")
            .max_replicas(60_000)
            .rules([whole])
            .labels([("a", "1"), ("b", "2")])
            .rest(RestApply::new().mode(Mode::Fast));
        let site = WebsiteApply::new("home").namespace("shop").label("app", "home").spec(spec);
        let expected = json!({
            "apiVersion": "example.dev/v1",
            "kind": "Website",
            "metadata": { "name": "home", "namespace": "shop", "labels": { "app": "home" } },
            "spec": {
                "host": "a.example",
                "maxReplicas": 60_000,
                "rules": [{ "path": "/a" }],
                "labels": { "a": "1", "b": "2" },
                "mode": "Fast",
            },
        });
        assert_eq!(to_value(&site).unwrap(), expected);
        let rules = SpecApply::new().rules([RuleApply::new().weight(2)]);
        assert_eq!(to_value(rules).unwrap(), json!({ "rules": [{ "weight": 2 }] }));
        assert_eq!(to_value(SpecApply::new()).unwrap(), json!({}));
    }

    #[test]
    fn a_value_that_is_no_json_is_reported_by_the_apply() {
        struct Bad;
        impl ApplyValue<String> for Bad {
            fn into_value(self) -> serde_json::Result<Value> {
                Err(serde::ser::Error::custom("too bad"))
            }
        }
        let site = WebsiteApply::new("home").spec(SpecApply::new().host(Bad));
        let error = to_value(site).unwrap_err().to_string();
        assert!(error.contains("`host` is not JSON: too bad"), "{error}");
    }

    #[test]
    fn the_configuration_belongs_to_the_kind_and_its_status() {
        fn kind<K: Resource<Kind = Website>>(_: impl ApplyObject<K>) {}
        fn patch<P: StatusPatch<Website> + Serialize>(patch: P) -> Value {
            to_value(patch).unwrap()
        }
        kind(WebsiteApply::new("a"));
        let change = StatusApply::new().url("u").conditions([met("Ready", "Serving", "")]);
        assert_eq!(patch(change)["url"], "u");
        assert_eq!(patch(json!({ "url": null })), json!({ "url": null }));
    }

    #[test]
    fn an_enum_gives_conditions_their_types() {
        #[derive(ConditionType)]
        enum Type {
            Ready,
            #[condition("example.dev/Reachable")]
            Reachable,
        }
        let conditions: Conditions =
            [met(Type::Ready, "A", ""), met(Type::Reachable, "B", "")].into_iter().collect();
        assert!(conditions.is_met(Type::Ready) && conditions.is_met("example.dev/Reachable"));
        assert_eq!(conditions.get(&Type::Reachable).unwrap().reason, "B");
    }
}
