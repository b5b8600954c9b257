#!/usr/bin/env bash
# Prints the measures of BENCHMARKS.md: sizes and start-up of a minimal operator and of the embedded
# API server. Builds a scratch project; takes about three minutes on 2 cores.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

website="$root/examples/src/bin/website.rs"
code() { grep -vE '^\s*(//|$)' | wc -l; }
echo "website operator, lines of code: $(sed '/^#\[cfg(test)\]/,$d' "$website" | code)"
echo "its test, lines of code: $(sed -n '/async fn a_website_gets/,/^    }/p' "$website" | code)"

mkdir -p "$work/minimal/src"
cat >"$work/minimal/Cargo.toml" <<TOML
[package]
name = "minimal"
version = "0.0.0"
edition = "2024"
[dependencies]
windlass = { path = "$root/framework" }
k8s-openapi = { version = "0.29", default-features = false, features = ["std", "v1_33"] }
schemars = { version = "1", default-features = false, features = ["derive", "std"] }
serde = { version = "1", features = ["derive"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
[profile.dev]
debug = "line-tables-only"
[profile.release]
lto = "thin"
codegen-units = 1
strip = true
[workspace]
TOML
cat >"$work/minimal/src/main.rs" <<'RUST'
use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Note {
    metadata: ObjectMeta,
    spec: NoteSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct NoteSpec {
    text: String,
}

#[derive(Controller)]
#[controller(for = Note, owns(ConfigMap))]
struct Notes;

impl Reconciler for Notes {
    type Object = Note;

    async fn reconcile(&self, note: &Note, cx: &Context<Self>) -> Result {
        let mut child = ConfigMap::default();
        child.metadata.name = Some(note.name().to_owned());
        child.data = Some([("text".to_owned(), note.spec.text.clone())].into());
        cx.apply_owned(child).await?;
        Ok(Action::done())
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), windlass::Error> {
    Manager::new(Client::infer().await?).leader_election("notes").controller(Notes).run().await.map(|_| ())
}
RUST
cp "$root/Cargo.lock" "$work/minimal/"
cd "$work/minimal"
cargo generate-lockfile --quiet --offline 2>/dev/null || true
packages=$(cargo tree --quiet -e normal,build --target x86_64-unknown-linux-gnu --prefix none --format '{p}' | sed 's/ (.*//' | sort -u | wc -l)
echo "minimal operator, packages in its graph: $packages"
export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$work/target"
TIMEFORMAT='%U %S'
cargo fetch --quiet
cpu=$( { time cargo build --quiet >/dev/null 2>&1; } 2>&1 | tail -1)
echo "minimal operator, clean debug build: $(echo "$cpu" | awk '{ printf "%.0f", $1 + $2 }') CPU-seconds"
cargo build --quiet --release
echo "minimal operator, release binary: $(stat -c %s "$work/target/release/minimal" | awk '{ printf "%.2f MB", $1 / 1e6 }')"

cd "$root"
unset CARGO_TARGET_DIR
cargo build --quiet --release -p windlass-apiserver
server="$root/target/release/windlass-apiserver"
for i in 1 2 3 4 5; do
  start=$(date +%s%N)
  coproc SERVER { exec "$server" --listen 127.0.0.1:0 --kubeconfig "$work/kubeconfig"; }
  pid=$SERVER_PID
  read -r _ <&"${SERVER[0]}"
  end=$(date +%s%N)
  rss=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
  echo "$(((end - start) / 1000)) $rss" >>"$work/server"
  kill "$pid" && wait "$pid" 2>/dev/null || true
done
sort -n "$work/server" | sed -n 3p | awk '{ printf "embedded server, start to ready line: %.1f ms (median of 5)\nembedded server, resident: %.1f MB\n", $1 / 1000, $2 / 1024 }'
