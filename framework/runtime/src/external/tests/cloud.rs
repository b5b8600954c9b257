//! A provider in memory, with faults.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::Volume;
use crate::controller::{Context, Failure, Result};
use crate::external::{
    CreateError, CreateOutcome, External, ExternalController, ExternalObject, ExternalState,
    ObservedResource,
};
use windlass_core::resource::ResourceExt;

pub(super) const FINALIZER: &str = "example.dev/volume";
const REFUSAL: &str = "the provider refuses it";

/// Effect of a fault on one call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The call fails without an effect; the caller cannot know that.
    Fail,
    /// The call has its effect, and fails.
    FailAfter,
    /// The provider proves that it did nothing.
    Refuse,
    /// The provider refuses what an earlier call has made just before.
    RefuseAfter,
    /// The call has no effect and never ends.
    Hang,
    /// The call has its effect and never ends.
    HangAfter,
    /// The call takes that long.
    Slow(Duration),
}

/// A volume of the provider.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) owner: String,
    pub(super) token: String,
    pub(super) size: i64,
    /// Observations that still show it after its deletion.
    lingers: Option<u32>,
    /// Observations that do not show it yet.
    hidden: u32,
}

#[derive(Debug, Default)]
pub(super) struct CloudState {
    pub(super) disks: BTreeMap<String, Disk>,
    pub(super) calls: Vec<(&'static str, String, Instant)>,
    /// Tokens of the creations, also of those without an effect.
    pub(super) tokens: Vec<String>,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
    made: usize,
    /// Observations for which a new volume stays hidden.
    pub(super) hides: u32,
    /// Observations that show a deleted volume.
    pub(super) lingers: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cloud(Arc<Mutex<CloudState>>);

impl Cloud {
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut CloudState) -> T) -> T {
        action(&mut self.0.lock())
    }

    /// Adds a fault of the next call of that verb.
    pub(super) fn fault(&self, verb: &'static str, fault: Fault) {
        self.with(|cloud| cloud.faults.entry(verb).or_default().push_back(fault));
    }

    pub(super) fn calls(&self, verb: &str) -> usize {
        self.with(|cloud| cloud.calls.iter().filter(|(called, ..)| *called == verb).count())
    }

    /// Returns the number of volumes, and of those that were ever made.
    pub(super) fn disks(&self) -> (usize, usize) {
        self.with(|cloud| (cloud.disks.len(), cloud.made))
    }

    pub(super) fn tokens(&self) -> Vec<String> {
        self.with(|cloud| cloud.tokens.clone())
    }

    pub(super) fn make(&self, id: &str, size: i64) {
        let disk = Disk { size, ..Disk::default() };
        self.with(|cloud| cloud.disks.insert(id.to_owned(), disk));
    }

    async fn call<T>(
        &self,
        (verb, owner): (&'static str, &str),
        effect: impl FnOnce(&mut CloudState) -> T,
    ) -> Result<T, &'static str> {
        let fault = self.with(|cloud| {
            cloud.calls.push((verb, owner.to_owned(), Instant::now()));
            cloud.faults.get_mut(verb).and_then(VecDeque::pop_front)
        });
        match fault {
            None => Ok(self.with(effect)),
            Some(Fault::Fail) => Err("the provider is away"),
            Some(Fault::FailAfter) => {
                self.with(effect);
                Err("the provider's answer is lost")
            }
            Some(Fault::Refuse) => Err(REFUSAL),
            Some(Fault::RefuseAfter) => {
                self.with(effect);
                Err(REFUSAL)
            }
            Some(Fault::Hang) => pending().await,
            Some(Fault::HangAfter) => {
                self.with(effect);
                pending().await
            }
            Some(Fault::Slow(time)) => {
                tokio::time::sleep(time).await;
                Ok(self.with(effect))
            }
        }
    }
}

/// The kind of external resource.
#[derive(Clone, Debug)]
pub(super) struct Volumes {
    pub(super) cloud: Cloud,
    /// Whether volumes can be found by their token.
    pub(super) searches: bool,
}

type Subject<'a> = ExternalObject<'a, Volume>;

impl External for Volumes {
    type Object = Volume;
    type Handle = i64;
    const FINALIZER: &'static str = FINALIZER;

    async fn observe(&self, volume: &Subject<'_>, id: &str) -> Result<ObservedResource<i64>> {
        let wanted = volume.spec.size;
        let observed = self.cloud.call(("observe", volume.name()), |cloud| {
            let Some(disk) = cloud.disks.get_mut(id) else { return ObservedResource::Missing };
            if disk.hidden > 0 {
                disk.hidden -= 1;
                return ObservedResource::Missing;
            }
            match &mut disk.lingers {
                Some(0) => {
                    cloud.disks.remove(id);
                    return ObservedResource::Missing;
                }
                Some(left) => *left -= 1,
                None => {}
            }
            if disk.size == wanted {
                ObservedResource::UpToDate(wanted)
            } else {
                ObservedResource::Drifted(
                    disk.size,
                    format!("size {} instead of {wanted}", disk.size),
                )
            }
        });
        Ok(observed.await?)
    }

    async fn create(&self, volume: &Subject<'_>, token: &str) -> Result<String, CreateError> {
        assert!(volume.has_finalizer(FINALIZER), "nothing would delete it");
        self.cloud.with(|cloud| cloud.tokens.push(token.to_owned()));
        if volume.spec.size < 0 {
            self.cloud
                .with(|cloud| cloud.calls.push(("refused", volume.name().into(), Instant::now())));
            return Err(CreateError::refused(Failure::terminal(REFUSAL)));
        }
        let created = self.cloud.call(("create", volume.name()), |cloud| {
            cloud.made += 1;
            let id = format!("disk-{}", cloud.made);
            let owner = format!("{}/{}", volume.name(), volume.part());
            let disk = Disk {
                owner,
                token: token.to_owned(),
                size: volume.spec.size,
                hidden: cloud.hides,
                lingers: None,
            };
            cloud.disks.insert(id.clone(), disk);
            id
        });
        created.await.map_err(|error| match error {
            REFUSAL => CreateError::refused(error),
            error => error.into(),
        })
    }

    async fn find_created(&self, volume: &Subject<'_>, token: &str) -> Result<CreateOutcome> {
        if !self.searches {
            return Ok(CreateOutcome::Unknown);
        }
        let found = self.cloud.call(("find", volume.name()), |cloud| {
            let found = cloud.disks.iter().find(|(_, disk)| disk.token == token);
            found.map_or(CreateOutcome::Missing, |(id, _)| CreateOutcome::Created(id.clone()))
        });
        Ok(found.await?)
    }

    async fn update(&self, volume: &Subject<'_>, id: &str, _: &i64) -> Result<()> {
        let size = volume.spec.size;
        let updated = self.cloud.call(("update", volume.name()), |cloud| {
            cloud.disks.get_mut(id).into_iter().for_each(|disk| disk.size = size);
        });
        Ok(updated.await?)
    }

    async fn delete(&self, volume: &Subject<'_>, id: &str, _: &i64) -> Result<()> {
        let deleted = self.cloud.call(("delete", volume.name()), |cloud| {
            let lingers = cloud.lingers;
            if lingers == 0 {
                cloud.disks.remove(id);
            } else if let Some(disk) = cloud.disks.get_mut(id) {
                disk.lingers.get_or_insert(lingers);
            }
        });
        Ok(deleted.await?)
    }

    fn late_initialize(&self, _: &Subject<'_>, size: &i64) -> Option<serde_json::Value> {
        Some(json!({ "size": size + 1, "zone": "north", "sealed": true }))
    }

    async fn report(
        &self,
        state: &ExternalState<i64>,
        cx: &Context<ExternalController<Self>>,
    ) -> Result<()> {
        self.cloud.call(("report", cx.object().name()), |_| ()).await?;
        let mut status = json!({ "id": state.id });
        let before = cx.object().status.as_ref().and_then(|status| status.difference.as_ref());
        if before.is_some() || state.difference.is_some() {
            status["difference"] = json!(state.difference);
        }
        cx.patch_status(status).await?;
        Ok(())
    }
}
