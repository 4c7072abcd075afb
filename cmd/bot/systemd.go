package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/pace"
)

// reportToSystemd tells systemd that the service is ready after the first sync, and that it is alive after each
// pass of the sync loop. Without systemd it does nothing. See sd_notify(3).
func reportToSystemd(ctx context.Context, client *matrix.Client, log *slog.Logger) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	tell := func(state string) {
		if err := sendDatagram(socket, state); err != nil {
			log.Warn("systemd was not told the state of the service", "state", state, "err", err)
		}
	}
	told, wait := int64(0), time.Second
	for pace.Pause(ctx, nil, wait) == nil {
		passes, synced := client.SyncProgress()
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

func sendDatagram(socket, text string) error {
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return errors.Join(err, conn.Close())
}

// renamingWriter writes `bot …` in sentences under the name by which the program was started. A package may
// install it as reverie.
type renamingWriter struct {
	w    io.Writer
	name string
}

func (r renamingWriter) Write(b []byte) (int, error) {
	if _, err := r.w.Write(bytes.ReplaceAll(b, []byte("`bot "), []byte("`"+r.name+" "))); err != nil {
		return 0, err
	}
	return len(b), nil
}
