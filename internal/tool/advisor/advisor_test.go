package advisor

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/test/expect"
)

// TestFaultyAdvisors: a file that cannot be used is reported with place and remedy, and logged once; others work.
func TestFaultyAdvisors(t *testing.T) {
	const good = "---\ndescription: Doubts\n---\nYou doubt.\n"
	for file, c := range map[string]struct{ text, want string }{
		"empty/ADVISOR.md":     {"---\nname: empty\n---\n\n", "advisors/empty/ADVISOR.md: there is no text below the fields"},
		"blank/ADVISOR.md":     {"", "advisors/blank/ADVISOR.md: there is no text"},
		"long/ADVISOR.md":      {strings.Repeat("You doubt. ", 1000), "advisors/long/ADVISOR.md: it is longer than 8000 bytes: shorten it"},
		"open/ADVISOR.md":      {"---\nname: open\nYou doubt.\n", "advisors/open/ADVISOR.md:1: the front matter that begins here has no end"},
		"yaml/ADVISOR.md":      {"---\nname: [\n---\nYou doubt.\n", "advisors/yaml/ADVISOR.md:1: the front matter below this line cannot be read"},
		"list/ADVISOR.md":      {"---\nname: list\ndescription: [a, b]\n---\nYou doubt.\n", "advisors/list/ADVISOR.md:3: description must stand there once, as a text"},
		"twice/ADVISOR.md":     {"---\nenabled: true\nenabled: false\n---\nYou doubt.\n", "advisors/twice/ADVISOR.md:3: enabled must stand there once"},
		"key/ADVISOR.md":       {"---\nrole: judge\n---\nYou doubt.\n", "advisors/key/ADVISOR.md:2: there is no such field: the fields are name, description, enabled"},
		"maybe/ADVISOR.md":     {"---\nenabled: maybe\n---\nYou doubt.\n", "advisors/maybe/ADVISOR.md: enabled must be true or false"},
		"other/ADVISOR.md":     {"---\nname: another\n---\nYou doubt.\n", "advisors/other/ADVISOR.md: name must be the same as that of the folder"},
		"my sister/ADVISOR.md": {good, "advisors/my sister/ADVISOR.md: the folder must have a name of the characters A-Z"},
		"small/advisor.md":     {good, "advisors/small/ADVISOR.md: there is no such file: an advisor is a folder with a file ADVISOR.md, in capitals"},
		"loose.md":             {good, "advisors/loose.md/ADVISOR.md: there is no such file"},
		"dir/ADVISOR.md/x":     {good, "advisors/dir/ADVISOR.md: there is no such file"},
	} {
		var log bytes.Buffer
		p := &Panel{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))}
		for name, text := range map[string]string{file: c.text, "sceptic/ADVISOR.md": good, "asleep/ADVISOR.md": "---\nenabled: false\n---\nYou sleep.", ".git/x": ""} {
			path := filepath.Join(p.Dir, folder, name)
			expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
			expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
		}
		for range 2 {
			all := p.List()
			_, faults := Read(p.Dir)
			expect.Equal(t, fmt.Sprint(all), "[sceptic (Doubts)]", file)
			expect.Len(t, faults, 1, file)
			expect.Has(t, faults[0].String(), c.want)
		}
		expect.Equal(t, strings.Count(log.String(), "advisor left out"), 1, file)
	}
}

// TestNoAdvisors: without a folder there is nothing to say.
func TestNoAdvisors(t *testing.T) {
	dir := t.TempDir()
	all, faults := Read(dir)
	expect.False(t, len(all)+len(faults) > 0, "%v %v", all, faults)
	expect.OK(t, os.WriteFile(filepath.Join(dir, folder), nil, 0o600))
	_, faults = Read(dir)
	expect.Has(t, fmt.Sprint(faults), "advisors: cannot be read")
}
