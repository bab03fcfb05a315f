#!/bin/sh
set -e
cp -R "$SOLUTION/files/." .
