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
use windlass::store::Representation;

use kinds::{PodView, Widget, WidgetView};
use subject::Ours;

fn main() -> io::Result<()> {
    let args = Args::read();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let meter = Arc::new(Meter::default());
    let form = match args.mode.as_str() {
        // A projection is a type; the cache keeps the bytes of its fields by itself.
        "compact" | "projection" => Representation::Compact,
        "typed" => Representation::Typed,
        "metadata" => Representation::Metadata,
        "cold" => Representation::Cold,
        mode => return Err(io::Error::other(format!("no mode {mode:?}"))),
    };
    let is_projection = args.mode == "projection";
    match args.kind {
        Kind::Pod if is_projection => measure_as::<PodView>(&args, form, &meter, &runtime),
        Kind::Pod => measure_as::<Pod>(&args, form, &meter, &runtime),
        Kind::Widget if is_projection => measure_as::<WidgetView>(&args, form, &meter, &runtime),
        Kind::Widget => measure_as::<Widget>(&args, form, &meter, &runtime),
    }
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
