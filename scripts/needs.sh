#!/usr/bin/env bash
# Installs the packages of the named commands that are missing, on Debian and Ubuntu: needs.sh cc python3 ...
set -euo pipefail

declare -A package=([cc]=gcc [c++]=g++ [python3]=python3 [valgrind]=valgrind [unzip]=unzip [ip]=iproute2 [ssh]=openssh-client [sshd]=openssh-server
  [autoreconf]=autoconf [libtoolize]=libtool [zlib.h]=zlib1g-dev
  [qemu-aarch64]=qemu-user [qemu-aarch64-static]=qemu-user-static [aarch64-linux-gnu-gcc]=gcc-aarch64-linux-gnu [aarch64-linux-gnu-g++]=g++-aarch64-linux-gnu
  [aarch64-linux-gnu-gfortran]=gfortran-aarch64-linux-gnu)
missing=()
for command in "$@"; do
  # A name that ends in .h is a header.
  [[ $command == *.h && -e /usr/include/$command ]] && continue
  command -v "$command" >/dev/null || missing+=("${package[$command]:-$command}")
done
# A compiler needs the C library's headers; mpi4py is fetched by pip and built in a virtual environment.
[[ " $* " == *" cc "* && ! -e /usr/include/stdio.h ]] && missing+=(libc6-dev)
[[ " $* " == *" aarch64-linux-gnu-gcc "* && ! -e /usr/aarch64-linux-gnu/include/stdio.h ]] && missing+=(libc6-dev-arm64-cross)
if [[ " $* " == *" python3 "* ]] && ! python3 -c 'import ensurepip, pip, venv' 2>/dev/null; then
  missing+=(python3-venv python3-dev python3-pip)
fi
command -v cargo >/dev/null || {
  echo "needs.sh: no cargo: install Rust first (apt-get install rustup, then rustup default stable)" >&2
  exit 1
}
((${#missing[@]})) || exit 0

sudo=()
((EUID == 0)) || sudo=(sudo)
echo "installing ${missing[*]}: ${sudo[*]} apt-get install"
command -v apt-get >/dev/null || {
  echo "needs.sh: this is no Debian or Ubuntu: install ${missing[*]} yourself" >&2
  exit 1
}
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null 2>&1 || {
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" apt-get install -y -qq "${missing[@]}" >/dev/null
}
