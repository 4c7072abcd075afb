package discover

import (
	"net/netip"
	"strings"
)

// IsLocal reports whether host is this machine.
func IsLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && (addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified())
}
