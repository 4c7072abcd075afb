//go:build !linux || !(amd64 || arm64)

package sandbox

import "context"

// Supported returns ErrUnsupported on this system.
func Supported() error { return ErrUnsupported }

// Available returns ErrUnsupported on this system.
func Available(context.Context, ...string) (level string, err error) { return "", ErrUnsupported }

// Run returns ErrUnsupported on this system.
func Run(context.Context, Spec) (Result, error) { return Result{}, ErrUnsupported }
