package session

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
)

// hears has somebody say something in a room, and returns what is answered.
func (w *world) hears(t *testing.T, who, room, id, text string) string {
	t.Helper()
	w.deliver(t, Inbound{ID: id, Room: room, Sender: who, Text: text, At: time.Now()})
	return w.room.said(id).Text
}

// Everybody may look at the settings of a room, owners change them, and what is not
// understood is told with what may have been meant.
// Holds M59.
func TestConfigCommand(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	for i, c := range []struct {
		who, say string
		want     []string
		not      string
	}{
		{friend, "!config", []string{"| threads | auto |", "| mention | needed |", "| language | auto |", "!config NAME VALUE"}, ""},
		{friend, "!config threads", []string{"`threads`: where I answer", "It is `auto` (as everywhere at first)", "`auto`, `always`, `off`"}, ""},
		{friend, "!config threads always", []string{"Only my owners"}, ""},
		{friend, "!config", []string{"| threads | auto |"}, "always |"},
		{owner, "!config threads always", []string{"`threads` is `always` here now."}, ""},
		{owner, "!CONFIG Streaming = ON", []string{"`streaming` is `on` here now."}, ""},
		{friend, "!config", []string{"| threads | always | " + owner + ", 20", "| auto, off |", "| streaming | on | " + owner}, ""},
		{owner, "!config threads sometimes", []string{"`threads` cannot be `sometimes`", "`auto`, `always`, `off`"}, ""},
		{owner, "!config treads always", []string{"There is no setting `treads`", "Did you mean `threads`?"}, ""},
		{owner, "!config xyzzy always", []string{"There is no setting `xyzzy`"}, "Did you mean"},
		{owner, "!config threads default", []string{"`threads` is as everywhere at first again: `auto`."}, ""},
		{owner, "!config threads", []string{"(as everywhere at first)"}, ""},
	} {
		got := w.hears(t, c.who, "!group", "$"+string(rune('a'+i)), c.say)
		wants(t, got, c.want...)
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s says %s, and hears %q with %q", c.who, c.say, got, c.not)
		}
	}
	wants(t, w.hears(t, friend, "!other", "$o", "!config"), "| streaming | auto |")
	w.stop()
	w = newWorld(t, dir)
	wants(t, w.hears(t, friend, "!group", "$again", "!config"), "| streaming | on | "+owner)
}

func TestNearest(t *testing.T) {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	for word, want := range map[string]string{"remembr": "remember", "hlep": "help", "cofnig": "config", "stat": "status", "frobnicate": "", "x": "", "modle": "model"} {
		if got := Nearest(word, names); want == "" && len(got) > 0 || want != "" && (!slices.Contains(got, want)) || len(got) > mostNearest {
			t.Errorf("%s: %q, want %q among them", word, got, want)
		}
	}
	w := newWorld(t, t.TempDir())
	equal(t, w.say(t, "$1", "!remembr that").Text, "I do not know `!remembr`. Did you mean `!remember`? `!help` lists what I understand.")
	equal(t, w.say(t, "$2", "!frobnicate").Text, "I do not know `!frobnicate`. `!help` lists what I understand.")
}

// A room's own model is asked first, and the configured ones after it; the prompt is made
// for its window, and says its name.
// Holds M61.
func TestModelChoice(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	big := &script{forever: "from the big one"}
	server := httptest.NewServer(big)
	t.Cleanup(server.Close)
	models := modelsOf(t, chatWithLocal, served(t, "local", 8000, w.script.ServeHTTP),
		llm.ModelConfig{Name: "Big", BaseURL: server.URL + "/v1", Model: "b", MaxOutput: 500, Window: 30_000})
	w.cfg.Models = models
	ask := func(room, id, want string) {
		t.Helper()
		if got := w.hears(t, friend, room, id, "hello"); got != want {
			t.Errorf("in %s %q answers, want %q", room, got, want)
		}
	}
	ask("!group", "$1", "fine")
	for i, c := range []struct{ who, say, want string }{
		{friend, "!model", "`local` answers first (as everywhere at first)."},
		{friend, "!model Big", "Only my owners"},
		{owner, "!model bigg", "no model `bigg`. It has `local`, `Big`. Did you mean `Big`?"},
		{owner, "!model big", "`Big` answers here first"},
		{friend, "!model", "`Big` answers first (" + owner + ", "},
		{friend, "!model", "If it cannot, I ask `local`."},
		{friend, "!status", "Models for chat, in order: Big, local (window 30000"},
	} {
		wants(t, w.hears(t, c.who, "!group", "$c"+string(rune('a'+i)), c.say), c.want)
	}
	before, err := w.tierLock(t.Context(), "!group")
	if err != nil || before == nil {
		t.Fatal(before, err)
	}
	ask("!group", "$2", "from the big one")
	ask("!other", "$3", "fine")
	after, err := w.tierLock(t.Context(), "!group")
	if err != nil || after.Reason != atModel || after.Tier <= before.Tier {
		t.Errorf("the tier was locked as %+v, and is %+v, %v", before, after, err)
	}
	wants(t, value[string](t, w, `SELECT reason FROM prompt_epoch WHERE room = '!group'`), "model") // else the prompt goes on
	w.stop()
	w2 := newWorld(t, dir) // after a restart
	w2.cfg.Models = models
	equal(t, w2.hears(t, friend, "!group", "$4", "hello"), "from the big one")
	server.Close() // it is off: the others answer
	equal(t, w2.hears(t, friend, "!group", "$5", "hello"), "fine")
	wants(t, w2.hears(t, owner, "!group", "$6", "!model default"), "`local` answers here first")
	equal(t, w2.hears(t, friend, "!group", "$7", "hello"), "fine")
	if names := models.Role(llm.Preferring("chat", "of an older configuration")); !slices.Equal(names, []string{"local"}) {
		t.Errorf("a model that there is not: %q", names)
	}
}

// Holds M59.
func TestSettings(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := Settings{DB: w.cfg.DB}
	ctx := t.Context()
	get := func(room, want string) {
		t.Helper()
		if v, err := s.Get(ctx, room, SettingThreads); err != nil || v != want {
			t.Errorf("%s = %q, %v, want %q", room, v, err, want)
		}
		if all, err := s.All(ctx, room); err != nil || all[SettingThreads] != want || all[SettingMention] != "needed" {
			t.Errorf("%s has %v, %v, want %q", room, all, err, want)
		}
	}
	get("!a", "auto")
	must(t, s.Set(ctx, "!a", SettingThreads, "always", "@me:x", time.Now()))
	get("!a", "always")
	get("!b", "auto")
	if err := s.Set(ctx, "!a", SettingThreads, "sometimes", "@me:x", time.Now()); err == nil {
		t.Error("a value that there is not was stored")
	}
	if err := s.Set(ctx, "!a", "colour", "blue", "@me:x", time.Now()); err == nil {
		t.Error("a setting that there is not was stored")
	}
	w.exec(t, `UPDATE room_setting SET value = 'of an older release' WHERE room = '!a'`)
	get("!a", "auto")
}

// TestRoomContext: owners say what a room is about, everybody can look at it, and the model
// gets it with every message of that room and of no other.
// Holds M66.
func TestRoomContext(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	const fair = "This room plans the school's summer fair.\nx = 3 stalls are booked."
	for i, c := range []struct{ who, say, want, not string }{
		{friend, "!config", "| context | not set | as everywhere at first | a text of up to 1000 characters |", ""},
		{friend, "!config context This room is mine.", "Only my owners", ""},
		{owner, "!config context " + strings.Repeat("é", maxContext+1), "`context` cannot be `éééé", ""},
		{owner, "!config context", "It is not set (as everywhere at first). It can be a text of up to 1000 characters.", ""},
		{owner, "!config Context = " + fair, "`context` is `This room plans the school's summer fair", ""},
		{friend, "!config", "| context | This room plans the school's", "not set"},
		{friend, "!config context", "`This room plans the school's summer fair. x = 3 stalls are booked.` (" + owner, ""},
	} {
		got := w.hears(t, c.who, "!group", "$"+string(rune('a'+i)), c.say)
		if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s says %.60s, and hears %q, want %q and not %q", c.who, c.say, got, c.want, c.not)
		}
	}
	told := func(room, id string) string {
		t.Helper()
		w.hears(t, friend, room, id, "hello")
		return sent(t, w.lastAsked())[0].Content
	}
	wants(t, told("!group", "$1"), "# About This Room\n"+fair)
	lacks(t, told("!other", "$2"), "summer fair")
	w.stop()
	w = newWorld(t, dir)
	wants(t, told("!group", "$3"), fair)
	wants(t, w.hears(t, owner, "!group", "$4", "!config context default"), "`context` is as everywhere at first again: not set.")
	lacks(t, told("!group", "$5"), "About This Room")
}

// TestRoomContextIsPlainText: control characters do not reach the prompt, and no other room's text does.
func TestRoomContextIsPlainText(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := Settings{DB: w.cfg.DB}
	must(t, s.Set(t.Context(), "!a", SettingContext, " One\x00\x1b[31m\r\ntwo\tthree \u202e", owner, time.Now()))
	if got, err := s.Get(t.Context(), "!a", SettingContext); err != nil || got != "One[31m\ntwo\tthree" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Set(t.Context(), "!a", SettingContext, strings.Repeat("x", maxContext+1), owner, time.Now()); err == nil {
		t.Error("a text that is too long is stored")
	}
}
