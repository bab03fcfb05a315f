#!/bin/sh
if [ $# -ne 2 ] || [ ! -d "$1" ]; then
  echo "usage: backup.sh SOURCE TARGET (SOURCE is a folder)" >&2
  exit 2
fi
case $2 in
  /*) target=$2 ;;
  *) target=$PWD/$2 ;;
esac
cd -- "$1" || exit 2
find . -type d -name cache ! -path . -prune -o -type f ! -name '*.tmp' -exec sh -c '
  target=$1
  shift
  for file; do
    folder=${file%/*}
    mkdir -p -- "$target/$folder" && cp -- "$file" "$target/$file"
  done' sh "$target" {} +
