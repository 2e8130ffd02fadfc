#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes vtest_384x288_100.mp4 from OpenCV's vtest.avi: its first 100 frames, halved by area averages, gray, encoded
# without loss (the frames decode to exactly what scaling the original gives).
#   data/make_excerpt.sh path/to/vtest.avi
# The original: package opencv-doc of Debian, or samples/data/vtest.avi in OpenCV's repository.
set -euo pipefail
if [[ $# -ne 1 ]]; then
  echo "usage: $0 path/to/vtest.avi" >&2
  exit 2
fi
out="$(dirname "$0")/vtest_384x288_100.mp4"
ffmpeg -nostdin -y -v error -i "file:$1" -map 0:v:0 -an \
  -vf scale=384:288:flags=area,format=gray -frames:v 100 \
  -c:v libx264 -preset veryslow -crf 0 -pix_fmt gray \
  -map_metadata -1 -fflags +bitexact -flags:v +bitexact "$out"
ls -l "$out"
