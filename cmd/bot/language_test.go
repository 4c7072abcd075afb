package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/dream"
	"reverie/internal/i18n"
	"reverie/internal/matrix"
	"reverie/internal/memory"
	"reverie/internal/session"
	"reverie/internal/task"
)

var (
	quotedWords = regexp.MustCompile("`[^`\n]*`")
	threeWords  = regexp.MustCompile(`[A-Za-z']{2,}( [A-Za-z']{2,}){2,}`)
	smallWords  = regexp.MustCompile(`(?i)\b(the|with|you|your|this|that|which|were|been|nothing|could|is|its|of|from|by|for|because|what|when|and|until|ago)\b`)
)

// TestNoticesInTheirLanguage: what tasks, dreams, the connection and the vectors tell people
// is told in the language of their room; what people wrote stays as it is.
func TestNoticesInTheirLanguage(t *testing.T) {
	store := task.NewStore(nil, time.Now)
	store.Location = time.UTC
	due := time.Date(2027, 3, 9, 8, 0, 0, 0, time.UTC)
	tea := task.Task{ID: "task_a", Content: "Tee", User: "@me:x", Priority: 2, NextDue: due.AddDate(0, 0, 1)}
	reminder := task.Run{Task: tea, Due: due, Claimed: due.Add(2 * time.Hour)}
	paused := reminder
	paused.Notice = true
	skew, now := int64(-200_000), time.Now()
	worst := matrix.Status{User: "@b:hs", Homeserver: "https://hs", Device: "DEV", LastSync: now.Add(-50 * time.Hour), SyncFailures: 7,
		ClockSkew: &skew, Rooms: 1, Inbox: 2, InboxOldest: 7000, Outbox: 1, OutboxOldest: 100, Undecryptable: 1, UnreadOldest: 90_000}
	best := matrix.Status{User: "@b:hs", Homeserver: "https://hs", Device: "DEV", CrossSigned: true, Problem: "x", Backup: "1", BackupWaiting: 3}
	change := dream.Change{Line: dream.Line{Scope: memory.Shared, ID: "mem_1", Text: "Rom"}, ByText: "Bern"}
	report := dream.Report{State: dream.AppliedState, Superseded: []dream.Change{change}, Merged: []dream.Change{change, change}, Archived: []dream.Change{change},
		Tasks: []dream.TaskChange{{Scope: memory.Shared, ID: "task_c", Text: "Tee", Kind: task.TidyMerge, What: i18n.New("why.task_same", "id", "task_a")},
			{Scope: memory.Shared, ID: "task_d", Text: "Tee", Kind: task.TidyPause, What: i18n.New("why.task_aside", "why", i18n.New("why.not_spoken_of"))}},
		Proposals: []dream.Proposal{{Scope: memory.Shared, Text: i18n.New("why.is_it_done", "task", "Tee", "id", "task_a", "who", i18n.New("why.by_words", "who", "@me:x", "date", "2027-03-09", "time", "08:00"))}, {Scope: memory.Shared, Text: i18n.New("why.ask_the_same", "first", "Tee", "id", "task_a", "second", "Tee", "other", "task_b")}, {Scope: memory.Shared, Text: i18n.New("why.skill_unused", "name", "tea", "path", "data/skills/tea.md")}},
		Questions: []dream.Question{{Scope: memory.Shared, First: "mem_1", Second: "mem_2", FirstText: "Rom", SecondText: "Bern", Why: i18n.New("why.same_time")}}}
	failed := dream.Report{State: dream.Failed, Reason: i18n.New("why.dream_cut_off")}
	undone := []dream.Report{{State: dream.Undone}, {State: dream.Undone, Back: make([]dream.Line, 1)}, {State: dream.Undone, Restored: make([]dream.Line, 3),
		Chores: []i18n.Text{i18n.New("why.task_back", "id", "task_a"), i18n.New("why.task_stays", "id", "task_b")}},
		{State: dream.Undone, Chores: []i18n.Text{i18n.New("why.task_back", "id", "task_a")}}}
	vectors := []memory.VectorStatus{{Unreachable: now}, {Late: now}, {Done: 3, Total: 9, Model: "m"}, {Done: 3, Total: 9, Model: "m", Refused: 6}, {Done: 9, Total: 9, Model: "m"}}
	points := []memory.PointsStatus{{}, {Waiting: 3}, {Unreachable: now}, {Unreachable: now, Waiting: 3}}

	mine := func(memory.Scope) bool { return true }
	for _, language := range session.Languages() {
		say := func(key string, fill ...string) string { return (*session.Messages)(nil).In(language, key, fill...) }
		texts := []string{store.Text(reminder, false, say), store.Text(reminder, true, say), store.Text(paused, false, say),
			report.Digest(say, mine), failed.Digest(say, mine), report.Summary(say), dream.ErrBusy.In(say), dream.ErrNothing.In(say)}
		texts = append(append(texts, worst.Lines(now, say)...), best.Lines(now, say)...)
		for _, v := range vectors {
			texts = append(texts, v.Line(time.UTC).In(say))
		}
		for _, r := range undone {
			texts = append(texts, r.Summary(say))
		}
		for _, p := range points {
			texts = append(texts, p.Line(time.UTC).In(say))
		}
		for _, text := range texts {
			plain := quotedWords.ReplaceAllString(text, " ")
			if english := threeWords.FindAllString(plain, -1); (language == "ja" || language == "zh") && len(english) > 0 {
				t.Errorf("%s: %q in\n%s", language, english, text)
			}
			if english := smallWords.FindAllString(plain, -1); language != "en" && len(english) > 0 {
				t.Errorf("%s: %q in\n%s", language, english, text)
			}
			if strings.ContainsAny(plain, "{}") || text == "" {
				t.Errorf("%s: %s", language, text)
			}
		}
		if all := fmt.Sprint(texts[:3]); strings.Count(all, "Tee") != 3 || !strings.Contains(all, "@me:x") {
			t.Errorf("%s: %s", language, all)
		}
	}
	german := func(key string, fill ...string) string { return (*session.Messages)(nil).In("de", key, fill...) }
	for got, want := range map[string]string{
		store.Text(reminder, false, german): "⏰ Erinnerung für @me:x: Tee (fällig war es Di 2027-03-09 08:00 UTC)",
		failed.Digest(german, mine):         "Ich konnte diese Nacht nicht träumen, und mein Gedächtnis ist, wie es war: der Traum wurde abgebrochen\n",
		report.Summary(german):              "2 zusammengeführt, 1 überholt, 1 weggelegt, 2 der Aufgaben aufgeräumt, 4 Fragen",
		undone[2].Summary(german):           "zurückgenommen: 3 Erinnerungen sind, wie sie waren, die Aufgabe #task_a ist, wie sie war, die Aufgabe #task_b wurde seither geändert und bleibt, wie sie ist",
		worst.Lines(now, german)[0]:         "@b:hs auf https://hs, der letzte Abgleich ist 2 Tage her; 7 Versuche sind seither gescheitert, ich versuche es weiter",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
