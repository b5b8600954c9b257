//! Revisions of one rollout: states that were wanted, as `ControllerRevision`s.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use super::{
    CANARY_PASSED_AT, CANARY_READY_AT, READY_AT, REFUSED_SINCE, ROLLED_BACK, ROLLOUT,
    UPDATED_READY_AT,
};
use crate::controller::{Context, Reconciler};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::Owns;
use windlass_core::resource::ResourceExt;

/// Most revisions whose names begin alike, for different states.
const MOST_COLLISIONS: u32 = 16;

/// A revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revision {
    /// Name of the `ControllerRevision`, and value of the label of its children.
    pub(super) name: String,
    /// Order: the newest is the highest.
    number: i64,
    /// The state, as JSON.
    pub(super) state: Value,
    annotations: BTreeMap<String, String>,
}

impl Revision {
    /// Reads a revision; `None` for an object that is none of this rollout.
    fn of(object: &ControllerRevision, rollout: &str) -> Option<Self> {
        if object.label(ROLLOUT) != Some(rollout) || object.is_terminating() {
            return None;
        }
        Some(Self {
            name: object.name().to_owned(),
            number: object.revision,
            state: object.data.as_ref()?.0.get("state")?.clone(),
            annotations: object.metadata.annotations.clone().unwrap_or_default(),
        })
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Returns a time; one that a person has damaged is none.
    pub(super) fn time(&self, key: &str) -> Option<Timestamp> {
        self.annotation(key)?.parse().ok()
    }

    fn object(&self, rollout: &str) -> ControllerRevision {
        ControllerRevision {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some([(ROLLOUT.to_owned(), rollout.to_owned())].into()),
                annotations: Some(self.annotations.clone()).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(json!({ "state": self.state }))),
            revision: self.number,
        }
    }
}

/// The revisions of a rollout, in order.
pub(super) struct Revisions<'a, C: Reconciler> {
    cx: &'a Context<C>,
    rollout: &'a str,
    all: Vec<Revision>,
}

impl<'a, C: Reconciler + Owns<ControllerRevision>> Revisions<'a, C> {
    /// Reads the revisions from the cache.
    pub(super) fn read(cx: &'a Context<C>, rollout: &'a str) -> Result<Self, Error> {
        let mut all = Vec::new();
        for cached in cx.cached_children::<ControllerRevision>() {
            let object = cached.get().map_err(|error| {
                let text = format!("cannot read revision \"{}\" of the rollout", cached.key());
                Error::new(ErrorKind::Decode, text).because(error)
            })?;
            all.extend(Revision::of(&object, rollout));
        }
        all.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        Ok(Self { cx, rollout, all })
    }

    /// Returns the revision of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Revision> {
        self.all.iter().find(|revision| revision.name == name)
    }

    /// Returns the last revision in which all children were ready, that was not rolled back since,
    /// and that is `usable`.
    pub(super) fn good(&self, usable: impl Fn(&Revision) -> bool) -> Option<&Revision> {
        let was_ready = |revision: &&Revision| {
            let is_good =
                revision.time(READY_AT).is_some() && revision.annotation(ROLLED_BACK).is_none();
            is_good && usable(revision)
        };
        self.all.iter().filter(was_ready).max_by_key(|revision| revision.time(READY_AT))
    }

    /// Returns the revision of a state, the newest one; makes it if there is none.
    pub(super) async fn newest(&mut self, state: &Value) -> Result<Revision, Error> {
        let number = self.all.last().map_or(0, |revision| revision.number).saturating_add(1);
        let wanted = canonical(state);
        let known = self.all.iter().position(|revision| canonical(&revision.state) == wanted);
        if let Some(place) = known {
            let is_newest = place + 1 == self.all.len();
            let mut revision = self.all[place].clone();
            if is_newest {
                return Ok(revision);
            }
            // Wanted again, as by a person who takes a change back: a new try.
            revision.number = number;
            for outcome in [READY_AT, CANARY_READY_AT, CANARY_PASSED_AT, REFUSED_SINCE, ROLLED_BACK]
            {
                revision.annotations.remove(outcome);
            }
            // Children that still have it got it long ago: the deadline is for those that get it
            // now.
            let now = self.cx.clock().wall().to_string();
            revision.annotations.insert(UPDATED_READY_AT.to_owned(), now);
            return self.write(revision).await;
        }
        let name = self.name_for(state)?;
        self.write(Revision { name, number, state: state.clone(), annotations: BTreeMap::new() })
            .await
    }

    /// Sets or removes an annotation of a revision, if that changes it.
    pub(super) async fn annotate(
        &mut self,
        name: &str,
        key: &str,
        value: Option<String>,
    ) -> Result<(), Error> {
        let Some(revision) = self.get(name).filter(|it| it.annotation(key) != value.as_deref())
        else {
            return Ok(());
        };
        let mut revision = revision.clone();
        match value {
            Some(value) => revision.annotations.insert(key.to_owned(), value),
            None => revision.annotations.remove(key),
        };
        self.write(revision).await.map(drop)
    }

    /// Notes the reason for which a revision is rolled back. The time of a refusal goes in the same
    /// write: when a person removes the mark, the revision has its whole deadline again.
    pub(super) async fn roll_back(&mut self, name: &str, reason: &str) -> Result<(), Error> {
        let Some(mut revision) = self.get(name).cloned() else { return Ok(()) };
        revision.annotations.remove(REFUSED_SINCE);
        revision.annotations.insert(ROLLED_BACK.to_owned(), reason.to_owned());
        self.write(revision).await.map(drop)
    }

    /// Deletes the oldest revisions beyond `keep` that are not `used`.
    pub(super) async fn prune(
        &self,
        keep: usize,
        used: impl Fn(&Revision) -> bool,
    ) -> Result<(), Error> {
        let unused: Vec<_> = self.all.iter().filter(|revision| !used(revision)).collect();
        for revision in &unused[..unused.len().saturating_sub(keep)] {
            self.cx.delete_owned::<ControllerRevision>(&revision.name).await?;
        }
        Ok(())
    }

    async fn write(&mut self, revision: Revision) -> Result<Revision, Error> {
        self.cx.apply_owned(revision.object(self.rollout)).await?;
        self.all.retain(|other| other.name != revision.name);
        self.all.push(revision.clone());
        self.all.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        Ok(revision)
    }

    /// Returns a name that no revision of another state has.
    fn name_for(&self, state: &Value) -> Result<String, Error> {
        let (owner, uid) = (self.cx.object().name(), self.cx.object().uid());
        let state = canonical(state);
        // A label, the name's other use, has at most 63 characters.
        let head: String = format!("{owner}-{}", self.rollout).chars().take(46).collect();
        let head = head.to_lowercase().replace('_', "-");
        let head = head.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        for salt in 0..MOST_COLLISIONS {
            // The names of two owners may begin alike.
            let hash = fnv(format!("{salt} {uid} {} {state}", self.rollout).as_bytes());
            let name = format!("{head}-{hash:016x}");
            if self.get(&name).is_none() {
                return Ok(name);
            }
        }
        let text = format!(
            "cannot name a revision of rollout \"{}\": too many have its name",
            self.rollout
        );
        Err(Error::new(ErrorKind::Usage, text))
    }
}

/// The state with whole numbers as integers: API servers write `1.0` as `1`.
fn canonical(state: &Value) -> Value {
    match state {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), canonical(member))).collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                (float as i64).into()
            }
            _ => state.clone(),
        },
        _ => state.clone(),
    }
}

/// The FNV-1a hash. Names are kept in the cluster, so that the hash must be the same in each
/// version of the program.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
