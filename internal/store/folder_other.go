//go:build !linux

package store

import (
	"errors"
	"os"
)

// hold holds nothing: elsewhere a file cannot be held without opening it for reading.
func hold(string) (*os.File, Stamp) { return nil, Stamp{} }

func statHandle(int) (Stamp, error) { return Stamp{}, errors.ErrUnsupported }
