//go:build !linux

package workspace

import "testing"

func smallDisk(t *testing.T, _ string) { t.Skip("a small disk is mounted on Linux only") }
