//! Listeners that report their events to the book: the only place that knows the calls of a cache.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use windlass::informer::{Change, Informer, Registration};
use windlass::store::{Cached, Store};

use super::Ledger;
use super::content::{Content, uid_number};
use super::kinds::Subject;
use crate::oracle::{Event, Scope, Shown, Violation, decodes};

/// Behaviour of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Well-behaved.
    Prompt,
    /// Panics once in that many calls.
    Panics(u64),
    /// Blocks the thread for that time at each call.
    Slow(Duration),
    /// Receives everything again after each such period.
    Resyncs(Duration),
}

/// Returns the version of a cached object.
pub(super) fn shown<K: Subject>(cached: &Cached<K>) -> Shown {
    let metadata = cached.metadata();
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or_default();
    Shown {
        uid: uid_number(metadata.uid()),
        version: number(Some(metadata.resource_version())),
        serial: number(metadata.label("serial")),
    }
}

/// Checks that an object which decodes is whole, and that an object which does not decode cannot
/// (G-C9: a bad object stops no other; G-C1: a cache shows the server's states).
pub(super) fn look_inside<K: Subject>(cached: &Cached<K>) -> Result<(), Violation> {
    let content = Content { serial: shown(cached).serial };
    let object = cached.get();
    let error = object.as_ref().err().map(ToString::to_string);
    decodes("a decoded object", K::is_bad(content), error.as_deref())?;
    let Ok(object) = object else { return Ok(()) };
    let padding = object.metadata().annotations.iter().flatten().find(|(key, _)| *key == "padding");
    let owner = object.metadata().owner_references.iter().flatten().next();
    let is_whole = object.held() == Some((content.serial, &*content.shard()))
        && padding.map(|(_, text)| text) == Some(&content.padding())
        && owner.map(|owner| &owner.uid) == content.owner().as_ref();
    if is_whole {
        return Ok(());
    }
    let text = format!("it is no state of the server: {:?}", object.held());
    Err(Violation::new("G-C1", "a decoded object", text))
}

struct Ear {
    ledger: Ledger,
    number: usize,
    observer: String,
    manner: Manner,
    calls: AtomicU64,
    is_called: AtomicBool,
}

impl Ear {
    fn deliver<K: Subject>(&self, store: &Store<K>, change: &Change<K>) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_called.swap(true, Ordering::SeqCst) {
            let text = "called while it was being called";
            self.ledger.book().broken(Violation::new("G-C6", &self.observer, text));
        }
        let (object, event) = match change {
            Change::Added { new, .. } => (new, Event::Added(shown(new))),
            Change::Updated { new, .. } if change.is_resync() => (new, Event::Resync(shown(new))),
            Change::Updated { old, new } => {
                (new, Event::Updated { old: shown(old), new: shown(new) })
            }
            Change::Deleted { last, .. } => (last, Event::Deleted(shown(last))),
        };
        let key = object.key();
        let view = store.get_seen(key).map(|seen| shown(&seen));
        let namespace = key.namespace().unwrap_or_default();
        self.ledger.book().deliver(self.number, namespace, key.name(), event, Some(view));
        if call.is_multiple_of(8)
            && let Err(violation) = look_inside(object)
        {
            self.ledger.book().broken(violation);
        }
        if let Manner::Slow(pause) = self.manner {
            std::thread::park_timeout(pause);
        }
        self.is_called.store(false, Ordering::SeqCst);
        if let Manner::Panics(every) = self.manner
            && call.is_multiple_of(every)
        {
            // Without the message that `panic!` prints.
            resume_unwind(Box::new("a listener's panic"));
        }
    }
}

/// Adds a listener; returns the listener's number in the book.
pub(super) fn listen<K: Subject>(
    informer: &Informer<K>,
    ledger: &Ledger,
    observer: &str,
    scope: &Scope,
    manner: Manner,
) -> (usize, Registration) {
    let number = ledger.book().listener(K::KIND, observer, scope.clone());
    let ear = Arc::new(Ear {
        ledger: ledger.clone(),
        number,
        observer: observer.to_owned(),
        manner,
        calls: AtomicU64::new(0),
        is_called: AtomicBool::new(false),
    });
    let store = informer.store();
    let listen = match manner {
        Manner::Resyncs(period) => informer.listen().resync(period),
        _ => informer.listen(),
    };
    let registration = listen.name(observer).on_change(move |change| ear.deliver(&store, change));
    (number, registration)
}
