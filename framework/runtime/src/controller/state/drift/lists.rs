//! Items of lists with several owners, as `FieldsV1` names them: by keys (`k:`) or by value (`v:`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Longest value in the name of an item within a path.
const LONGEST: usize = 64;

/// The form in which items are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemNaming {
    /// By some of their members.
    Keys,
    /// By their value: the list is a set.
    Values,
}

/// The owned items of a list.
pub(super) struct OwnedItems<'a> {
    kind: ItemNaming,
    /// Names of the members that tell items apart, in order; none for a set.
    names: Vec<String>,
    /// The fields of each item, by identity.
    owned: BTreeMap<String, &'a Value>,
}

impl<'a> OwnedItems<'a> {
    /// Reads the items; `None` when they are not understood.
    pub(super) fn of(fields: &'a Map<String, Value>) -> Option<Self> {
        let mut items =
            Self { kind: ItemNaming::Values, names: Vec::new(), owned: BTreeMap::new() };
        for (at, (key, below)) in fields.iter().filter(|(key, _)| *key != ".").enumerate() {
            let (kind, text) = match key.split_at_checked(2)? {
                ("k:", text) => (ItemNaming::Keys, text),
                ("v:", text) => (ItemNaming::Values, text),
                _ => return None,
            };
            let value: Value = serde_json::from_str(text).ok()?;
            if at == 0 {
                items.kind = kind;
                if let (ItemNaming::Keys, Value::Object(keys)) = (kind, &value) {
                    items.names = keys.keys().cloned().collect();
                    items.names.sort_unstable();
                }
            }
            let is_like_first = kind == items.kind
                && (kind == ItemNaming::Values
                    || value.as_object().is_some_and(|keys| keys.len() == items.names.len()));
            let identity = items.identity(&value).filter(|_| is_like_first)?;
            items.owned.insert(identity, below);
        }
        Some(items)
    }

    pub(super) fn kind(&self) -> ItemNaming {
        self.kind
    }

    pub(super) fn len(&self) -> usize {
        self.owned.len()
    }

    /// Returns the identity of an item among the others; `None` if the item lacks a key.
    fn identity(&self, item: &Value) -> Option<String> {
        if self.kind == ItemNaming::Values {
            return Some(item.to_string());
        }
        let keys = self.names.iter().map(|name| item.get(name).map(Value::to_string));
        Some(keys.collect::<Option<Vec<_>>>()?.join(","))
    }

    /// Returns identity and fields of an item of the child, if owned.
    pub(super) fn find(&self, item: &Value) -> Option<(&str, &'a Value)> {
        let (identity, fields) = self.owned.get_key_value(&self.identity(item)?)?;
        Some((identity, fields))
    }

    /// Returns the identities of the items of the intent that have all keys.
    pub(super) fn named(&self, intent: &[Value]) -> BTreeSet<String> {
        intent.iter().filter_map(|item| self.identity(item)).collect()
    }

    /// Returns identity and fields of an item of the intent, which may lack keys that have
    /// defaults; not among the items that the intent has `named` by all keys, as no two items may
    /// be equal. `None` when the item is not owned, or could be any of several.
    pub(super) fn wanted(
        &self,
        item: &Value,
        named: &BTreeSet<String>,
    ) -> Option<(&str, &'a Value)> {
        if self.identity(item).is_some() {
            return self.find(item);
        }
        let mut fitting = self.owned.iter().filter(|(identity, _)| {
            let values: Vec<Value> =
                serde_json::from_str(&format!("[{identity}]")).unwrap_or_default();
            let mut keys = self.names.iter().zip(&values);
            !named.contains(*identity)
                && values.len() == self.names.len()
                && keys.all(|(name, value)| item.get(name).is_none_or(|wanted| wanted == value))
        });
        let (identity, fields) = fitting.next()?;
        fitting.next().is_none().then_some((identity.as_str(), *fields))
    }

    /// Returns the places of a child's items by identity; `None` when two are equal or an item has
    /// no identity.
    pub(super) fn places(&self, live: &[Value]) -> Option<BTreeMap<String, usize>> {
        let mut places = BTreeMap::new();
        for (place, item) in live.iter().enumerate() {
            if places.insert(self.identity(item)?, place).is_some() {
                return None;
            }
        }
        Some(places)
    }

    /// Returns an item as a step of a path.
    pub(super) fn step(&self, item: &Value) -> String {
        let short = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.chars().take(LONGEST).collect::<String>()
        };
        if self.kind == ItemNaming::Values {
            return format!("[{}]", short(item));
        }
        let keys = self.names.iter().filter_map(|name| {
            let value = item.get(name)?;
            Some(format!("{name}={}", short(value)))
        });
        format!("[{}]", keys.collect::<Vec<_>>().join(","))
    }
}
