package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reverie/internal/settings"
	"reverie/internal/test/expect"
)

// TestCatalog: people read of every command in docs/manual.md, and in their language from !help.
func TestCatalog(t *testing.T) {
	manual := string(expect.Must(os.ReadFile("../../docs/manual.md"))(t))
	for _, name := range Names() {
		expect.False(t, !strings.Contains(manual, "`!"+name+"`") && !strings.Contains(manual, "`!"+name+" "), "docs/manual.md, Commands in rooms: name `!%s`", name)
		for _, language := range settings.Languages() {
			file := "../../data/messages/" + language + ".txt"
			text := string(expect.Must(os.ReadFile(file))(t))
			expect.False(t, !strings.Contains(text, "\nhelp."+name+": "), "%s: add the line `help.%s: …`", file, name)
		}
	}
}

// TestHelpNamesModes: !help offers the modes that there are, in every language.
func TestHelpNamesModes(t *testing.T) {
	for _, language := range settings.Languages() {
		text := string(expect.Must(os.ReadFile("../../data/messages/" + language + ".txt"))(t))
		_, line, _ := strings.Cut(text, "\nhelp.mode: ")
		line, _, _ = strings.Cut(line, "\n")
		var named []string
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(line, -1) {
			named = append(named, m[1])
		}
		slices.Sort(named)
		expect.NoDiff(t, named, slices.Sorted(slices.Values(settings.ModeNames())))
	}
}
