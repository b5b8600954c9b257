//! `measure`: prints the figures of a server as JSON, see `measure.py`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use windlass_conformance::measure::{self, Figures};

/// Measures an API server. Without a kubeconfig the embedded one, in this process and on one
/// thread.
#[derive(Debug, Parser)]
struct Arguments {
    /// Access to a server: its first cluster, and the token of its first user.
    #[arg(long, requires = "pid")]
    kubeconfig: Option<PathBuf>,
    /// Process of that server.
    #[arg(long)]
    pid: Option<u32>,
    /// Number of objects of 1 KB that it holds in the end.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
}

/// Runs the program.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(figures) => {
            println!("{}", serde_json::to_string(&figures).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the server of the arguments.
async fn run(arguments: Arguments) -> Result<Figures, String> {
    let (Some(path), Some(pid)) = (arguments.kubeconfig, arguments.pid) else {
        return measure::in_process().await;
    };
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    measure::remote(&text, pid, arguments.objects).await
}
