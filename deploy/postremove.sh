#!/bin/sh
# After removal. What it remembers is its owner's and stays; the user stays, too, as files are left.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
case "${1-}" in
purge | 0) [ ! -d /var/lib/reverie ] || echo 'Reverie: its memories are left in /var/lib/reverie; delete the folder if you want them gone.' ;;
esac
