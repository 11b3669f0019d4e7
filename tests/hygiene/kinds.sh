#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kinds.sh [ROOT]: runs the kinds of tests/run that are not part of .ci/run, in a copy of the tree where nothing compiles, downloads or
# measures anything. Each command is replaced by one that checks its arguments: the presets, options of CMake, targets, groups of packages,
# paths, and options of programs and scripts that a kind uses must exist.
source "$(dirname "$0")/common.sh"
[ -e tests/scripts/prepare.sh ] || { finish && exit; }

tree=$(mktemp -d)
trap 'rm -rf "$mistakes" "$tree"' EXIT
export TREE=$tree/clone STUBS=$tree/stubs CMAKE
CMAKE=$(command -v cmake || true)
mkdir -p "$TREE/tests" "$STUBS"
shopt -s dotglob
for entry in *; do case $entry in build | .git | tests | docs) ;; *) ln -s "$PWD/$entry" "$TREE/$entry" ;; esac; done
for entry in tests/*; do case $entry in tests/scripts) cp -r "$entry" "$TREE/tests" ;; *) ln -s "$PWD/$entry" "$TREE/$entry" ;; esac; done
[ ! -d docs ] || cp -r docs "$TREE/docs"

# The replacement of each command, and of each program that a kind builds.
cat >"$STUBS/stub" <<'END'
#!/usr/bin/env bash
name=${0##*/}
refuse() { printf 'REFUSED: %s\n' "$*" >>"$TREE/refused"; echo "REFUSED: $*" >&2; exit 1; }
# declared TARGET: prints the folder whose CMakeLists.txt declares the target.
declared() { (cd "$TREE" && grep -rlE --include=CMakeLists.txt "^ *[a-z_]+\($1( |\)|\$)" src/ tests/*/ examples/ | head -1 | xargs -r dirname); }
place() { mkdir -p "$1" && ln -sf "$STUBS/stub" "$1/$2"; }
# check_options FILE...: the options of this call must be in the files.
check_options() {
  local word
  for word in "${words[@]}"; do
    case $word in --?* | -[a-z]?* | \[*\]) grep -rqF -- "${word%%=*}" "$@" || refuse "$name does not know ${word%%=*}" ;; esac
  done
}
words=("$@")
for word in "${words[@]}"; do
  case $word in "$TREE"/tests/* | "$TREE"/docs/* | "$TREE"/src/* | "$TREE"/examples/*) [ -e "$word" ] || refuse "$name: there is no ${word#"$TREE/"}" ;; esac
done
case $name in
  cmake)
    [ "$1" != --list-presets ] || exec "$CMAKE" --list-presets
    [ "$1" != --preset ] || grep -q "\"name\": \"$2\"" "$TREE/CMakePresets.json" || refuse "there is no preset $2"
    tree= targets=0
    for word in "$@"; do
      case $word in
        -DCMAKE_* | -DBUILD_SHARED_LIBS=* | -DProtobuf_*) ;;
        -D*=*)
          option=${word#-D} option=${option%%=*}
          grep -rqE --include=CMakeLists.txt "(option|OPTION|set)\($option " "$TREE"/CMakeLists.txt "$TREE"/tests/ "$TREE"/tests/*/ "$TREE"/src/ || refuse "CMake has no option $option"
          ;;
        --target) targets=1 ;;
        --*) targets=0 ;;
        *)
          [ "$targets" = 1 ] || continue
          folder=$(declared "$word")
          case $word in
            all | build.ninja) ;;
            stepwell_tool) place "${words[1]}/$folder" stepwell ;;
            *) [ -n "$folder" ] || refuse "there is no target $word"; place "${words[1]}/$folder" "$word" ;;
          esac
          ;;
      esac
    done
    ;;
  python*)
    case $1 in
      -m)
        [ "$2" != venv ] || for one in python pip mkdocs; do place "$3/bin" "$one"; done
        [ "$2" != venv ] || mkdir -p "$3"/lib/python3.0/site-packages/{torch,tensorflow}
        ;;
      -c | -) exit 0 ;;
      *)
        [ -f "$1" ] || refuse "there is no script $1"
        words=("${@:2}")
        # without comments, which may name options that the script does not know
        awk '/^ *#/ { next } /"""/ && !ended { if (gsub(/"""/, "") == 2 || inside) { ended = 1; inside = 0 } else { inside = 1 } next } !inside' "$1" >"$TREE/script"
        check_options "$TREE/script"
        ;;
    esac
    ;;
  node) for word in "$@"; do case $word in tests/*) [ -e "$word" ] || refuse "there is no $word" ;; esac; done ;;
  npm) for one in prettier eslint tsc; do place node_modules/.bin "$one"; done ;;
  dpkg)  # -x PACKAGE ROOT
    mkdir -p "$3"/usr/{lib,include}/aarch64-linux-gnu "$3/usr/lib/aarch64-linux-gnu/cmake/Snappy"
    touch "$3/usr/lib/aarch64-linux-gnu/cmake/Snappy/SnappyConfig.cmake"
    ;;
  apt-get)  # with Dir::Cache, an option of arm64_apt
    cache=$(printf '%s\n' "$@" | sed -n 's/^Dir::Cache=//p')
    [ -z "$cache" ] || touch "$cache/archives/one.deb"
    ;;
  qemu-*) exec "${@:3}" ;;
  cmp) [ ! -e "${@: -1}" ] || exec /usr/bin/cmp "$@"; [ "$1" != -s ] ;;
  fixed_training) touch "$1/events.out.tfevents.1" ;;
  clang++-19) [ "${words[-1]}" != - ] || [[ $(cat) != *trace_recorder::take* ]] ;;  # a source without its locks
  doxygen) [ "$1" != - ] || cat >/dev/null ;;
  pip | mkdocs | prettier | eslint | tsc | codespell | clang-format-19 | run-clang-tidy-19 | debootstrap) ;;
  *)
    folder=${0#"$TREE"/build/} folder=$TREE/${folder#*/} folder=${folder%/*}
    # the sources that CMakeLists.txt lists for the program
    mapfile -t sources < <(cd "$folder" && awk -v name="$name" '$0 ~ "\\(" name "( |$)" { inside = 1 } inside; /\)/ { inside = 0 }' CMakeLists.txt |
      grep -oE '[a-z_/]+[.]cpp' | sort -u | sed "s|^|$folder/|")
    case $folder in */fuzz) ;; *) check_options "${sources[@]:-$folder}" ;; esac
    ;;
esac
END
chmod +x "$STUBS/stub"
for name in cmake ctest python3 node npm dpkg apt-get cmp qemu-aarch64-static doxygen codespell clang-format-19 run-clang-tidy-19 clang++-19 debootstrap; do
  ln -s stub "$STUBS/$name"
done
cat >>"$TREE/tests/scripts/prepare.sh" <<'END'
have() {
  local group
  for group in "$@"; do [ -n "$(sed -n "s/^$group: *//p" "$root/tests/packages.txt")" ] || { echo "REFUSED: there is no group $group of packages" | tee -a "$TREE/refused" >&2; exit 1; }; done
}
configure() { cmake --preset "$@"; }
build() { local preset=$1; shift; cmake --build "$root/build/$preset" ${1:+--target "$@"}; }
END
cat >>"$TREE/tests/scripts/kinds.sh" <<'END'
check() {
  local word
  for word in $(printf '%s\n' "${@:2}" | tr -c 'a-z0-9_-' ' '); do
    case $word in -* | R | LE | example_* | *[^a-z_]*) continue ;; esac
    grep -rqw --include=CMakeLists.txt -- "$word" "$root"/tests/ "$root"/tests/*/ || { echo "REFUSED: no test or label is called $word" | tee -a "$TREE/refused" >&2; exit 1; }
  done
}
END
[ ! -e tests/scripts/chroot.sh ] || cat >>"$TREE/tests/scripts/chroot.sh" <<'END'
make_root() { have bare; chroot=$root/build/chroot is_kept=; mkdir -p "$chroot/opt/clone"; touch "$chroot/opt/printed"; }
in_root() {
  local word
  bash -n -c "$1" || exit 1
  for word in $1; do case $word in tests/*) [ -e "$root/$word" ] || { echo "REFUSED: there is no $word" | tee -a "$TREE/refused" >&2; exit 1; } ;; esac; done
}
END

# Those of .ci/run, and those that need a list of tests from CMake (the sanitizers).
in_ci=" tests ci long release torch torch-package group tensorflow tensorflow-package address threads packages "
kinds=$(sed -n 's/^  \([a-z][a-z0-9-]*\)) .*/\1/p' tests/run)
for script in tests/run tests/scripts/*.sh tests/bench/*.sh .ci/run docs/build examples/run; do
  [ ! -e "$script" ] || bash -n "$script" 2>"$tree/said" || mistake "$script: $(cat "$tree/said")"
done
# try KIND [ARGUMENT...]
try() {
  rm -rf "$TREE/build" "$TREE/refused"
  local code=0
  PATH=$STUBS:$PATH bash "$TREE/tests/run" "$@" </dev/null >"$tree/said" 2>&1 || code=$?
  [ "$code" = 0 ] && [ ! -e "$TREE/refused" ] || mistake "bash tests/run $*: $(cat "$TREE/refused" 2>/dev/null || tail -n 3 "$tree/said")"
}
for kind in $kinds; do
  case "$in_ci" in *" $kind "*) continue ;; esac
  case $kind in
    kills) try kills 1; try kills sweep ;;
    peers) try peers --turns 1 --memory 1 ;;
    suite) try suite trixie ;;
    weights) try weights; try weights big ;;
    with) try with g++; try with clang++ ;;
    *) try "$kind" ;;
  esac
done
finish
