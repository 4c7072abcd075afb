// Package systemd tells systemd the state of the service; see sd_notify(3).
package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"reverie/internal/pace"
)

// Report tells systemd that the service is ready once it has synced, and that it is alive whenever passes has
// grown, until ctx ends. socket is the value of NOTIFY_SOCKET; without one it does nothing.
func Report(ctx context.Context, socket string, progress func() (passes int64, synced bool), log *slog.Logger) error {
	if socket == "" {
		return nil
	}
	tell := func(state string) {
		if err := send(socket, state); err != nil {
			log.Warn("systemd was not told the state of the service", "state", state, "err", err)
		}
	}
	told, wait := int64(0), time.Second
	for pace.Pause(ctx, nil, wait) == nil {
		passes, synced := progress()
		if synced && wait == time.Second {
			tell("READY=1")
			wait = 10 * time.Second
		}
		if passes > told { // a loop that hangs is restarted
			tell("WATCHDOG=1")
			told = passes
		}
	}
	tell("STOPPING=1")
	return nil
}

func send(socket, text string) error {
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return errors.Join(err, conn.Close())
}
