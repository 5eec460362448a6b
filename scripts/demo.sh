#!/usr/bin/env bash
# The demonstration of `make demo`: the question that Fishplate answers, a program, and the answer for it. A reader of its output alone
# learns what Fishplate is for.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/bin

say() { printf '\n\033[1m%s\033[0m\n' "$1"; printf '%s\n' "${@:2}"; }
[ -t 1 ] || say() { printf '\n'; printf '%s\n' "$@"; }
# A command as its reader would type it, and its output.
show() { printf '\n$ %s\n' "$*"; "$@"; }

say 'Which interconnect pays for my MPI program?' \
  'Fishplate answers this before you buy one. It runs your program, as it is, on modelled machines, in virtual time.'

say 'The program: heat in a plate of 256 x 256 points, 100 steps, on 4 ranks of this computer'
show $bin/mpicc -O2 examples/heat.c -o build/heat -lm
show $bin/mpiexec -n 4 build/heat 256 100

say 'The question: QDR, two rails of QDR, FDR or EDR InfiniBand, with 8 or 16 hosts?' \
  'Its computing is timed here, three times or more. Then it runs on each modelled machine with the timed computing.'
show $bin/fishplate compare --fabrics qdr,2xqdr,fdr,edr -n 8,16 --report build/demo.html build/heat 256 100

say 'The answer is the last paragraph above. The same as a page with pictures:' \
  "file://$PWD/build/demo.html"

say 'What next?' \
  'your program:            build/bin/fishplate compare --fabrics NAME,NAME -n RANKS ./program' \
  'machines:                build/bin/fishplate fabric list' \
  'this computer:           build/bin/fishplate bench latency' \
  'published comparisons:   make stage && build/bin/fishplate study dual-rail'
