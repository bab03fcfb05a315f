#!/bin/sh
# Exit code 0: solved; 1: not solved.
exec python3 "$TESTS/check.py"
