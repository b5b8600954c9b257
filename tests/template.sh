#!/usr/bin/env bash
# Turns each template into a project, as a user would, then builds it, tests it and prints its
# manifests. Needs cargo-generate on the PATH.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cargo generate --silent --path "$root/templates/operator" --name greeter \
  -d kind=Greeting -d group=example.dev -d windlass="path = \"$root/framework\""
cd greeter
# The versions that the workspace is tested with.
cp "$root/Cargo.lock" .
export CARGO_TARGET_DIR="${TEMPLATE_TARGET_DIR:-$root/target/template}"
# Nobody looks at it with a debugger: half of the time.
export CARGO_PROFILE_DEV_DEBUG=false
cargo test --quiet
cargo run --quiet -- manifests >manifests.yaml
for kind in CustomResourceDefinition ClusterRole Deployment; do
  grep -q "^kind: $kind" manifests.yaml || { echo "the manifests hold no $kind"; exit 1; }
done
cargo build --quiet --no-default-features
cargo run --quiet -- --until-ready
