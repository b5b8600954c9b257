//! Plays scripts: sends their requests and keeps the answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use tokio::time::Instant;

use crate::normal::{self, Raw};
use crate::protobuf;
use crate::script::{Answer, FIXTURES, Script, Step, Until};
use crate::send::{Connection, Received};
use crate::target::Target;

/// Time between two repetitions of a request.
const PAUSE: Duration = Duration::from_millis(40);

/// Plays the scripts, some of them at the same time, and returns the answers in normal form.
///
/// # Errors
/// The server cannot be reached.
pub async fn all(
    target: Arc<Target>,
    scripts: Arc<Vec<Script>>,
    at_once: usize,
) -> Result<Vec<Vec<Answer>>, String> {
    let mut answers = vec![Vec::new(); scripts.len()];
    let first = scripts.iter().take_while(|script| script.area == FIXTURES).count();
    for (number, script) in scripts.iter().enumerate().take(first) {
        answers[number] = one(&target, script, number).await?;
    }
    let next = Arc::new(AtomicUsize::new(first));
    let mut players = Vec::new();
    for _ in 0..at_once {
        let (target, scripts, next) = (target.clone(), scripts.clone(), next.clone());
        players.push(tokio::spawn(async move {
            let mut played = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(script) = scripts.get(number) else { break };
                played.push((number, one(&target, script, number).await?));
            }
            Ok::<_, String>(played)
        }));
    }
    for player in players {
        for (number, played) in player.await.map_err(|error| error.to_string())?? {
            answers[number] = played;
        }
    }
    Ok(answers)
}

/// Plays a script; `number` is the script's unique part of names.
pub(crate) async fn one(
    target: &Target,
    script: &Script,
    number: usize,
) -> Result<Vec<Answer>, String> {
    let mut player = Player::new(target, script, number).await?;
    let mut answers = Vec::new();
    for (at, step) in script.steps.iter().enumerate() {
        let played = player.step(step).await;
        answers.push(played.map_err(|error| format!("{}/{at}: {error}", script.id))?);
    }
    Ok(normal::script(&player.unique, answers))
}

/// A script during a play.
struct Player<'a> {
    target: &'a Target,
    /// Connection and token of the administrator.
    admin: (Connection, Option<String>),
    /// Value of `${u}`: the part of names that belongs to the script alone.
    unique: String,
    variables: BTreeMap<String, String>,
}

impl<'a> Player<'a> {
    /// Opens the script's connection.
    async fn new(target: &'a Target, script: &Script, number: usize) -> Result<Self, String> {
        // Fixtures have a name that other scripts know.
        let unique =
            if script.area == FIXTURES { "fixtures".into() } else { format!("zq{number:03}x") };
        let (stream, token) = target.admin().await?;
        let admin = (Connection::new(stream).await?, token);
        let variables = BTreeMap::from([("u".to_owned(), unique.clone())]);
        Ok(Self { target, admin, unique, variables })
    }

    /// Sends a step's request, repeatedly if the step waits.
    async fn step(&mut self, step: &Step) -> Result<Raw, String> {
        let end = Instant::now() + self.target.patience();
        loop {
            let received = self.send(step).await?;
            let text = String::from_utf8_lossy(&received.body);
            let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            let is_met = step.until.as_ref().is_none_or(|until| holds(until, received.code, &body));
            if is_met || Instant::now() > end {
                if !is_met {
                    eprintln!("{}: the awaited answer never came: {}", self.unique, step.request);
                }
                for (name, pointer) in &step.set {
                    let value = body.pointer(pointer).map(plain).unwrap_or_default();
                    self.variables.insert(name.clone(), value);
                }
                return Ok(Raw::new(step, received.code, &received.headers, &received.body));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends a step's request once.
    async fn send(&mut self, step: &Step) -> Result<Received, String> {
        let request = self.request(step)?;
        if step.token.is_some() || step.events.is_some() {
            let stream = match step.token {
                Some(_) => self.target.anonymous().await?,
                None => self.target.admin().await?.0,
            };
            let until = step.events.map(|events| (events, step.last.as_str()));
            let until = until.map(|(events, last)| (events, self.fill(last)));
            return Connection::new(stream).await?.send(request, until).await;
        }
        let mut received = self.admin.0.send(request, None).await?;
        if step.protobuf {
            protobuf::read(&mut received.body);
        }
        if received.code == 0 {
            self.admin.0 = Connection::new(self.target.admin().await?.0).await?;
        }
        Ok(received)
    }

    /// Returns the request of a step with the values of the variables.
    fn request(&self, step: &Step) -> Result<Request<Full<Bytes>>, String> {
        let (method, path) =
            step.request.split_once(' ').ok_or_else(|| format!("no path: {}", step.request))?;
        let body = match (&step.body, &step.raw) {
            (Some(body), _) => self.fill(&body.to_string()),
            (None, Some(raw)) => self.fill(raw),
            (None, None) => String::new(),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(self.fill(path))
            .header("host", "localhost")
            .header("user-agent", "conformance/1");
        let token = step.token.as_ref().map(|token| self.fill(token)).or(self.admin.1.clone());
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(user) = &step.user {
            request = request.header("impersonate-user", self.fill(user));
        }
        for group in &step.groups {
            request = request.header("impersonate-group", self.fill(group));
        }
        let is_json = (step.body.is_some() || step.raw.is_some()).then_some("application/json");
        let is_json = is_json.map(|json| if step.protobuf { protobuf::MEDIA } else { json });
        if let Some(kind) = step.content_type.as_deref().or(is_json) {
            request = request.header("content-type", kind);
        }
        for (name, value) in &step.headers {
            request = request.header(name, self.fill(value));
        }
        let mut body = body.into_bytes();
        if step.protobuf {
            request = request.header("accept", protobuf::MEDIA);
            if let Some(message) = protobuf::written(&body).filter(|_| is_json.is_some()) {
                body = message;
            }
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
    }

    /// Replaces `${name}` by the values of variables, and `<<N*text>>` by N times the text.
    fn fill(&self, text: &str) -> String {
        let mut text = repeated(text);
        for (name, value) in &self.variables {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        text
    }
}

/// Replaces `<<N*text>>` by N times the text.
fn repeated(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<") {
        out.push_str(before);
        let parts = after.split_once(">>").and_then(|(inside, behind)| {
            let (count, part) = inside.split_once('*')?;
            Some((count.parse::<usize>().ok()?, part, behind))
        });
        let Some((count, part, behind)) = parts else {
            out.push_str("<<");
            rest = after;
            continue;
        };
        out.push_str(&part.repeat(count));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Returns a value as the text of a variable.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns whether an answer is the awaited answer.
fn holds(until: &Until, code: u16, body: &Value) -> bool {
    let found = body.pointer(&until.at).unwrap_or(&Value::Null);
    until.code.is_none_or(|wanted| wanted == code) && (until.at.is_empty() || *found == until.is)
}
