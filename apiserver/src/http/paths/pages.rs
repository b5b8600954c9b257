//! Pages about the server itself: `/flagz` and `/statusz`, as texts and in versioned forms.

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::clock;
use crate::core::ServerCore;
use crate::http::codec::{self, AcceptEntry, Format};
use crate::http::exchange::{DecodedRequest, Reply};
use crate::status::ApiError;

/// Media types of the pages.
const FORMS: [&str; 3] = ["application/json", "application/yaml", "text/plain"];
/// Group of the versioned forms.
const GROUP: &str = "config.k8s.io";
/// Name of the component, and of the object in the versioned forms.
const COMPONENT: &str = "apiserver";
/// Head of a text.
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerPage {
    /// The flags of the server.
    Flags,
    /// Versions, age and paths of the server.
    State,
}

impl ServerPage {
    /// Returns the name of the page in paths and texts, and the kind of the versioned forms.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Flags => ("flagz", "Flagz"),
            Self::State => ("statusz", "Statusz"),
        }
    }
}

/// Answers a page in the form that the client accepts.
pub(super) fn serve(
    core: &ServerCore,
    asked: &DecodedRequest,
    page: ServerPage,
) -> Result<Reply, ApiError> {
    let entries = codec::entries(&asked.parts.headers);
    let chosen = match entries.as_slice() {
        [] => Some((None, String::new())),
        all => all.iter().find_map(|entry| form(entry, page)),
    };
    let Some((format, version)) = chosen else {
        let error = ApiError::not_acceptable(&FORMS);
        return Ok(Reply::failure(&error, failure_format(&asked.parts.headers)));
    };
    let (name, kind) = page.names();
    let Some(format) = format else {
        return Ok(Reply::bytes(200, "text/plain; charset=utf-8", text(core, page)));
    };
    let mut object = json!({
        "kind": kind, "apiVersion": format!("{GROUP}/{version}"), "metadata": {"name": COMPONENT},
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut object, content(core, page)) {
        all.extend(more);
    }
    let (bytes, media) = codec::encode(format, &object);
    let media = format!("{media};g={GROUP};v={version};as={kind}");
    let mut reply = Reply::bytes(200, &media, bytes);
    if version == "v1alpha1" {
        reply.warnings.push(format!(
            "This version of the {name} endpoint is deprecated. Please use a newer version."
        ));
    }
    Ok(reply)
}

/// Head of the answers about profiles.
const PROFILES: &str = "/debug/pprof/";
/// Page about profiles, of which there are none.
const NO_PROFILES: &str = "<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/<br>
<br>
This server has no profiles.<br>
</body>
</html>
";
/// Page about flags that can be set while the server runs, of which there are none.
const NO_FLAGS: &str = "<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
</table>
<br>
full flags configurable<br>
</body>
</html>
";

/// Answers the pages for debugging. There is neither a profiler nor a flag that could be set, and
/// the pages say so.
pub(super) fn debug(asked: &DecodedRequest, part: &str) -> Option<Reply> {
    let page = |text: &'static str| Reply::bytes(200, "text/html; charset=utf-8", text);
    let path = asked.route.path.as_str();
    match part {
        "flags" => Some(page(NO_FLAGS)),
        "pprof" if path == PROFILES => Some(page(NO_PROFILES)),
        "pprof" if path.starts_with(PROFILES) => {
            let mut reply = Reply::text(404, "Unknown profile\n");
            reply.headers.push(("x-go-pprof", "1".to_owned()));
            Some(reply)
        }
        "pprof" => {
            let is_read = matches!(asked.parts.method, Method::GET | Method::HEAD);
            let text = if is_read { "<a href=\"/debug/pprof/\">Found</a>.\n\n" } else { "" };
            let media = if is_read { "text/html; charset=utf-8" } else { "" };
            let mut reply = Reply::bytes(302, media, text);
            reply.headers.push(("location", PROFILES.to_owned()));
            Some(reply)
        }
        _ => None,
    }
}

/// Returns the format of a failure: pages have no protobuf.
fn failure_format(headers: &HeaderMap) -> Format {
    match codec::preferred(headers) {
        Format::Protobuf => Format::Json,
        format => format,
    }
}

/// Returns the format that an entry accepts, `None` for the text, and the version; no value if the
/// page has no such form.
fn form(entry: &AcceptEntry, page: ServerPage) -> Option<(Option<Format>, String)> {
    let [kind, group, version] = ["as", "g", "v"].map(|name| entry.parameter(name));
    if [kind, group, version].iter().all(|part| part.is_empty()) {
        return matches!(entry.media(), "text/plain" | "text/*" | "*/*")
            .then(|| (None, String::new()));
    }
    let is_known =
        (kind, group) == (page.names().1, GROUP) && ["v1alpha1", "v1beta1"].contains(&version);
    let format = entry.format().filter(|format| *format != Format::Protobuf);
    is_known.then_some((Some(format?), version.to_owned()))
}

/// Returns the fields of a page besides kind and metadata.
fn content(core: &ServerCore, page: ServerPage) -> Value {
    match page {
        ServerPage::Flags => {
            json!({"flags": flags(core).into_iter().collect::<serde_json::Map<_, _>>()})
        }
        ServerPage::State => {
            let elapsed = core.clock.elapsed().as_secs();
            let since = i64::try_from(elapsed).unwrap_or(0).saturating_neg();
            json!({
                "startTime": core.clock.rfc3339_after(since), "uptimeSeconds": elapsed,
                "goVersion": "go1.26", "binaryVersion": "1.36.3", "emulationVersion": "1.36",
                "paths": PATHS,
            })
        }
    }
}

/// Paths of the state page.
const PATHS: [&str; 7] =
    ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];

/// Returns the flags of kube-apiserver that say the same of this server, sorted.
fn flags(core: &ServerCore) -> Vec<(String, Value)> {
    let issuer = format!("[{}]", core.issuer.url());
    [
        ("allow-privileged", "true"),
        ("authorization-mode", "[RBAC]"),
        ("enable-admission-plugins", "[]"),
        ("service-account-issuer", issuer.as_str()),
        ("service-cluster-ip-range", "10.0.0.0/24"),
        ("service-node-port-range", "30000-32767"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), Value::from(value)))
    .collect()
}

/// Returns a page as a text.
fn text(core: &ServerCore, page: ServerPage) -> String {
    let mut text = format!("\n{COMPONENT} {}\n{WARNING}\n", page.names().0);
    match page {
        ServerPage::Flags => {
            for (name, value) in flags(core) {
                text.push_str(&format!("{name}={}\n", value.as_str().unwrap_or_default()));
            }
        }
        ServerPage::State => {
            let content = content(core, page);
            let field = |name: &str| content[name].as_str().unwrap_or_default().to_owned();
            let up = core.clock.elapsed().as_secs();
            let since = clock::parse(&field("startTime")).unwrap_or_default();
            let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
            text.push_str(&format!(
                "\nStarted: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nGo version: {}\n\
                 Binary version: {}\nEmulation version: {}\nPaths: {}\n",
                clock::unix_date(since),
                field("goVersion"),
                field("binaryVersion"),
                field("emulationVersion"),
                PATHS.join(" ")
            ));
        }
    }
    text
}
