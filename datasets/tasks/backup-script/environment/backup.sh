#!/bin/sh
for f in `find $1 -type f`; do
  mkdir -p $2/`dirname $f`
  cp $f $2/$f
done
