//! The program in a process of its own, and a small client for sockets and pipes.

// Each test program uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

/// A folder that is removed with its test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-apiserver-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The program, which ends with its test.
pub struct Program {
    process: Child,
    /// Host and port.
    pub address: String,
    pub kubeconfig: Kubeconfig,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns the command of the program with a free port and a kubeconfig in the folder.
pub fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass-apiserver"));
    command.args(["--listen", "127.0.0.1:0", "--kubeconfig"]).arg(folder.path("kubeconfig"));
    command.args(arguments);
    command
}

impl Program {
    /// Starts the program and waits until it is ready; returns its errors if it ends instead.
    pub fn try_start(folder: &Folder, arguments: &[&str]) -> Result<Self, String> {
        let mut command = command(folder, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(rest) = line.strip_prefix("windlass-apiserver ready at https://") else {
            let mut text = String::new();
            process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
            assert!(!process.wait().unwrap().success(), "{text}");
            return Err(text);
        };
        let address = rest.split(',').next().unwrap().to_owned();
        let kubeconfig = Kubeconfig::read(&folder.path("kubeconfig"));
        Ok(Self { process, address, kubeconfig, stdout })
    }

    pub fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::try_start(folder, arguments).unwrap()
    }

    /// Ends the program at once, as a power failure of the process.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends the program in order, and returns the rest of its output.
    pub fn terminate(mut self) -> String {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        rest
    }

    /// Returns a connection with the token of a kubeconfig.
    pub async fn client(&self) -> Client {
        self.client_with(&self.kubeconfig, None).await.unwrap()
    }

    /// Returns a connection that trusts a kubeconfig's authority, with its token unless there is an
    /// identity.
    pub async fn client_with(
        &self,
        kubeconfig: &Kubeconfig,
        identity: Option<(&str, &str)>,
    ) -> Result<Client, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(kubeconfig.authority.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            Some((certificate, key)) => {
                let chain = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let stream = tokio::net::TcpStream::connect(&self.address).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect("localhost".try_into().unwrap(), stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let mut client = Client::on(stream).await;
        client.token = identity.is_none().then(|| kubeconfig.token.clone());
        Ok(client)
    }
}

/// The parts of a kubeconfig that tests use.
#[derive(Clone)]
pub struct Kubeconfig {
    pub text: String,
    /// Certificate of the authority, in PEM.
    pub authority: String,
    /// Certificate and key of the first user, in PEM.
    pub certificate: String,
    pub key: String,
    pub token: String,
}

impl Kubeconfig {
    pub fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap())
    }

    pub fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let pem = |name: &str| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(field(name)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        Self {
            authority: pem("certificate-authority-data:"),
            certificate: pem("client-certificate-data:"),
            key: pem("client-key-data:"),
            token: field("token:"),
            text: text.to_owned(),
        }
    }
}

/// A client on one connection.
pub struct Client {
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    /// Bearer token of each request.
    pub token: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub text: String,
    pub value: Value,
}

impl Reply {
    pub fn version(&self) -> u64 {
        version(&self.value)
    }
}

/// Returns the version of an object or list.
pub fn version(value: &Value) -> u64 {
    value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

impl Client {
    pub async fn on(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let io = TokioIo::new(stream);
        let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        Self { sender, token: None }
    }

    pub async fn open(
        &mut self,
        method: &str,
        url: &str,
        body: impl Into<Bytes>,
    ) -> hyper::Result<http::Response<Incoming>> {
        self.open_with(method, url, &[], body).await
    }

    pub async fn open_with(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> hyper::Result<http::Response<Incoming>> {
        let mut request = http::Request::builder().method(method).uri(url).header("host", "x");
        let media =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        request = request.header("content-type", media);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await?;
        self.sender.send_request(request.body(Full::new(body.into())).unwrap()).await
    }

    pub async fn try_send(
        &mut self,
        method: &str,
        url: &str,
        body: &Value,
    ) -> hyper::Result<Reply> {
        self.try_send_with(method, url, &[], body).await
    }

    pub async fn try_send_with(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> hyper::Result<Reply> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.open_with(method, url, headers, body).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Reply { code, text, value })
    }

    pub async fn send(&mut self, method: &str, url: &str, body: Value) -> Reply {
        self.try_send(method, url, &body).await.unwrap()
    }

    pub async fn get(&mut self, url: &str) -> Reply {
        self.send("GET", url, Value::Null).await
    }

    pub async fn post(&mut self, url: &str, body: Value) -> Reply {
        self.send("POST", url, body).await
    }
}

/// Events of a watch, line by line.
pub struct Events {
    body: Incoming,
    read: Vec<u8>,
}

impl Events {
    pub fn of(response: http::Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), read: Vec::new() }
    }

    /// Returns the next event; `None` at the end, however it comes.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.ok()?;
            self.read.extend_from_slice(frame.data_ref()?);
        }
    }
}
