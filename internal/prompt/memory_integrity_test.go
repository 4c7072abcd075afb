package prompt

import (
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestEntriesIntegrity: a list of memories is as trusted as the least trusted of them.
func TestEntriesIntegrity(t *testing.T) {
	for _, c := range []struct {
		of   []trust.Integrity
		want trust.Integrity
	}{{[]trust.Integrity{trust.Owner, trust.User}, trust.User}, {[]trust.Integrity{trust.User, trust.Foreign, trust.Owner}, trust.Foreign}} {
		var entries []memory.Entry
		for _, i := range c.of {
			entries = append(entries, memory.Entry{Text: i.String(), Integrity: i})
		}
		if got := memoryContent(entries, entries, "").integrity; got != c.want {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}
