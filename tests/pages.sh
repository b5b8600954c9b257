#!/usr/bin/env bash
# Types every command of README, quickstart and tutorial into empty folders, line by line.
# Every line of a block marked `sh` is run literally and must succeed; `TABLE` lists the lines for
# which that is not enough. A new line therefore needs no entry here, and cannot be forgotten.
#
# A page begins in an empty folder. A block is a separate shell, in the folder where the block before
# ended. A paragraph that begins with "Ctrl-C" ends the program that is being served. In the tutorial, a
# `toml` block replaces `Cargo.toml`, the `rust` blocks are, in sequence, `src/main.rs`, and the
# lines of a `text` block must stand in the output of the command before; numbers may differ, and so
# may the rest of a line behind `…`.
#
#     tests/pages.sh          # all pages; needs cargo-generate and kubectl, and ports 6443, 8080, 8081
#     tests/pages.sh PAGE     # one of README.md, quickstart.md, first-operator.md
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cache="${WINDLASS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/windlass}"
# A fixed place, because cargo distinguishes packages by their path: the next run finds the compiled
# code. The place lies outside of the tree: a project inside would be taken for a member of the workspace.
work="${WINDLASS_PAGES:-$cache/pages}"

# folder$ line | how | why
#   serve TEXT   runs until Ctrl-C, the next `serve` or the end of the page; goes on when TEXT is printed; then Ctrl-C
#                must end it with exit code 0
#   local        runs on the server of the served program, in place of a cluster
#   ci TEXT      is not run here, because .ci/run does the same, by a line with TEXT
TABLE='
windlass$ cargo run --bin website | serve Ready after | runs until Ctrl-C
windlass$ cargo run --bin windlass-apiserver -- --listen 127.0.0.1:6443 --kubeconfig dev.kubeconfig | serve ready at | runs until Ctrl-C
windlass$ cargo test | ci cargo test --locked --quiet | takes half an hour
windlass$ tests/kube-apiserver/build.sh | ci kube=$(tests/kube-apiserver/build.sh) | needs Go
windlass$ WINDLASS_TEST_SERVER=real cargo test | ci on_real --lib --bins | takes half an hour
windlass$ WINDLASS_TEST_SERVER=real cargo test -p windlass-tests --test cluster --test real --test remote -- --include-ignored | ci on_real --test cluster --test real --test remote -- --include-ignored | takes half an hour
windlass$ cargo install cargo-generate@0.23.8 --locked | ci tool cargo-generate 0.23.8 cargo-generate | is installed already, without optimization; cargo would build it again
windlass$ KUBECONFIG=~/.kube/config cargo run --bin website | ci on_real --lib --bins | needs a cluster; tests/tests/program.rs runs an operator on one
my-operator$ cargo run | serve Ready after | runs until Ctrl-C
my-operator$ docker build --push --tag registry.example/my-operator:0.1.0 . | ci tests/pages.sh | needs Docker and a registry; tests/template.sh runs the cargo command of the Dockerfile
my-operator$ kubectl apply --server-side --filename deploy/operator.yaml | local | needs a cluster
website-operator$ cargo run | serve Ready after | runs until Ctrl-C
'

fail() { printf 'tests/pages.sh: %s\n' "$*" >&2; exit 1; }

# The row of the table for a line typed in this folder, as `how`; empty if there is none.
row() { awk -F ' [|] ' -v line="$1" '$1 == line { print $2 }' <<<"$TABLE"; }

# Splits a page into files `00.sh`, `01.rust`, ...; continued lines become one.
blocks() { # PAGE FOLDER
  awk -v folder="$2" '
    /^```/ && !open { open = 1; kind = substr($0, 4); sub(/,.*/, "", kind); if (kind == "") kind = "plain"
                      file = sprintf("%s/%02d.%s", folder, number++, kind); printf "" > file; next }
    /^```/ { open = 0; close(file); next }
    open && kind == "sh" && sub(/\\$/, "") { held = held $0; next }
    !open && /^Ctrl-C / { printf "" > sprintf("%s/%02d.stop", folder, number++) }
    open { print held $0 > file; held = "" }' "$1"
}

# The output of a line, without the parts that differ from run to run.
plain() { sed -E 's/[0-9]+(\.[0-9]+)?/N/g; s/[[:space:]]+/ /g; s/^ //; s/ $//'; }

stop() { # ends the served program
  [ -f "$work/pid" ] || return 0
  local pid code=0
  pid=$(cat "$work/pid")
  rm "$work/pid"
  kill -INT -- "-$pid"
  for _ in {1..300}; do [ -s "$work/code" ] && break || sleep 0.2; done
  code=$(cat "$work/code" || echo 'nothing, within a minute')
  [ "$code" = 0 ] || { cat "$work/served"; fail "after Ctrl-C it ended with $code"; }
}
trap 'trap - INT TERM; [ ! -f "$work/pid" ] || kill -KILL -- "-$(cat "$work/pid")"' EXIT

serve() { # LINE TEXT
  stop
  rm -f "$work/code"
  : >"$work/served"
  # A separate process group, as at a terminal, so that it can be sent the signal of Ctrl-C.
  set -m
  (trap : INT; code=0; eval "$1" >>"$work/served" 2>&1 || code=$?; echo "$code" >"$work/code") &
  echo $! >"$work/pid"
  set +m
  until grep -qF -- "$2" "$work/served"; do
    [ ! -f "$work/code" ] || { cat "$work/served"; fail "it ended before it printed \"$2\""; }
    sleep 0.2
  done
  cp "$work/served" "$work/said"
}

type_line() { # LINE
  local line=$1 prompt how printed=
  line=${line//<this repository>/$work/origin/windlass.git}
  line=${line//<the repository>/$work/origin/windlass.git}
  if [ -f "$work/served" ]; then
    printed=$(sed -nE 's/^ *kubeconfig +//p' "$work/served" | head -1)
    line=${line//<the printed path>/$printed}
  fi
  # Without the comment, and without blanks at the end.
  prompt="$(basename "$PWD")\$ $(sed -E 's/[[:space:]]+#.*$//; s/[[:space:]]+$//' <<<"$1")"
  how=$(row "$prompt")
  printf '%s\n' "$prompt"
  printf '%s\n' "$prompt" >>"$work/typed"
  # A project takes the versions that the workspace is tested with.
  if [ -f Cargo.toml ] && [ ! -f Cargo.lock ]; then cp "$root/Cargo.lock" .; fi
  case $how in
    "serve "*) serve "$line" "${how#serve }" ;;
    "ci "*)
      grep -qF -- "${how#ci }" "$root/.ci/run" || fail ".ci/run does not do it: ${how#ci }"
      printf '  not run here: .ci/run does it\n'
      printf '%s\n' "$prompt" >>"$work/elsewhere"
      ;;
    local) (export KUBECONFIG="$printed"; eval "$line") >"$work/said" 2>&1 || { cat "$work/said"; fail "that failed"; } ;;
    # Not in a pipe: `cd` and `export` are for the lines that follow.
    *) eval "$line" >"$work/said" 2>&1 || { cat "$work/said"; fail "that failed"; } ;;
  esac
  if [ -d "$desk/windlass" ] && [ ! -f "$work/dated" ]; then
    # The clone with the content of this tree and the times of the files, so that nothing is compiled again.
    (cd "$root" && git ls-files -z | tar --null --ignore-failed-read -T - -cf - 2>/dev/null) |
      tar -xf - -C "$desk/windlass"
    touch "$work/dated"
  fi
}

shown() { # FILE: its lines are in the last output
  local line
  plain <"$work/said" >"$work/plain"
  while read -r line; do
    line=${line%%…*}
    [ -z "$line" ] || grep -qF -- "$line" "$work/plain" ||
      { cat "$work/said"; fail "this line of a \`text\` block was not printed: $line"; }
  done < <(plain <"$1")
}

page() { # PAGE
  local page=$1 file line name
  name=$(basename "$page")
  printf '\n--- %s\n' "$name"
  rm -rf "$work/blocks"
  mkdir -p "$work/blocks"
  blocks "$page" "$work/blocks"
  for file in "$work"/blocks/*; do
    case $file in
      *.sh)
        # A separate shell; only the folder is kept.
        (
          cd "$(cat "$work/folder")"
          while IFS= read -r line <&3; do
            # A line that a reader does not type: empty, or a comment alone.
            [[ $line =~ ^[[:space:]]*(#|$) ]] || type_line "$line"
          done 3<"$file"
          pwd >"$work/folder"
        )
        ;;
      *.toml) [ "$name" != first-operator.md ] || cp "$file" "$(cat "$work/folder")/Cargo.toml" ;;
      *.rust)
        if [ "$name" = first-operator.md ]; then
          line=$(cat "$work/folder")/src/main.rs
          if [ -f "$work/begun" ]; then echo >>"$line"; else : >"$line"; touch "$work/begun"; fi
          cat "$file" >>"$line"
        fi
        ;;
      *.stop) stop ;;
      *.text) [ "$name" != first-operator.md ] || shown "$file" ;;
      # Commands in a block of another kind would not be typed.
      *.plain)
        if grep -nE '^(\$ )?(cargo|git|kubectl|docker|mdbook) ' "$file"; then
          fail "mark the block with these commands as \`sh\`, in $page"
        fi
        ;;
      *) fail "$page has a block of an unknown kind: ${file##*.}" ;;
    esac
  done
}

start_page() {
  stop
  rm -rf "$desk" "$work/dated" "$work/begun" "$work/served" "$work/said"
  mkdir -p "$desk"
  echo "$desk" >"$work/folder"
}

mkdir -p "$work"
exec 6>"$work/lock"
flock -n 6 || fail "it is running already, in $work"
work=$(cd "$work" && pwd)
desk="$work/desk"
rm -rf "$work/origin" "$work/home" "$work/pid"
mkdir -p "$work/origin" "$work/home" "$work/.cargo"
: >"$work/typed"
: >"$work/elsewhere"
# The source of `git clone`. Changes that are not committed are added to that clone.
git clone --quiet --bare --shared "$root" "$work/origin/windlass.git"
# A reader's machine: no cluster, nothing in the environment; tools and compiled code are kept.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
# cargo-generate asks for a name of the user.
export USER="${USER:-reader}" CARGO_INSTALL_ROOT="$cache/tools" PATH="$cache/tools/bin:$PATH"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}" HOME="$work/home"
unset KUBECONFIG KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT RUST_LOG
# Profiles as in the workspace, so that projects share the compiled dependencies.
cat >"$work/.cargo/config.toml" <<'CONFIG'
[profile.dev]
debug = "line-tables-only"

[profile.dev.package."*"]
debug = false
debug-assertions = false
overflow-checks = false
CONFIG
for program in cargo-generate kubectl; do
  command -v "$program" >/dev/null || fail "$program is needed; .ci/run installs or builds it"
done

wanted=${1:-all}
if [ "$wanted" = all ] || [ "$wanted" = README.md ]; then
  start_page
  page "$root/README.md"
  # The project that the command made has separate commands.
  page "$desk/my-operator/README.md"
  stop
  "$root/tests/template.sh" "$desk/my-operator"
fi
for name in quickstart.md first-operator.md; do
  if [ "$wanted" = all ] || [ "$wanted" = "$name" ]; then
    start_page
    page "$root/book/src/$name"
  fi
done
stop

if [ "$wanted" = all ]; then
  while IFS= read -r line; do
    [ -z "$line" ] || grep -qxF -- "${line%% | *}" "$work/typed" ||
      fail "no page has this line of the table any more: ${line%% | *}"
  done <<<"$TABLE"
fi
printf '\n%s lines typed, %s of them in other steps of .ci/run\n' \
  "$(wc -l <"$work/typed")" "$(wc -l <"$work/elsewhere")"
