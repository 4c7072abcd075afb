#!/bin/sh
# After the files are installed: the service's user and folders. Debian says configure, RPM a number.
set -e
getent group reverie >/dev/null || groupadd --system reverie
getent passwd reverie >/dev/null ||
	useradd --system --gid reverie --home-dir /var/lib/reverie --no-create-home --shell /usr/sbin/nologin reverie
chgrp reverie /etc/reverie
install -d -m 0700 -o reverie -g reverie /var/lib/reverie
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart reverie.service || true
fi
if [ ! -e /etc/reverie/config.yaml ]; then
	echo 'Reverie: `reverie init` writes its configuration; `reverie chat` then talks to it here.'
fi
