//go:build !linux

package store_test

import "testing"

func smallDisk(t *testing.T) string {
	t.Skip("mounting a small disk is written for Linux only")
	return ""
}
