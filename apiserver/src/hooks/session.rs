//! Questions of a request to webhooks, with their answers.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::storage::StoredObject;

/// A review that a webhook is to answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Name of the webhook; a conversion has none.
    pub(crate) hook: String,
    /// `clientConfig` of the webhook.
    pub(crate) client: Value,
    /// Longest time for the answer.
    pub(crate) timeout: Duration,
    /// The review, without the uid of the request.
    pub(crate) review: Value,
    /// Number that distinguishes a repeated call of the same webhook from the first call.
    pub(crate) round: usize,
}

/// The failure of a call; the texts are those of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The configuration makes no client.
    Client(String),
    /// The call failed.
    Call(String),
    /// The request ran out of time.
    Deadline,
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub(crate) struct HookResponse {
    /// The uid of the question's request.
    pub(crate) uid: String,
    /// The answered review.
    pub(crate) result: Result<Value, CallFailure>,
}

/// A collection that is being deleted, as far as a suspended request has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Metadata of the list that is deleted.
    pub(crate) metadata: Value,
    /// Objects that are still to be deleted.
    pub(crate) rest: VecDeque<Arc<StoredObject>>,
    /// Deleted objects.
    pub(crate) items: Vec<Value>,
    /// Warnings so far.
    pub(crate) warnings: Vec<String>,
}

/// The questions and answers of a request.
#[derive(Debug, Default)]
pub(crate) struct WebhookSession {
    /// Whether webhooks are called: not by the server's own writes, for which no client waits.
    is_open: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Answered questions.
    answered: Vec<(Question, HookResponse)>,
    /// Questions without an answer.
    pending: Vec<(Question, String)>,
    /// Converted objects, by the wanted version and the text of the original.
    converted: HashMap<String, Value>,
    /// Warnings of webhooks, for the client.
    warnings: Vec<String>,
    /// Time of the request, once read.
    now: Option<String>,
    /// Random texts that were drawn, in order.
    drawn: Vec<String>,
    progress: Option<Progress>,
}

impl WebhookSession {
    /// Returns the session of a request, whose webhooks are called.
    pub(crate) fn open() -> Arc<Self> {
        Arc::new(Self { is_open: true, state: Mutex::default() })
    }

    /// Whether webhooks are called.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the answers to questions; `None` if some are still to be given. Each new question
    /// gets a uid from `uid`.
    pub(crate) fn ask(
        &self,
        questions: Vec<Question>,
        uid: impl Fn() -> String,
    ) -> Option<Vec<HookResponse>> {
        let mut state = self.state.lock();
        let mut answers = Vec::new();
        let mut missing = Vec::new();
        for question in questions {
            match state.answered.iter().find(|(known, _)| *known == question) {
                Some((_, answer)) => answers.push(answer.clone()),
                None => missing.push((question, uid())),
            }
        }
        if missing.is_empty() {
            return Some(answers);
        }
        state.pending = missing;
        None
    }

    /// Returns an object that was converted before.
    pub(crate) fn converted(&self, wanted: &str, object: &Value) -> Option<Value> {
        self.state.lock().converted.get(&format!("{wanted} {object}")).cloned()
    }

    /// Keeps a converted object: a verb that runs again after other objects have changed needs no
    /// second conversion of this object.
    pub(crate) fn keep_converted(&self, wanted: &str, object: &Value, made: Value) {
        self.state.lock().converted.insert(format!("{wanted} {object}"), made);
    }

    /// Adds warnings of webhooks.
    pub(crate) fn warn(&self, texts: impl IntoIterator<Item = String>) {
        self.state.lock().warnings.extend(texts);
    }

    /// Takes the warnings; each run of the verb collects them anew.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().warnings)
    }

    /// Whether there are questions without an answer.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state.lock().pending.is_empty()
    }

    /// Takes the questions that have no answer yet.
    pub(crate) fn take_pending(&self) -> Vec<(Question, String)> {
        std::mem::take(&mut self.state.lock().pending)
    }

    /// Adds an answer.
    pub(crate) fn answer(&self, question: Question, answer: HookResponse) {
        self.state.lock().answered.push((question, answer));
    }

    /// Drops all answers: a part of the request is done, and will not run again.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        state.answered.clear();
        state.converted.clear();
    }

    /// Returns the time of the request: a repeated run must make the same object, or the reviews
    /// would never equal the answered ones.
    pub(crate) fn now(&self, read: impl FnOnce() -> String) -> String {
        if !self.is_open {
            return read();
        }
        self.state.lock().now.get_or_insert_with(read).clone()
    }

    /// Returns the random text number `index` of the request, for the same reason.
    pub(crate) fn draw(&self, index: usize, draw: impl Fn() -> String) -> String {
        let mut state = self.state.lock();
        while state.drawn.len() <= index {
            state.drawn.push(draw());
        }
        state.drawn.get(index).cloned().unwrap_or_default()
    }

    /// Takes the progress of a collection's deletion.
    pub(crate) fn take_progress(&self) -> Option<Progress> {
        self.state.lock().progress.take()
    }

    /// Keeps the progress of a collection's deletion for the next run.
    pub(crate) fn keep_progress(&self, progress: Progress) {
        self.state.lock().progress = Some(progress);
    }
}
