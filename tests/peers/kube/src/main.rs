//! The driver over kube-rs: a plain reflector, or a `Controller` whose reconcile reads the object.
//!
//! Modes: `default` (lists in pages of 500), `streaming` (streaming lists), `stripped` (managed
//! fields are removed after decoding; reflector and controller).

mod kinds;
mod subject;

use std::io;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use measure::{Args, Kind, Meter};

use kinds::Widget;
use subject::Theirs;

fn main() -> io::Result<()> {
    let args = Args::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let meter = Arc::new(Meter::default());
    match args.kind {
        Kind::Pod => measure_as::<Pod>(&args, &meter, &runtime),
        Kind::Widget => measure_as::<Widget>(&args, &meter, &runtime),
    }
}

fn measure_as<K: kinds::Read>(
    args: &Args,
    meter: &Arc<Meter>,
    runtime: &tokio::runtime::Runtime,
) -> io::Result<()> {
    let mut theirs = Theirs::<K>::new(args, meter, runtime)?;
    measure::run(args, meter, &mut theirs)
}
