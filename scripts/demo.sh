#!/usr/bin/env bash
# The demonstration of `make demo`: `demo.sh here`, which needs no study, then `demo.sh fortran`, and `demo.sh study`, which needs the
# whole command.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/bin

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

here() {
  say 'An MPI program, compiled by mpicc, on 4 ranks: examples/pi.c'
  $bin/mpicc -O2 examples/pi.c -o build/pi -lm
  $bin/fishplate run -n 4 build/pi

  say 'Latency between two ranks'
  $bin/fishplate bench latency -m 1:1048576 --plot build/latency.svg

  say 'Bandwidth between two ranks'
  $bin/fishplate bench bw -m 1:1048576 --plot build/bandwidth.svg

  say 'The same program on a modelled machine, in virtual time'
  $bin/fishplate run -n 4 --fabric qdr build/pi
}

# A first compiler has the modules built for it, which takes some seconds.
fortran() {
  $bin/mpifort -modules >/dev/null || return 0
  say 'A Fortran program on 4 ranks, with sections of arrays: examples/heat.f90'
  $bin/mpifort -O2 examples/heat.f90 -o build/heat-fortran
  $bin/fishplate run -n 4 build/heat-fortran 512 100
}

study() {
  say 'A study: four designs of an RDMA channel on the cluster of 2003 (some 20 seconds)'
  $bin/fishplate study rdma-channel --out build/plots

  say "Pictures: $PWD/build/latency.svg, $PWD/build/bandwidth.svg, and those above"
}

"$1"
