package section

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"reverie"
	"reverie/internal/test/expect"
)

// The modes differ in every tier; the owner's begins like the assistant's, byte for byte.
func TestShippedTemplates(t *testing.T) {
	shippedModes := []string{"assistant", "developer", "planning", "debugger", "user"}
	for tier := 1; tier <= highestTier; tier++ {
		var seen []string
		for _, mode := range shippedModes {
			text := strings.TrimSpace(string(expect.Must(fs.ReadFile(reverie.Data, tierFile(mode, tier)))(t)))
			if again := slices.Contains(seen, text); again != (mode == "user") || mode == "user" && text != seen[0] {
				t.Errorf("%s, tier %d: as another mode: %v", mode, tier, again)
			}
			seen = append(seen, text)
		}
	}
}
