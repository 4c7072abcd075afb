package dream

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/memory"
	"reverie/internal/skill"
)

const longLine = "How to water the plants in the office on the third floor, the plants on the balcony, and the plants in the hall of the office, without ever drowning any of the plants"

// newSkills is a world with skills that nobody has touched for long, except new.md, and
// people who talk on 12 days of the last three months.
func newSkills(t *testing.T) (c *choreWorld, dir string) {
	t.Helper()
	c = newChores(t)
	c.now = time.Now()
	dir = filepath.Join(c.dir, "skills")
	for name, text := range map[string]string{
		"dusty.md": "How to dust shelves\n\nFrom top to bottom.\n", "folder/SKILL.md": "How to fold paper\n\nTwice.\n", "folder/more.txt": "more\n", "shipped.md": "It came along\n\nSo it stays.\n",
		"called.md": "---\ntriggers: kettle\n---\nHow to descale the kettle\n\nVinegar.\n", "read.md": "How to read maps\n\nNorth is up.\n", "task.md": "How to brew\n\nSlowly.\n",
		"new.md": "Something new\n\nJust written.\n", "plants.md": longLine + "\n\nIn the morning.\n",
	} {
		at := c.now.AddDate(0, 0, -200)
		if name == "new.md" {
			at = c.now.AddDate(0, 0, -5)
		}
		writeSkill(t, filepath.Join(dir, name), text, at)
	}
	c.d.cfg.Skills = skill.Open(dir)
	c.d.cfg.Default = fstest.MapFS{"skills/shipped.md": {Data: []byte("It came along\n")}, taskFile: {Data: []byte("{content}")}}
	message := func(days int, role, sender, text, calls string) {
		c.exec(`INSERT INTO message (room, conversation, role, event_id, sender, text, calls, at) VALUES (?, 1, ?, ?, ?, ?, ?, ?)`,
			room, role, fmt.Sprint("$", days, role), sender, text, calls, c.now.AddDate(0, 0, -days).UnixMilli())
	}
	message(300, "user", owner, "how do I dust shelves, and fold paper?", "")
	message(290, "assistant", "", "", `[{"id":"1","name":"read_file","arguments":"{\"path\":\"skills/dusty.md\"}"}]`)
	for i := range 12 {
		message(20+i, "user", owner, []string{"hello", "my KETTLE is full", "I dusted something"}[i%3], "")
	}
	message(15, "assistant", "", "", `[{"id":"1","name":"read_file","arguments":"{\"path\":\"data/skills/read.md\"}"},{"id":"2","name":"read_file","arguments":"{\"path\":\"skills/plants.md\"}"}]`)
	c.add("do as data/skills/task.md says", nil)
	return c, dir
}

// writeSkill writes a file as if at that time.
func writeSkill(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
	if err != nil {
		t.Fatal(err)
	}
}

// TestSkills: of what nobody used for 90 days it is told, once; not of what somebody wrote of late,
// what is used, and what came with the program. Nor is it told where people talked on few days.
func TestSkills(t *testing.T) {
	for days, want := range map[int][]string{daysInUse: {"dusty", "folder"}, daysInUse - 1: nil} {
		c, dir := newSkills(t)
		c.d.cfg.Ask = nil
		c.exec(`UPDATE message SET at = 1 WHERE sender <> '' AND at > ? AND id NOT IN (SELECT id FROM message WHERE sender <> '' ORDER BY at DESC LIMIT ?)`, c.now.Add(-unused).UnixMilli(), days)
		r := c.dream(Options{Phases: []Phase{Skills}})
		var got []string
		for _, p := range r.Proposals {
			got = append(got, strings.TrimPrefix(p.item, "skills/"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d days: %s", days, diff)
		}
		if _, err := os.Stat(filepath.Join(dir, "dusty.md")); err != nil {
			t.Error(err)
		}
		if r := c.dream(Options{Phases: []Phase{Skills}}); len(r.Proposals) != 0 {
			t.Errorf("told again: %+v", r.Proposals)
		}
	}
}

// TestTwins: skills that are about the same are proposed, once, and stay.
func TestTwins(t *testing.T) {
	c, dir := newSkills(t)
	for _, name := range []string{"tea", "brew"} {
		text := "How to make tea\n\nBoil fresh water, warm the pot, add three spoons, wait four minutes, pour. (" + name + ")\n"
		writeSkill(t, filepath.Join(dir, name+".md"), text, c.now)
	}
	c.d.cfg.Ask = nil
	r := c.dream(Options{Phases: []Phase{Skills}})
	if n := len(r.Proposals); n != 3 || !strings.Contains(r.Proposals[n-1].Text.String(), "data/skills/brew.md and data/skills/tea.md") {
		t.Errorf("%+v", r.Proposals)
	}
	if _, err := os.Stat(filepath.Join(dir, "tea.md")); err != nil {
		t.Error(err)
	}
	if r := c.dream(Options{Phases: []Phase{Skills}}); len(r.Proposals) != 0 {
		t.Errorf("proposed again: %+v", r.Proposals)
	}
}

// TestSkillsOfOthers: skills of different readers are not compared, no model is asked about
// them, and they are not told to others.
func TestSkillsOfOthers(t *testing.T) {
	c, dir := newSkills(t)
	at := c.now.AddDate(0, 0, -200)
	write := func(place, text string) { writeSkill(t, filepath.Join(dir, place), text, at) }
	const ann, eve, room = "users/@ann=3ax", "users/@eve=3ax", "rooms/!group"
	for folder, canary := range map[string]string{ann: "ANN", eve: "EVE", room: "ROOM"} {
		write(folder+"/plants.md", "---\nintegrity: user\nwritten_by: \"@x:x\"\ntriggers: hello\n---\n"+longLine+" "+canary+"\n\nIn the morning.\n")
		write(folder+"/tea.md", "How to make tea\n\nBoil fresh water, warm the pot, add three spoons, wait four minutes, pour. ("+folder+")\n")
	}
	write(ann+"/tea-2.md", "How to make tea\n\nBoil fresh water, warm the pot, add three spoons, wait four minutes, pour. (again)\n")
	r := c.dream(Options{Phases: []Phase{Skills}})
	r.Proposals = slices.DeleteFunc(r.Proposals, func(p Proposal) bool { return p.other == "" })
	if len(r.Proposals) != 1 || r.Proposals[0].Scope != "private:@ann:x" || !strings.Contains(r.Proposals[0].Text.String(), ann+"/tea.md and data/skills/"+ann+"/tea-2.md") {
		t.Errorf("%+v", r.Proposals)
	}
	for _, asked := range c.asked {
		if strings.Contains(asked, "ANN") || strings.Contains(asked, "EVE") || strings.Contains(asked, "ROOM") {
			t.Errorf("a model is asked about skills: %s", asked)
		}
	}
	say := func(text string, args ...string) string { return text + " " + strings.Join(args, " ") }
	told := r.Digest(say, func(s memory.Scope) bool { return s == memory.Shared || s == memory.Private("@eve:x") })
	if strings.Contains(told, "ANN") || strings.Contains(told, "tea-2") {
		t.Errorf("%s", told)
	}
}
