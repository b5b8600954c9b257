//! The writer: straight into the server's store, and into the book at the same moment.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass::rng::Rng;
use windlass_apiserver::{ApiServer, Backup};

use super::Ledger;
use super::content::{Content, uid_number};
use super::kinds::{self, GIZMOS, NAMES, definition, object, place};
use crate::oracle::{KeyId, Shown};

/// Namespaces of the objects.
pub(super) const NAMESPACES: [&str; 3] = ["ns-a", "ns-b", "ns-c"];
/// Number of keys of a kind that are written as often as all others together.
const HOT: u64 = 8;

/// Writes objects of all kinds.
#[derive(Debug)]
pub(super) struct Writer {
    server: ApiServer,
    ledger: Ledger,
    dice: Rng,
    /// Number of keys of each kind.
    keys: [u64; NAMES.len()],
    live: Live,
    serial: u64,
    uids: u64,
    pub(super) has_gizmos: bool,
}

/// Uid of each present object, by kind and number of the key.
type Live = BTreeMap<(usize, u64), String>;

/// All state that a restore needs.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) server: Backup,
    live: Live,
    book: Vec<BTreeMap<KeyId, Shown>>,
}

/// A write that was made.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) key: KeyId,
    pub(super) position: u64,
    /// The object with resourceVersion.
    pub(super) object: Value,
}

impl Writer {
    pub(super) fn new(server: &ApiServer, ledger: &Ledger, dice: Rng, keys: u64) -> Self {
        let keys = [keys, keys / 4 + 1, keys / 4 + 1];
        Self {
            server: server.clone(),
            ledger: ledger.clone(),
            dice,
            keys,
            live: Live::new(),
            serial: 0,
            uids: 0,
            has_gizmos: true,
        }
    }

    /// Makes a version or two of a random object of a random kind.
    pub(super) fn write(&mut self) {
        let kind = match self.dice.below(10) {
            0..7 => kinds::GADGETS,
            7..9 if self.has_gizmos => kinds::GIZMOS,
            _ => kinds::CONFIG_MAPS,
        };
        let key = self.choose(kind);
        if !self.live.contains_key(&(kind, key)) {
            self.put(kind, key);
            return;
        }
        match self.dice.below(20) {
            0..14 => {
                self.put(kind, key);
            }
            14..17 => {
                self.remove(kind, key);
            }
            _ => {
                // Gone and back before any watch can see the change.
                self.remove(kind, key);
                self.put(kind, key);
            }
        }
    }

    /// Returns a random key of a kind.
    pub(super) fn choose(&self, kind: usize) -> u64 {
        let all = self.keys[kind];
        let hot = self.dice.below(2) == 0;
        self.dice.below(if hot { all.min(HOT) } else { all })
    }

    fn name(key: u64) -> (&'static str, String) {
        let namespace = NAMESPACES[usize::try_from(key).unwrap_or_default() % NAMESPACES.len()];
        // Short names, long names, and names that begin with others.
        let name = match key % 4 {
            0 => format!("a{key}"),
            1 => format!("a{key}.{}", "long-".repeat(20) + "name"),
            _ => format!("object-{key}"),
        };
        (namespace, name)
    }

    /// Returns the uid of the present object.
    pub(super) fn uid(&self, kind: usize, key: u64) -> Option<&str> {
        self.live.get(&(kind, key)).map(String::as_str)
    }

    /// Returns the key's number in the book, once the key was written.
    pub(super) fn id(&self, kind: usize, key: u64) -> Option<KeyId> {
        let (namespace, name) = Self::name(key);
        self.ledger.book().history(kind).find_key(namespace, &name)
    }

    /// Returns the namespace of a key.
    pub(super) fn namespace(key: u64) -> &'static str {
        Self::name(key).0
    }

    /// Creates or changes an object.
    pub(super) fn put(&mut self, kind: usize, key: u64) -> Option<Written> {
        self.serial += 1;
        let content = Content { serial: self.serial };
        let uid = self.live.get(&(kind, key)).cloned().unwrap_or_else(|| {
            self.uids += 1;
            format!("uid-{:08}", self.uids)
        });
        let (namespace, name) = Self::name(key);
        let mut object = object(kind, namespace, &name, &uid, content);
        let (group, plural) = place(kind);
        let version = self.server.commit(group, plural, namespace, &name, Some(object.clone()))?;
        let shown = Shown { uid: uid_number(&uid), version, serial: self.serial };
        let (id, position) = self.ledger.book().commit(kind, namespace, &name, Some(shown));
        self.live.insert((kind, key), uid);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        Some(Written { key: id, position, object })
    }

    /// Does the same with an object that decodes.
    pub(super) fn put_good(&mut self, kind: usize, key: u64) -> Option<Written> {
        while (Content { serial: self.serial + 1 }).is_bad() {
            self.serial += 1;
        }
        self.put(kind, key)
    }

    /// Deletes an object, if the object exists.
    pub(super) fn remove(&mut self, kind: usize, key: u64) -> Option<(KeyId, u64)> {
        self.live.remove(&(kind, key))?;
        let (namespace, name) = Self::name(key);
        let (group, plural) = place(kind);
        self.server.commit(group, plural, namespace, &name, None)?;
        Some(self.ledger.book().commit(kind, namespace, &name, None))
    }

    /// Removes the definition of gizmos, and so all of them.
    pub(super) fn remove_gizmos(&mut self) {
        let name = format!("gizmos.{}", kinds::GROUP);
        let group = "apiextensions.k8s.io";
        let removed = self.server.delete_object(group, "customresourcedefinitions", "", &name);
        if removed.is_err() {
            return;
        }
        self.has_gizmos = false;
        let gone: Vec<u64> = (0..self.keys[GIZMOS])
            .filter(|key| self.live.remove(&(GIZMOS, *key)).is_some())
            .collect();
        let mut book = self.ledger.book();
        for key in gone {
            let (namespace, name) = Self::name(key);
            book.commit(GIZMOS, namespace, &name, None);
        }
    }

    /// Adds the definition of a custom kind.
    ///
    /// # Errors
    /// The server's answer.
    pub(super) fn define(&mut self, kind: usize) -> Result<(), String> {
        let group = "apiextensions.k8s.io";
        self.server
            .create_object(group, "customresourcedefinitions", "", definition(kind))
            .map_err(|error| format!("cannot define {}: {error}", NAMES[kind]))?;
        self.has_gizmos |= kind == GIZMOS;
        Ok(())
    }

    /// Returns a snapshot of all objects.
    pub(super) fn backup(&self) -> Snapshot {
        Snapshot {
            server: self.server.backup(),
            live: self.live.clone(),
            book: self.ledger.book().backup(),
        }
    }

    /// Sets the server back to the snapshot.
    pub(super) async fn restore(&mut self, snapshot: &Snapshot) {
        self.ledger.book().restore(&snapshot.book);
        self.live.clone_from(&snapshot.live);
        self.server.restore(&snapshot.server).await;
    }
}
