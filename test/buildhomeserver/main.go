// Buildhomeserver builds the homeserver of `make try` and the end-to-end tests into bin/homeserver,
// unless it is up to date. Run it from the repository's root.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"reverie/internal/matrix/homeserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := homeserver.Build(ctx, ".", filepath.Join("bin", "homeserver"), os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
