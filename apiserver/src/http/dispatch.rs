//! From a route to a verb, and from the answer to a reply in the requested shape.

use std::sync::Arc;
use std::time::Duration;

use super::body::{Feed, Payload, Stream};
use super::codec::{self, Accepted, Framing, ResponseShape};
use super::exchange::{DecodedRequest, Reply};
use super::handler;
use super::paths;
use super::shape::{Rows, check_shape, is_list, shaped};
use super::socket;
use super::verb::Verb;
use crate::core::ServerCore;
use crate::faults::{FaultAction, garble};
use crate::hooks::WebhookSession;
use crate::kinds::Kind;
use crate::names;
use crate::status::{ApiError, FailureSubject};
use crate::storage;
use crate::table;
use crate::verbs::decode::Body;
use crate::verbs::options::{self, DeleteOptions, ListOptions, Query, WriteOptions};
use crate::verbs::subresources::certificates;
use crate::verbs::subresources::connect::{self, ConnectAnswer};
use crate::verbs::suspend::run::RemainingWebhookCalls;
use crate::verbs::{
    self, ObjectResponse, VerbCall, actions, apiservices, create, delete, list, patch, reviews,
    scale, update, watch,
};

/// Longest wait of a read for a version that does not exist yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Executes a request.
pub(crate) async fn run(
    core: &Arc<ServerCore>,
    asked: &DecodedRequest,
    body: &[u8],
) -> Result<Reply, ApiError> {
    if asked.route.is_bare_watch {
        return Ok(paths::bare_watch(&asked.parts.uri));
    }
    if !asked.route.resourceful {
        return paths::serve(core, asked);
    }
    let kind = find(core, asked)?;
    check_timeout(&asked.query)?;
    check_method(asked, &kind)?;
    let headers = &asked.parts.headers;
    let accepted = codec::accept(headers, &kind, &asked.route.verb)?;
    let call = call(asked, kind.clone());
    if connect::is_connection(&call) {
        return connection(core, asked, call).await;
    }
    // The warning about a deprecated version comes before those of the verb.
    let mut warnings: Vec<String> = kind.served.deprecated.iter().cloned().collect();
    if asked.route.verb == Verb::Watch {
        return open_watch(core, asked, &call, accepted, warnings).await;
    }
    let mut more = Vec::new();
    let answer = execute(core, asked, call, body, &mut more).await;
    warnings.extend(more);
    let answer = match answer {
        Ok(answer) => {
            warnings.extend(answer.warnings.iter().cloned());
            answer
        }
        Err(error) => {
            // The reply is made here, and not by the caller, so that a failure keeps the warnings.
            warnings.extend(error.warnings().iter().cloned());
            let failure = Reply::failure(&error, codec::preferred(headers));
            return Ok(Reply { warnings, ..failure });
        }
    };
    reply(core, asked, &kind, accepted, answer, warnings)
}

/// Answers a connection to an endpoint outside of the server, once admission has allowed it.
async fn connection(
    core: &Arc<ServerCore>,
    asked: &DecodedRequest,
    call: VerbCall,
) -> Result<Reply, ApiError> {
    let session = WebhookSession::open();
    let call = VerbCall { session: session.clone(), ..call };
    let mut run = RemainingWebhookCalls::new(session, timeout(&asked.query));
    loop {
        let done = connect::connect(core, &call, &asked.query);
        if !run.goes_on(core).await? {
            return match done? {
                ConnectAnswer::NoLog => Ok(Reply::bytes(204, "", "")),
                ConnectAnswer::Log(log) => Ok(Reply::bytes(200, "text/plain", log)),
                ConnectAnswer::Session(session) => socket::connect(asked, session),
            };
        }
    }
}

/// Returns the kind that a path names, or the answer that there is none.
fn find(core: &ServerCore, asked: &DecodedRequest) -> Result<Arc<Kind>, ApiError> {
    let route = &asked.route;
    let table = core.registry.table();
    // Before the verb is looked at.
    if route.path.contains("//") {
        return Err(paths::no_route(core, &route.path));
    }
    let Some(kind) = table.find(&route.group, &route.version, &route.resource) else {
        // In a built-in group an unknown resource is refused with a Status, in any other group in
        // plain text.
        let known = table.is_builtin_group(&route.group);
        if apiservices::is_remote(core, &route.group, &route.version) {
            return Err(ApiError::no_service());
        }
        return Err(if known { ApiError::no_resource() } else { ApiError::no_path() });
    };
    let served = &kind.served;
    // Also for Namespaces below a namespace: the right in one namespace would act on another.
    let outside = !served.namespaced && route.inside;
    let collected = served.namespaced && route.namespace.is_empty();
    let lists = matches!(route.verb, Verb::List | Verb::Watch);
    // The handler of custom resources refuses these paths in plain text, the router of built-in
    // kinds with a Status.
    if served.custom && (outside || (collected && !lists)) {
        return Err(ApiError::no_path());
    }
    let nowhere = served.namespaced && route.namespace.is_empty() && !route.name.is_empty();
    // The path behind a proxy is that of another server.
    let excess = route.excess && route.subresource != "proxy";
    if outside || excess || (nowhere && !served.custom) {
        return Err(ApiError::no_resource());
    }
    if !route.subresource.is_empty() && kind.subresource(&route.subresource).is_none() {
        return Err(if served.custom {
            ApiError::not_found(FailureSubject::resource(served, &route.name))
        } else {
            ApiError::no_resource()
        });
    }
    // The router has the old form of watches for objects and collections that can be watched.
    let is_watched = served.custom
        || route.subresource.is_empty() && served.verbs.iter().any(|verb| verb == "watch");
    if route.is_old_watch && !is_watched {
        return Err(ApiError::no_resource());
    }
    // Checked for every verb: `..`, for example, or a name with `%` cannot be part of a path.
    let name = route.name.as_str();
    if let Some(why) = names::path(name).first().filter(|_| !name.is_empty()) {
        return Err(ApiError::bad_request(format!("Name parameter invalid: {name:?}: {why}")));
    }
    Ok(kind)
}

/// Refuses verbs that the kind, the subresource or the path does not have.
fn check_method(asked: &DecodedRequest, kind: &Kind) -> Result<(), ApiError> {
    let route = &asked.route;
    let verb = &route.verb;
    let named = !route.name.is_empty();
    let served = &kind.served;
    // HEAD is routed like GET, but only custom resources answer HEAD.
    if *verb == Verb::default() && served.custom {
        return Err(ApiError::verb("", served));
    }
    let is_write = !matches!(asked.parts.method, http::Method::GET | http::Method::HEAD);
    if (is_write && *verb == Verb::Watch)
        || (asked.parts.method == http::Method::HEAD && !served.custom)
        || *verb == Verb::default()
    {
        return Err(ApiError::method());
    }
    // Such kinds have no path with a name.
    if kind.facts.review && named && !is_write {
        return Err(ApiError::no_resource());
    }
    if let Some(sub) = kind.subresource(&route.subresource) {
        let known = sub.verbs.iter().any(|held| held == verb.as_str());
        return match (known, served.custom) {
            (true, _) => Ok(()),
            (false, true) => Err(ApiError::verb(verb.as_str(), served)),
            (false, false) => Err(ApiError::method()),
        };
    }
    if served.custom && !named && matches!(verb, Verb::Update | Verb::Patch) {
        return Err(ApiError::bad_request("name must be provided"));
    }
    let fits = match verb {
        // Custom resources take the name from the body.
        Verb::Create => !named || served.custom,
        Verb::Update | Verb::Patch => named,
        _ => true,
    };
    let placed = !served.namespaced
        || !route.namespace.is_empty()
        || served.custom
        || matches!(verb, Verb::List | Verb::Watch);
    if !fits || !placed || !served.verbs.iter().any(|held| held == verb.as_str()) {
        return Err(ApiError::method());
    }
    Ok(())
}

/// Checks that `timeout` is a duration in Go's notation.
fn check_timeout(query: &Query) -> Result<(), ApiError> {
    let Some(text) = query.get("timeout") else { return Ok(()) };
    let mut rest = text.trim_start_matches(['+', '-']);
    let mut fine = rest == "0";
    while !rest.is_empty() && !fine {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"].into_iter().find(|unit| {
            digits.strip_prefix(unit).is_some_and(|tail| {
                tail.is_empty() || tail.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            })
        });
        match unit {
            Some(unit) if digits.len() < rest.len() => {
                rest = &digits[unit.len()..];
                fine = rest.is_empty();
            }
            _ => break,
        }
    }
    if fine {
        return Ok(());
    }
    let why =
        format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
    Err(ApiError::bad_request(why))
}

/// Returns the time that a request allows for the answer; `None` for no limit.
fn timeout(query: &Query) -> Option<Duration> {
    let mut rest = query.get("timeout")?;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let units =
            [("ms", 0.001), ("us", 0.000_001), ("ns", 0.0), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        seconds += number.parse::<f64>().ok()? * factor;
        rest = tail.strip_prefix(unit)?;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the call that a request describes.
fn call(asked: &DecodedRequest, kind: Arc<Kind>) -> VerbCall {
    let route = &asked.route;
    // The path of a Namespace has its own name in place of a namespace.
    let namespace = if kind.served.namespaced { route.namespace.clone() } else { String::new() };
    VerbCall {
        kind,
        namespace,
        name: route.name.clone(),
        subresource: route.subresource.clone(),
        user: asked.user.clone(),
        options: WriteOptions::default(),
        session: Arc::default(),
    }
}

/// Returns the manager of clients that name none: their agent up to the first slash.
fn default_manager(asked: &DecodedRequest) -> &str {
    let agent = asked.agent.split('/').next().unwrap_or_default();
    if agent.is_empty() { "unknown" } else { agent }
}

/// Runs the verb of a request.
async fn execute(
    core: &Arc<ServerCore>,
    asked: &DecodedRequest,
    call: VerbCall,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    // Waits before the first run: the read state must be as new as requested.
    let options = match asked.route.verb {
        Verb::Get => {
            read_version(core, &asked.query).await?;
            None
        }
        Verb::List => {
            let options = options::list(&asked.query, false)?;
            // A version that is about to exist is waited for; the list refuses a version that does
            // not come.
            wait_for(core, list::awaited(&options)).await;
            Some(options)
        }
        _ => None,
    };
    let session = WebhookSession::open();
    let call = VerbCall { session: session.clone(), ..call };
    let mut run = RemainingWebhookCalls::new(session.clone(), timeout(&asked.query));
    loop {
        warnings.clear();
        let mut work = || once(core, asked, call.clone(), body, options.as_ref(), warnings);
        let done = if asked.route.verb == Verb::Get {
            work()
        } else {
            off_worker(core, asked, work).await
        };
        warnings.extend(session.take_warnings());
        if !run.goes_on(core).await? {
            return done;
        }
    }
}

/// Runs the verb of a request once, with the answers of webhooks that there are.
fn once(
    core: &ServerCore,
    asked: &DecodedRequest,
    call: VerbCall,
    body: &[u8],
    options: Option<&ListOptions>,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    match (&asked.route.verb, options) {
        (Verb::Get, _) if call.subresource == "scale" => scale::get(core, &call),
        (Verb::Get, _) => verbs::get(core, &call),
        (Verb::List, Some(options)) => list::list(core, &call, options),
        (Verb::Create, _) => post(core, asked, call, body, warnings),
        (Verb::Update, _) => put(core, asked, call, body, warnings),
        (Verb::Patch, _) => change(core, asked, call, body, warnings),
        (Verb::Delete | Verb::DeleteCollection, _) => remove(core, asked, call, body, warnings),
        // A watch takes a separate path, and unknown methods were refused before.
        _ => Err(ApiError::method()),
    }
}

/// Runs work that may take long: the duration depends on the stored objects, and not on the body.
async fn off_worker<T>(core: &ServerCore, asked: &DecodedRequest, work: impl FnOnce() -> T) -> T {
    // The text of the user is copied for an observer only.
    let work = || {
        if core.store.is_listened() { storage::by_user(&asked.user.name, work) } else { work() }
    };
    let work = || {
        if !core.audit.is_on() {
            return work();
        }
        let (done, written) = storage::collect(work);
        // Added: a verb that waits for webhooks runs several times, and may write in each.
        asked.written.lock().extend(written);
        done
    };
    core.long_work.run(work).await
}

/// Executes a POST: creates an object, or acts on a subresource.
fn post(
    core: &ServerCore,
    asked: &DecodedRequest,
    mut call: VerbCall,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let body = decoded(asked, &call, body)?;
    call.options = options::write(&asked.query, "CreateOptions", default_manager(asked))?;
    let body = body?;
    if !call.subresource.is_empty() {
        actions::act(core, &call, &body, warnings)
    } else if call.kind.is("", "bindings") {
        actions::binding(core, &call, &body, warnings)
    } else if call.kind.facts.review {
        reviews::review(core, &call, body, warnings)
    } else {
        create::create(core, &call, body, warnings)
    }
}

/// Reads a body. Upstream refuses media types before it reads the options of a write, and the body
/// only after that.
fn decoded(
    asked: &DecodedRequest,
    call: &VerbCall,
    body: &[u8],
) -> Result<Result<Body, ApiError>, ApiError> {
    match codec::decode(&asked.parts.headers, &call.kind, &call.subresource, body) {
        Err(error) if error.code() == 415 => Err(error),
        other => Ok(other),
    }
}

/// Executes a PUT.
fn put(
    core: &ServerCore,
    asked: &DecodedRequest,
    mut call: VerbCall,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let body = decoded(asked, &call, body)?;
    call.options = options::write(&asked.query, "UpdateOptions", default_manager(asked))?;
    let body = body?;
    certificates::may_approve(core, &call)?;
    if call.subresource == "scale" {
        return scale::replace(core, &call, body, warnings);
    }
    update::replace(core, &call, body, warnings)
}

/// Executes a PATCH.
fn change(
    core: &ServerCore,
    asked: &DecodedRequest,
    mut call: VerbCall,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let (form, body) = codec::decode_patch(&asked.parts.headers, &call.kind, body)?;
    call.options = options::write(&asked.query, "PatchOptions", default_manager(asked))?;
    let named = asked.query.get("fieldManager").is_some();
    // Also `false`: the parameter itself is refused.
    let forced = asked.query.get("force").is_some();
    patch::check_options(form, named, forced)?;
    certificates::may_approve(core, &call)?;
    // Upstream reads a patch once it has found the object; only an apply may create one.
    if form != patch::PatchType::Apply || !call.subresource.is_empty() {
        call.find(core)?;
    }
    let body = body?;
    if call.subresource == "scale" {
        return scale::patch(core, &call, form, &body, warnings);
    }
    patch::patch(core, &call, form, &body, warnings)
}

/// Executes a DELETE of an object or of a collection.
fn remove(
    core: &ServerCore,
    asked: &DecodedRequest,
    mut call: VerbCall,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let options = delete_options(asked, &mut call, body)?;
    if asked.route.verb == Verb::Delete {
        return delete::delete(core, &call, &options, warnings);
    }
    let chosen = options::list(&asked.query, false)?;
    delete::collection(core, &call, &chosen, &options)
}

/// Reads the options of a DELETE.
fn delete_options(
    asked: &DecodedRequest,
    call: &mut VerbCall,
    body: &[u8],
) -> Result<DeleteOptions, ApiError> {
    let body = codec::decode_options(&asked.parts.headers, &call.kind, body)?;
    let options = options::delete(&asked.query, &body)?;
    call.options.dry_run = options.dry_run;
    Ok(options)
}

/// Waits for the version that a GET asks for; fails if that version does not come in time.
async fn read_version(core: &ServerCore, query: &Query) -> Result<(), ApiError> {
    let text = query.get("resourceVersion").unwrap_or_default();
    let asked = list::version(text).map_err(ApiError::unclassified)?.unwrap_or(0);
    wait_for(core, asked).await;
    let current = core.store.revision();
    if asked > current { Err(ApiError::future_version(asked, current)) } else { Ok(()) }
}

/// Waits until a revision exists, but no longer than [`PATIENCE`].
async fn wait_for(core: &ServerCore, revision: u64) {
    if revision > core.store.revision() {
        // A timeout is no error here: the read that follows reports the missing version.
        drop(tokio::time::timeout(PATIENCE, core.store.reached(revision)).await);
    }
}

/// Opens a watch and returns a reply whose body consists of the watch's events.
async fn open_watch(
    core: &Arc<ServerCore>,
    asked: &DecodedRequest,
    call: &VerbCall,
    accepted: Accepted,
    warnings: Vec<String>,
) -> Result<Reply, ApiError> {
    // The old form of paths leaves the parameter out: the options are judged as those of a list.
    let is_said = asked.query.flag("watch").unwrap_or(false);
    let mut options = options::list(&asked.query, is_said)?;
    // A watch of a named object is a watch of the collection with a field selector.
    if !call.name.is_empty() {
        // Fields that cannot be selected are refused first.
        list::ListSelection::of(&call.kind, &options)?;
        options.only(&call.name)?;
    }
    list::check_versions(call, &core.store.snapshot(&call.kind.storage).0)?;
    let watcher = watch::open(core, call, &options, &asked.actions)?;
    let feed = Feed {
        watcher,
        kind: call.kind.clone(),
        core: core.clone(),
        accepted,
        rows: Rows::of(&asked.query)?,
        garbled: garbled(asked).map(str::to_owned).collect(),
        framing: if socket::is_wanted(&asked.parts) { Framing::Messages } else { Framing::Chunks },
        begun: false,
        _watching: core.metrics.watch(handler::labels(core, asked)),
    };
    Ok(Reply {
        code: 200,
        media: accepted.format.stream().to_owned(),
        headers: Vec::new(),
        warnings,
        payload: Payload::Stream(Stream::new(feed)),
    })
}

/// Iterates over the names of objects that faults garble.
fn garbled(asked: &DecodedRequest) -> impl Iterator<Item = &str> {
    asked.actions.iter().filter_map(|action| match action {
        FaultAction::Garble(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Returns the reply for an answer, in the requested shape.
fn reply(
    core: &ServerCore,
    asked: &DecodedRequest,
    kind: &Kind,
    accepted: Accepted,
    answer: ObjectResponse,
    warnings: Vec<String>,
) -> Result<Reply, ApiError> {
    let mut value = answer.value;
    for name in garbled(asked) {
        garble(&mut value, name);
    }
    let now = core.clock.seconds();
    // These have no table and no partial form.
    if value["kind"] == "Scale" && accepted.shape == ResponseShape::Table {
        let include = Rows::of(&asked.query)?.include;
        value = table::scale(&kind.served, &value, include, now);
    }
    let alone =
        ["Status", "Scale", "Table", "TokenRequest"].iter().any(|name| value["kind"] == *name);
    let has_rows = !matches!(accepted.shape, ResponseShape::Partial | ResponseShape::PartialList);
    let plain = alone || kind.facts.review && has_rows;
    if !plain {
        check_shape(kind, accepted.shape, is_list(kind, &value))?;
        let rows = if accepted.shape == ResponseShape::Table {
            Rows::of(&asked.query)?
        } else {
            Rows::PLAIN
        };
        value = shaped(kind, accepted, rows, value, now);
    }
    let (bytes, media) = codec::encode(accepted.format, &value);
    Ok(Reply { warnings, ..Reply::bytes(answer.code, media, bytes) })
}
