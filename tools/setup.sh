# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What ./quickstart and ./check share; sourced by them, from the repository's root.

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }

# missing_packages [quick]: the packages of packages.txt that dpkg does not have; quick: without those for ./check alone
missing_packages() {
  local package last='$'
  if [[ "${1:-}" == quick ]]; then last='/^# Only for/'; fi
  while read -r package; do
    if [[ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" != "install ok installed" ]]; then
      printf '%s\n' "$package"
    fi
  done < <(sed -n "1,${last}p" packages.txt | sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d')
}

# install_packages [quick]
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "This is not Debian or Ubuntu: please install what packages.txt names by hand. Continuing."
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    say "All packages are there."
    return
  fi
  say "Missing: ${missing[*]}"
  if (($(id -u) != 0)); then
    if ! command -v sudo >/dev/null; then
      say "To install them this must run as root or with sudo; or run as root: apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  say "Installing them; on a bare machine this takes some minutes."
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >/dev/null
}

# python_environment: .venv/ with what the Python module's build and tests need; fails where it cannot be had.
python_environment() {
  local wanted=python/requirements.txt
  if cmp -s "$wanted" .venv/requirements.txt; then return; fi
  python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check -r "$wanted" &&
    cp "$wanted" .venv/requirements.txt
}

have_nvidia_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }

find_nvcc() { command -v nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && say /usr/local/cuda/bin/nvcc; }; }

# One compiler for each core, but no more than the memory holds (1 GiB each).
build_jobs() {
  local cores memory
  cores="$(nproc)"
  memory="$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo "$cores")"
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}

# json_number FILE KEY: the first number under that key (or first in its list) in a JSON file of this project.
json_number() {
  tr -d '\n' <"$1" | grep -oE "\"$2\": *\[? *-?[0-9][0-9.eE+-]*" | head -n 1 | grep -oE -- '-?[0-9][0-9.eE+-]*$' || true
}

# Three digits of a number; "nan" for none.
rounded() { LC_ALL=C printf '%.3g' "${1:-nan}"; }
