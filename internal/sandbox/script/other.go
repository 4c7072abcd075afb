//go:build !linux || !(amd64 || arm64)

// Package script runs JavaScript in a confined process, which is not possible on this system.
package script

import (
	"context"
	"time"

	"reverie/internal/sandbox"
)

// Run returns sandbox.ErrUnsupported on this system.
func Run(context.Context, string, time.Duration, string) (sandbox.Result, error) {
	return sandbox.Result{}, sandbox.ErrUnsupported
}
