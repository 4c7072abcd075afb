// Package hosts reads the names by which our own servers are asked.
package hosts

import (
	"net"
	"strings"
)

// Name returns a host in lower case, without its port and brackets.
func Name(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
