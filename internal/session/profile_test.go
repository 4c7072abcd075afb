package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/profile"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestProfile: a person's profile is in the prompts of their direct chat and sets its clock, and no other chat has it.
func TestProfile(t *testing.T) {
	w := newWorld(t, t.TempDir())
	in := func(person, room, text string) string {
		t.Helper()
		private := room != "!group"
		return w.deliver(t, chat.Message{Head: chat.Head{Room: room, Sender: person, Private: private, At: time.Now()}, Text: text}).Text
	}
	asked := func(person, room string, parts ...string) string {
		t.Helper()
		in(person, room, "hello")
		expect.Has(t, w.lastAsked(), parts...)
		return w.lastAsked()
	}
	expect.Has(t, in(friend, "!group", "!profile goals canary"), "direct chat")
	expect.Has(t, in(friend, "!friend", "!profile"), "- goals: not set", "`"+profile.RelativePath(friend)+"`")
	expect.Has(t, in(friend, "!friend", "!profile zone Nairobi"), "Name a field", "time zone")
	expect.Has(t, in(friend, "!friend", "!profile time zone Berlim"), "no such time zone")
	asked(friend, "!friend", " UTC]\\nhello")
	expect.Has(t, in(friend, "!friend", "!profile Time  Zone Nairobi"), "Name a field") // one blank, as it is shown
	expect.Has(t, in(friend, "!friend", "!profile Time zone: Nairobi"), "says time zone: Africa/Nairobi")
	expect.Has(t, in(friend, "!friend", "!profile goals the canary\nname: Eve"), "says goals: the canary name: Eve")
	expect.Has(t, in(owner, "!dm", "!profile goals the heron"), "says goals: the heron")

	asked(friend, "!friend", "Profile of This Person", "goals: the canary", "time zone: Africa/Nairobi", " UTC]\\nhello", " EAT]\\nhello")
	for _, other := range [][2]string{{owner, "!dm"}, {friend, "!group"}, {owner, "!group"}} {
		expect.Lacks(t, asked(other[0], other[1], " UTC"), "canary", "Nairobi", " EAT]")
	}
	expect.Lacks(t, asked(friend, "!group", " UTC"), "heron")
	expect.Lacks(t, asked(friend, "!friend", " EAT]"), "heron")

	// It is as trusted as its person.
	for room, want := range map[string]trust.Integrity{"!dm": trust.Owner, "!friend": trust.User} {
		got := value[trust.Integrity](t, w, `SELECT integrity FROM message WHERE room = ? AND role = 'assistant' ORDER BY id DESC LIMIT 1`, room)
		expect.Equal(t, got, want, room)
	}

	// Somebody joins: the chat is direct no more.
	w.deliver(t, chat.Message{Head: chat.Head{Room: "!friend", Sender: friend, At: time.Now()}, Text: "we are three"})
	expect.Lacks(t, w.lastAsked(), "the canary", "Nairobi", " EAT]")

	// An edited file counts at once; a faulty line is told, and kept by a change.
	file := filepath.Join(w.dir, profile.RelativePath(friend))
	text := string(expect.Must(os.ReadFile(file))(t))
	expect.OK(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "Africa/Nairobi", "Atlantis")+"colour: blue\n"), 0o600))
	expect.Lacks(t, asked(friend, "!friend2", " UTC]\\nhello", "goals: the canary"), "Atlantis", "blue", " EAT]")
	expect.Has(t, in(friend, "!friend2", "!profile"), "- time zone: not set", "Line 2 of the file does not count: There is no such time zone", "Line 4 of")
	expect.Has(t, in(friend, "!friend2", "!profile goals"), "Removed from your profile: goals. It was: the canary")
	expect.Has(t, string(expect.Must(os.ReadFile(file))(t)), "Atlantis", "colour: blue")
	in(friend, "!friend2", "!config language de")
	expect.Has(t, in(friend, "!friend2", "!profile time zone rome"), "Europe/Rome")

	expect.Has(t, in(friend, "!friend2", "!profile forget"), "deleted")
	expect.Lacks(t, asked(friend, "!friend2", " UTC]\\nhello"), "Profile of This Person")
	_, err := os.Stat(file)
	expect.False(t, !os.IsNotExist(err), "the file: %v", err)
}

// TestTaskInPersonsZone: a daily task made in a direct chat keeps the wall clock of the person's zone, also when the
// clocks change and when the profile does.
func TestTaskInPersonsZone(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.tells(t, "!profile time zone Europe/Berlin", "Europe/Berlin")
	w.script.answers = []string{`task {"action":"add","content":"drink","schedule_type":"daily","at":"09:00"}`, "ok",
		`task {"action":"add","content":"call","at":"tomorrow at 9"}`, "ok", `task {"action":"add","content":"tea","schedule_type":"daily","at":"09:00","zone":"Asia/Tokyo"}`, "ok"}
	for range 3 {
		w.say(t, "", "remind me at 9")
	}
	w.tells(t, "!profile time zone Asia/Tokyo", "Asia/Tokyo")
	w.tells(t, "!tasks", "daily at 09:00 (Europe/Berlin)", "at 09:00 (Europe/Berlin)", "daily at 09:00 (Asia/Tokyo)")
	all := expect.Must(w.cfg.Tasks.List(t.Context(), w.directScope("!dm", owner).Place(), ""))(t)
	for _, it := range all {
		if it.Content == "drink" {
			for day, hour := range map[int]int{27: 8, 28: 7} { // in March 2027, the clocks go forward on the 28th
				since := time.Date(2027, 3, day-1, 12, 0, 0, 0, time.UTC)
				due, _ := it.Schedule.Next(since, since, time.UTC)
				expect.Equal(t, due.UTC(), time.Date(2027, 3, day, hour, 0, 0, 0, time.UTC))
			}
		}
		if it.Content == "call" {
			at := it.NextDue.In(expect.Must(time.LoadLocation("Europe/Berlin"))(t))
			expect.Equal(t, at.Format("15:04"), "09:00")
		}
	}
	expect.Equal(t, len(all), 3)

	// A group's clock is the usual one.
	w.script.answers = []string{`task {"action":"add","content":"group","schedule_type":"daily","at":"09:00"}`, "ok"}
	w.deliver(t, chat.Message{Head: chat.Head{Room: "!group", Sender: owner, At: time.Now()}, Text: "remind us"})
	var s struct{ Zone string }
	expect.OK(t, json.Unmarshal([]byte(value[string](t, w, `SELECT schedule FROM task WHERE content = 'group'`)), &s))
	expect.Equal(t, s.Zone, "")
}
