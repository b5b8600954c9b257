//! The driver over windlass: the cache alone, or a controller whose reconcile reads the object.
//!
//! All settings have their defaults unless a mode differs; the runtime has a thread for each core,
//! as the rivals have. Unless the mode differs, nothing is logged, and nothing listens for probes
//! and metrics; in the mode `template` all of that is started by the template's
//! `windlass::cli::App`.

mod kinds;
mod queue;
mod subject;

use std::io;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use measure::{Args, Kind, Meter};
use windlass::store::Representation;

use kinds::{PodView, Widget, WidgetView};
use subject::Ours;

fn main() -> io::Result<()> {
    let args = Args::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let meter = Arc::new(Meter::default());
    let form = match args.mode.as_str() {
        // A projection is a type; the cache keeps the bytes of the projection's fields in any case.
        "compact" | "projection" | "template" => Representation::Compact,
        "typed" => Representation::Typed,
        "metadata" => Representation::Metadata,
        "cold" => Representation::Cold,
        mode => return Err(io::Error::other(format!("no mode {mode:?}"))),
    };
    if args.mode == "template" {
        log();
    }
    let is_projection = args.mode == "projection";
    match args.kind {
        Kind::Pod if is_projection => measure_as::<PodView>(&args, form, &meter, &runtime),
        Kind::Pod => measure_as::<Pod>(&args, form, &meter, &runtime),
        Kind::Widget if is_projection => measure_as::<WidgetView>(&args, form, &meter, &runtime),
        Kind::Widget => measure_as::<Widget>(&args, form, &meter, &runtime),
    }
}

/// As `windlass::cli` logs into a file or a collector's pipe.
fn log() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::INFO.into())
        .parse_lossy("");
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .compact()
        .with_target(false)
        .init();
}

fn measure_as<K: kinds::Read>(
    args: &Args,
    form: Representation,
    meter: &Arc<Meter>,
    runtime: &tokio::runtime::Runtime,
) -> io::Result<()> {
    let mut ours = Ours::<K>::new(args, form, meter, runtime)?;
    measure::run(args, meter, &mut ours)
}
