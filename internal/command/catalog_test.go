package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// TestCatalog: people read of every command in README.md, and in their language from !help.
func TestCatalog(t *testing.T) {
	readme := string(expect.Must(os.ReadFile("../../README.md"))(t))
	languages := expect.Must(filepath.Glob("../../data/messages/*.txt"))(t)
	expect.False(t, len(languages) < 7, "only %d languages", len(languages))
	for _, name := range Names() {
		expect.False(t, !strings.Contains(readme, "`!"+name+"`") && !strings.Contains(readme, "`!"+name+" "), "README.md, In the room: name `!%s`", name)
		for _, file := range languages {
			text := string(expect.Must(os.ReadFile(file))(t))
			expect.False(t, !strings.Contains(text, "\nhelp."+name+": "), "%s: add the line `help.%s: …`", file, name)
		}
	}
}
