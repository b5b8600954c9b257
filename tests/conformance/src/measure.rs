//! Times, processor time and memory of a server under writes, watches and lists.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::send::Connection;
use crate::target::Target;

/// Size of the data of an object.
const KIBIBYTE: usize = 1024;
/// Writes that are not counted: code, connection and caches get warm.
const WARM: usize = 200;
/// Writes in sequence.
const POSTS: usize = 2000;
/// Connections that write at the same time.
const WRITERS: usize = 8;
/// Open watches, and writes that all of them see.
const WATCHES: usize = 100;
const SEEN: usize = 200;
/// Objects of the long list, and the number of reads.
const LISTED: usize = 10_000;
const LISTS: usize = 5;
/// Clock ticks of a second in `/proc`.
const TICKS: f64 = 100.0;

/// The figures of a server; absent figures were not measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Median time of a creation, in sequence, in milliseconds.
    pub post_ms: f64,
    /// Creations a second by several connections.
    pub writes_per_second: f64,
    /// Median time of a list of 10,000 objects, in milliseconds.
    pub list_ms: Option<f64>,
    /// Processor time of the server for each delivery to each of 100 watches, in microseconds.
    pub delivery_us: Option<f64>,
    /// Resident memory that all objects took, in MB.
    pub objects_mb: Option<f64>,
    /// Number of those objects.
    pub objects: usize,
}

/// A server's process, as `/proc` shows it.
#[derive(Clone, Copy, Debug)]
struct Process(u32);

impl Process {
    /// Returns user and system time in seconds.
    fn cpu(self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.0);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let after = text.rsplit_once(')').map(|(_, after)| after).unwrap_or_default();
        let ticks =
            after.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / TICKS)
    }

    /// Returns the resident memory in MB.
    fn resident(self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.0);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes = line.split_whitespace().next().and_then(|it| it.parse::<f64>().ok());
        Ok(kilobytes.ok_or("no VmRSS")? / 1024.0)
    }
}

/// A connection with the credentials of the administrator.
struct Client {
    connection: Connection,
    token: String,
}

impl Client {
    async fn open(target: &Target) -> Result<Self, String> {
        let (stream, token) = target.admin().await?;
        let token = token.unwrap_or_default();
        Ok(Self { connection: Connection::new(stream).await?, token })
    }

    /// Returns a request with the credentials.
    fn request(
        &self,
        method: &str,
        path: &str,
        body: String,
    ) -> Result<Request<Full<Bytes>>, String> {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())
    }

    /// Sends a request and returns the size of the answer.
    async fn send(&mut self, method: &str, path: &str, body: String) -> Result<usize, String> {
        let request = self.request(method, path, body)?;
        let answer = self.connection.send(request, None).await?;
        match answer.code {
            200..=299 => Ok(answer.body.len()),
            code => {
                Err(format!("{method} {path}: {code} {}", String::from_utf8_lossy(&answer.body)))
            }
        }
    }

    /// Creates a ConfigMap of a kibibyte.
    async fn create(&mut self, namespace: &str, name: &str) -> Result<(), String> {
        let data = json!({"text": "x".repeat(KIBIBYTE)});
        let body = json!({"metadata": {"name": name}, "data": data}).to_string();
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        self.send("POST", &path, body).await.map(drop)
    }

    async fn namespace(&mut self, name: &str) -> Result<(), String> {
        let body = json!({"metadata": {"name": name}}).to_string();
        self.send("POST", "/api/v1/namespaces", body).await.map(drop)
    }
}

/// Returns the median in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// Creates objects with the numbers of a range by several connections; returns how many a second.
async fn fill(
    target: &Target,
    namespace: &str,
    range: std::ops::Range<usize>,
) -> Result<f64, String> {
    let count = range.len();
    let mut writers = JoinSet::new();
    let begin = Instant::now();
    for writer in 0..WRITERS {
        let mut client = Client::open(target).await?;
        let (namespace, range) = (namespace.to_owned(), range.clone());
        writers.spawn(async move {
            for number in range.skip(writer).step_by(WRITERS) {
                client.create(&namespace, &format!("o-{number}")).await?;
            }
            Ok::<(), String>(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done.map_err(|error| error.to_string())??;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// Measures creations in sequence and at the same time.
async fn writes(target: &Target) -> Result<Figures, String> {
    let mut client = Client::open(target).await?;
    client.namespace("posts").await?;
    let mut times = Vec::new();
    for number in 0..WARM + POSTS {
        let begin = Instant::now();
        client.create("posts", &format!("p-{number}")).await?;
        times.push(begin.elapsed());
    }
    times.drain(..WARM);
    client.namespace("objects").await?;
    let writes_per_second = fill(target, "objects", 0..LISTED).await?;
    Ok(Figures { post_ms: median(times), writes_per_second, ..Figures::default() })
}

/// Returns the median time of a list of 10,000 objects.
async fn lists(target: &Target) -> Result<f64, String> {
    let mut client = Client::open(target).await?;
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let begin = Instant::now();
        let path = "/api/v1/namespaces/objects/configmaps?resourceVersion=0";
        let size = client.send("GET", path, String::new()).await?;
        if size < LISTED * KIBIBYTE {
            return Err(format!("the list has {size} bytes only"));
        }
        times.push(begin.elapsed());
    }
    Ok(median(times))
}

/// Returns the processor time of the server for a delivery: that of writes with watches, without
/// that of as many writes without watches.
async fn deliveries(target: &Target, process: Process) -> Result<f64, String> {
    let mut client = Client::open(target).await?;
    client.namespace("unseen").await?;
    client.namespace("seen").await?;
    let begin = process.cpu()?;
    for number in 0..SEEN {
        client.create("unseen", &format!("u-{number}")).await?;
    }
    let writes = process.cpu()? - begin;
    let mut watches = JoinSet::new();
    for _ in 0..WATCHES {
        let mut watcher = Client::open(target).await?;
        watches.spawn(async move {
            let path = "/api/v1/namespaces/seen/configmaps?watch=true&resourceVersion=0";
            let request = watcher.request("GET", path, String::new())?;
            watcher.connection.watch(request, SEEN).await
        });
    }
    let begin = process.cpu()?;
    for number in 0..SEEN {
        client.create("seen", &format!("s-{number}")).await?;
    }
    while let Some(done) = watches.join_next().await {
        done.map_err(|error| error.to_string())??;
    }
    let all = process.cpu()? - begin;
    Ok((all - writes).max(0.0) * 1e6 / (WATCHES * SEEN) as f64)
}

/// Measures a server in this process, on the threads of the caller's runtime.
///
/// # Errors
/// A request fails.
pub async fn in_process() -> Result<Figures, String> {
    let target = Target::embedded()?;
    let figures = writes(&target).await;
    target.stop().await;
    figures
}

/// Measures the server of a kubeconfig, which runs in the process `id`, up to a number of objects.
///
/// # Errors
/// The server cannot be reached, a request fails, or the process cannot be looked at.
pub async fn remote(kubeconfig: &str, id: u32, objects: usize) -> Result<Figures, String> {
    let target = Target::remote(kubeconfig)?;
    let process = Process(id);
    let before = process.resident()?;
    let mut figures = writes(&target).await?;
    figures.list_ms = Some(lists(&target).await?);
    figures.delivery_us = Some(deliveries(&target, process).await?);
    fill(&target, "objects", LISTED..objects.max(LISTED)).await?;
    figures.objects_mb = Some(process.resident()? - before);
    figures.objects = objects.max(LISTED) + WARM + POSTS + 2 * SEEN;
    Ok(figures)
}
