#!/bin/sh
# Before the package is removed (Debian: remove, RPM: 0), but not before an upgrade.
set -e
case "${1-}" in
remove | 0) [ ! -d /run/systemd/system ] || systemctl disable --now reverie.service || true ;;
esac
