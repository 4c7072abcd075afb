package session

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/task"
)

var (
	fenced   = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	anyNames = regexp.MustCompile(`\S*[@/#_<>\[\]|]\S*`)
	inRow    = regexp.MustCompile(`[A-Za-z']{2,}( [A-Za-z']{2,}){2,}`)
	// onlyEnglish are small words that no other language here has.
	onlyEnglish = regexp.MustCompile(`(?i)\b(the|with|you|your|this|that|which|have|were|been|nothing|could|would|cannot|is|its|of|from|by|for|because|what|when|and|left|out|until|ago|shown)\b`)
)

// pieces are what stands between the places of English sentences, if it is three words
// or more, with the key of one.
var pieces = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for key, text := range i18n.Source() {
		for _, piece := range placeForm.Split(text, -1) {
			if piece = strings.TrimSpace(fenced.ReplaceAllString(piece, "")); len(strings.Fields(piece)) > 2 {
				all[piece] = key
			}
		}
	}
	return all
})

// escaped finds English in what is said in another language: what en.txt has, small words
// of English, and where the other language has letters of its own, any three words in a row.
func escaped(language, text string) (found []string) {
	plain := anyNames.ReplaceAllString(fenced.ReplaceAllString(text, " "), " ")
	for piece, key := range pieces() {
		if strings.Contains(plain, piece) {
			found = append(found, key+": "+piece)
		}
	}
	found = append(found, onlyEnglish.FindAllString(plain, -1)...)
	if language == "ja" || language == "zh" {
		found = append(found, inRow.FindAllString(plain, -1)...)
	}
	return found
}

// TestNothingEscapes: whatever is said in a room without a model is said in its language.
// Holds M69.
func TestNothingEscapes(t *testing.T) {
	if got := escaped("ja", "作業 No open tasks in this room. です"); len(got) < 2 {
		t.Fatalf("found %q", got)
	}
	for _, language := range slices.DeleteFunc(Languages(), func(l string) bool { return l == english }) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for key, text := range builtin(language).text {
				if english := escaped(language, placeForm.ReplaceAllString(text, "…")); len(english) > 0 {
					t.Errorf("%s: in English: %q\n%s", key, english, text)
				}
			}
			everythingSaid(t, language)
		})
	}
}

func everythingSaid(t *testing.T, language string) {
	w := newWorld(t, t.TempDir())
	w.cfg.Messages, w.cfg.Self = OpenMessages(w.dir, w.cfg.DB, "en"), "@bot:example.org"
	must(t, (Settings{w.cfg.DB}).Set(t.Context(), "!dm", SettingLanguage, language, owner, time.Now()))
	said, n := map[string]bool{}, 0
	say := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			n++
			got := w.say(t, fmt.Sprintf("$%d", n), text)
			if strings.HasPrefix(text, "!") && text != "!retry" && (!got.Notice || strings.TrimSpace(got.Text) == "") {
				t.Errorf("%s: %+v", text, got)
			}
		}
		for id, m := range w.room.final {
			if !said[id+m.Text] && (m.Notice || id != "re:"+strings.TrimPrefix(id, "re:")) {
				said[id+m.Text] = true
				if english := escaped(language, m.Text); len(english) > 0 {
					t.Errorf("in English: %q\n%s", english, m.Text)
				}
			}
		}
	}
	exec := func(query string, args ...any) {
		t.Helper()
		w.exec(t, query, args...)
	}
	say("!help", "!status", "!retry", "!stop", "!tasks", "!goal", "!goal history", "!goal new", "!goal zz", "!goal pause", "!goal resume", "!memory", "!summary", "!compact",
		"!new zz", "!undo", "!forget", "!forget zz", "!remember", "!remember "+strings.Repeat("z", 3000), "!helpers", "!dream", "!dream status", "!think", "!think low", "!think zz",
		"!think default", "!mode", "!mode zz", "!mode assistant", "!model", "!model zz", "!model local", "!skills", "!config", "!config threads", "!config zz", "!config threads zz", "!config threads off", "!prompt", "!verify", "!whoami", "!zz", "!tasx")
	say("Tee", "!status", "!prompt", "!summary")
	for i := range 8 {
		say(strings.Repeat(fmt.Sprintf("Tee%d ", i), 300))
	}
	say("!compact", "!compact", "!summary", "!status")
	talksOfGoals(t, w, say)
	talksOfMemory(t, w, say)
	talksOfTasks(t, w, say, exec)
	talksOfFiles(t, w, say)
	w.cfg.Dreams = &Dreams{Wake: func() {}, Status: func(_ context.Context, say i18n.Say) (string, error) {
		return say("dream.failed", "why", say("why.dream_cut_off")), nil
	},
		Undo: func(_ context.Context, say i18n.Say) (string, error) {
			return i18n.Join(say, []i18n.Text{i18n.New("why.dream_undone", "count", 1), i18n.New("why.task_stays", "id", "t")}), nil
		}}
	w.deliver(t, Inbound{ID: "$dream", Room: "!dm", Sender: "@zz:example.org", Text: "!dream", Private: true, At: time.Now()})
	say("!dream", "!dream status", "!dream undo", "!dream zz")
	w.withHelpers(t)
	say("!helpers")
	needed := func(why i18n.Text) i18n.Text { return i18n.New("why.needed_failed", "id", "sub_1", "why", why) }
	for i, reason := range []i18n.Text{i18n.New("why.helper_empty"), i18n.New("why.helper_time", "time", i18n.Span(5*time.Minute), "count", 4), needed(i18n.New("why.helper_cancelled")),
		i18n.New("why.helper_stop"), i18n.New("why.needed_cancelled", "id", "sub_1", "why", i18n.New("why.helper_cancelled")), (&llm.Error{Kind: llm.Unreachable, Model: "my model"}).Calm(),
		needed((&llm.Error{Kind: llm.Garbled, Model: "m"}).Calm()), i18n.New("why.room_left"), unasked, "session: the disk is on fire"} {
		exec(`INSERT INTO sub_session (id, depth, room, private, objective, mode, tools, timeout, status, reason, continued, rounds, tokens, created, ended, told)
			VALUES (?, 1, '!dm', 1, 'Tee', 'minimal', '[]', 1000, ?, ?, 2, 3, 400, 1, 2, 3)`, fmt.Sprint("sub_", i), []string{helperFailed, helperCancelled, helperCompleted, helperWaiting, helperPending}[i%5], reason)
	}
	say("!helpers", "!stop", "!mode planning")
	exec(`UPDATE message SET at = at - 86400000`)
	w.say(t, "$plan", "let's plan")
	say("!mode", "!config")
	if len(said) < 90 {
		t.Errorf("only %d sentences were looked at", len(said))
	}
}

func talksOfGoals(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	say("!goal new Tee", "!goal pause", "!goal", "!goal resume", "!goal pause zz")
	markers, _, _ := task.ParseMarkers("[CHECKPOINT] Kanne - IN-PROGRESS\n[CHECKPOINT] Tasse - COMPLETED\n[DECISION] Assam\n[ARTIFACT] created: tee.md\n[NEXT] Kochen")
	if len(markers) < 4 {
		t.Fatalf("%d markers", len(markers))
	}
	goals := w.cfg.Tasks.Goals()
	result(goals.ApplyIn(t.Context(), inDM, "!dm", 1<<40, markers))(t)
	result(goals.Decide(t.Context(), inDM, "", task.Decision{Description: "Darjeeling", Rationale: "Berg", Locked: true}))(t)
	say("!goal", "!goal history", "!goal done", "!goal new Kaffee", "!goal drop", "!goal history", "!goal new "+strings.Repeat("z", 5000))
	m := Outgoing{Text: newSession(w.Manager, history.Talk("!dm")).shown(t.Context(), "[GOAL] Tee\n[DECISION] Assam\n[CHECKPOINT] Kanne - COMPLETED\n[ARTIFACT] created: tee.md\n[NEXT] Kochen\nzz"+cutOff)}
	w.room.final["brief"] = m
	say("!goal")
}

func talksOfMemory(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	say("!remember Tee", "!remember Tee", "!remember Teekanne", "!memory", "!forget Tee", "!undo", "!undo", "!remember Tasse")
	id := w.known(t, memory.Private(owner), "Zucker").ID
	w.deliver(t, Inbound{ID: "$group", Room: "!dm", Sender: owner, Text: "!memory share " + id, At: time.Now()})
	say("!memory share "+id, "!memory private "+id, "!memory share mem_zz", "!forget "+id, "!undo", "!memory zz")
	for i := range mostListed + 2 {
		w.known(t, memory.Private(owner), fmt.Sprint("Tee", i))
	}
	say("!memory")
	q := memory.Question{Run: "dream_1", Scope: memory.Private(owner), Why: i18n.New("why.pinned")}
	for i, e := range []*memory.Entry{&q.First, &q.Second} {
		*e = w.known(t, q.Scope, fmt.Sprint("Tee", i))
	}
	say("!memory keep", "!memory keep 1a")
	must(t, w.cfg.Memory.Wonder(t.Context(), []memory.Question{q}))
	say("!memory keep", "!memory keep 1b", "!memory keep 1a", "!undo", "!memory keep 1 both", "!memory keep")
}

func talksOfTasks(t *testing.T, w *world, say func(...string), exec func(string, ...any)) {
	t.Helper()
	id := ""
	for i, schedule := range []*task.Schedule{nil, {Type: "daily", At: "09:00"}, {Type: "weekly", DayOfWeek: "tue", At: "10:30"}, {Type: "monthly", DayOfMonth: 3, At: "07:00"},
		{Type: "interval", IntervalSeconds: 7200, WindowStart: "08:00", WindowEnd: "20:00"}, {Type: "interval", IntervalSeconds: 86400}, {Type: "once", At: time.Now().AddDate(1, 0, 0).Format("2006-01-02 15:04")}} {
		if schedule != nil {
			final := result(schedule.Validate(time.Now(), time.UTC))(t)
			schedule = &final
		}
		added := result(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: fmt.Sprint("Tee", i), Priority: 2, Schedule: schedule}))(t)
		id = added.ID
	}
	for i, state := range []string{"claimed", "claimed", "failed", "skipped", "skipped", "skipped", "skipped", "done"} {
		why := []i18n.Text{"", "", "zz", i18n.New("why.missed"), i18n.New("why.overlap"), task.ErrStopped, i18n.New("why.task_state", "state", i18n.New("state.paused")), ""}[i]
		exec(`INSERT INTO job_run (task, due, state, claimed, ended, result, retry_at) VALUES (?, ?, ?, 1, ?, ?, nullif(?, 0))`, id, 1000*i, state, 5000*min(i, 1), why, 9000*(1-min(i, 1)))
	}
	say("!tasks", "!status")
}

func talksOfFiles(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	for i, key := range slices.Sorted(maps.Keys(i18n.Source())) {
		if !strings.HasPrefix(key, "why.file") && !strings.HasPrefix(key, "why.pdf") {
			continue
		}
		note := i18n.New(key, "size", "9 MB", "why", i18n.New("why.file_nowhere"), "type", "a/b", "count", 9)
		w.deliver(t, Inbound{ID: fmt.Sprint("$file", i), Room: "!dm", Sender: owner, Private: true, At: time.Now(),
			Files: []File{{Name: "tee.pdf", Kind: OtherFile, Note: note}}})
	}
	for i, f := range []File{{Name: "v.ogg", Kind: VoiceFile, Note: errDeaf}, {Name: "v.ogg", Kind: VoiceFile, Note: llm.TimedOut.Why()},
		{Name: "tee.pdf", Kind: OtherFile, Note: i18n.New("why.file_of_kind", "why", "make a picture: the pen is broken", "type", "a/b", "size", "9 MB")}} {
		w.deliver(t, Inbound{ID: fmt.Sprint("$odd", i), Room: "!dm", Sender: owner, Private: true, At: time.Now(), Files: []File{f}})
	}
	say("!status")
}
