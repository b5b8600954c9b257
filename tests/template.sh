#!/usr/bin/env bash
# Checks a project made from the template beyond the commands of the README, which tests/pages.sh has
# typed there: the manifests, the build of the Dockerfile, the steps of the CI workflow, the other way to
# name windlass.
#
#     tests/template.sh PROJECT    # PROJECT is called `my-operator`
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$1"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
fail() { printf 'tests/template.sh: %s\n' "$*" >&2; exit 1; }
run() { # LINE: prints its output only if it fails
  echo "$1"
  eval "$1" >"$copy/said" 2>&1 || { cat "$copy/said"; fail "that failed"; }
}

for kind in CustomResourceDefinition ClusterRole NetworkPolicy Deployment; do
  grep -q "^kind: $kind" deploy/operator.yaml || fail "the manifests hold no $kind"
done
grep -q "image: registry.example/my-operator:0.1.0" deploy/operator.yaml || fail "not that image"
version=$(cargo run --quiet -- --version)
[ "$version" = "my-operator 0.1.0" ] || fail "--version prints: $version"
help=$(cargo run --quiet -- --help)
[[ $help == "An operator for Greeting objects"* ]] || fail "--help begins otherwise: $help"

# Without Docker: the Dockerfile's own cargo command, with the files that .dockerignore lets through, and by the
# profile that is compiled already.
let_through() { # PATH: the last pattern that matches it or a folder above decides, as Docker does it
  local pattern part allowed=yes
  while IFS= read -r pattern; do
    part=$1
    while [ "$part" != . ]; do
      case $pattern in
        '' | '#'*) ;;
        '!'*) [[ $part != ${pattern#!} ]] || allowed=yes ;;
        *) [[ $part != ${pattern%/} ]] || allowed=no ;;
      esac
      part=$(dirname "$part")
    done
  done < <(cat .dockerignore 2>/dev/null)
  [ "$allowed" = yes ]
}
mkdir "$copy/image"
while IFS= read -r file; do
  if let_through "$file"; then mkdir -p "$copy/image/$(dirname "$file")" && cp "$file" "$copy/image/$file"; fi
done < <(git ls-files --cached --others --exclude-standard)
for source in $(sed -nE 's/^COPY ([^-].*) [^ ]+$/\1/p' Dockerfile); do
  [ -e "$copy/image/$source" ] || fail ".dockerignore hides $source, which the Dockerfile copies"
done
build=$(grep -v '^#' Dockerfile | grep -oE 'cargo build[^&;|\\]*') || fail "the Dockerfile has no cargo build"
[[ $build == *--locked* ]] || fail "the Dockerfile's cargo build is not --locked"
(cd "$copy/image" && run "${build/--release/}")
# By a digest: tags move.
images=$(sed -nE 's/^ARG [A-Z]+_IMAGE=//p' Dockerfile)
[ "$(wc -l <<<"$images")" -ge 2 ] || fail "the Dockerfile has lost an image"
! grep -vE '@sha256:[0-9a-f]{64}$' <<<"$images" || fail "the Dockerfile has images that are not pinned"
grep -q "target/release/my-operator" Dockerfile || fail "the Dockerfile copies another program"

# Each step of the CI workflow but for the image, which needs Docker.
steps=$(sed -n 's/^ *- run: //p' .github/workflows/ci.yml | grep -v '^docker ')
[ "$(wc -l <<<"$steps")" -ge 4 ] || fail "the CI workflow has lost its steps"
while IFS= read -r step <&3; do run "$step"; done 3<<<"$steps"

# For builds that do not see the clone beside the project: windlass by git.
clone=$(cd ../windlass && pwd)
run "cargo generate --silent --path '$root/templates/operator' --destination '$copy' --no-workspace \
  --name by-git --define kind=Greeting --define group=example.dev \
  --define windlass='git = \"file://$clone\"'"
cp "$root/Cargo.lock" "$copy/by-git"
(cd "$copy/by-git" && run "cargo metadata --format-version 1")
# Cargo reads every manifest of a repository, and complains of an invalid manifest, though cargo goes on.
! grep -q '^error' "$copy/said" || { grep -A5 '^error' "$copy/said"; fail "a manifest that cargo cannot read"; }
