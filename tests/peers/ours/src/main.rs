//! The driver over windlass: the cache alone, or a controller whose reconcile reads its object.
//!
//! Everything is at its default but for what a mode says; the runtime has two threads, as many as the
//! rivals get.

mod kinds;
mod queue;
mod subject;

use std::io;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use measure::{Args, Kind, Meter};

use kinds::Widget;
use subject::Ours;

fn main() -> io::Result<()> {
    let args = Args::read();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let meter = Arc::new(Meter::default());
    match (args.kind, args.mode.as_str()) {
        (Kind::Pod, "compact") => measure_as::<Pod>(&args, &meter, &runtime),
        (Kind::Widget, "compact") => measure_as::<Widget>(&args, &meter, &runtime),
        (kind, mode) => Err(io::Error::other(format!("no mode {mode:?} for {kind:?}"))),
    }
}

fn measure_as<K: kinds::Read>(
    args: &Args,
    meter: &Arc<Meter>,
    runtime: &tokio::runtime::Runtime,
) -> io::Result<()> {
    let mut ours = Ours::<K>::new(args, meter, runtime)?;
    measure::run(args, meter, &mut ours)
}
