package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
)

// notices is what was said beside the answers.
func (r *room) notices() (out []string) {
	defer holding(&r.mu)()
	for _, id := range r.order {
		if strings.HasPrefix(id, "compaction:") {
			out = append(out, r.final[id].Text)
		}
	}
	return out
}

// TestCompactCommands: !compact and !summary, before there is anything and after.
func TestCompactCommands(t *testing.T) {
	w := newWorld(t, t.TempDir())
	n := w.summarising(t, func(text string) string {
		wants(t, text, "hello there")
		return "The owner said hello, and that it is nice."
	})
	notice(t, w.say(t, "$1", "!summary"), "Nothing of this conversation is summarised")
	wants(t, w.say(t, "$2", "!compact").Text, "nothing to summarise yet")
	w.say(t, "$3", "hello there")
	w.chatter(t, "a", 6)
	done := w.say(t, "$4", "!compact").Text
	wrong(t, !strings.HasPrefix(done, "I have summarised 4 messages: about ") || strings.Contains(done, "No model"), "!compact: %s", done)
	wants(t, w.say(t, "$5", "!summary").Text, "The owner said hello, and that it is nice.")
	w.say(t, "$6", "and now?")
	wants(t, w.lastPrompt(t), "The owner said hello, and that it is nice.")
	lacks(t, w.lastPrompt(t), "hello there")
	equal(t, *n, 1)
	equal(t, len(w.room.notices()), 0)
	got := w.say(t, "$7", "!compact")
	wrong(t, !strings.Contains(got.Text, "nothing to summarise yet") || *n != 1, "a second time: %+v", got)
}

// TestCompactionIsTold: one quiet line, before the answer that it made room for.
func TestCompactionIsTold(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	w.untilCompacted(t, 1)
	equal(t, value[string](t, w, `SELECT reason FROM compaction`), becauseFull) // else it came too late
	got := w.room.notices()
	wrong(t, len(got) != 1 || got[0] != "I have summarised the earlier part of this conversation; `!summary` shows it.", "said: %q", got)
	defer holding(&w.room.mu)()
	last := w.room.order[len(w.room.order)-2]
	wrong(t, !strings.HasPrefix(last, "compaction:") || !w.room.final[last].Notice, "it was said at another time: %v", w.room.order)
}

// TestRedeliveredAfterCompaction: a message that is summarised by now, and the newest one, are known when they are delivered again.
func TestRedeliveredAfterCompaction(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	w.say(t, "$first", "hello there")
	w.untilCompacted(t, 1)
	last := w.say(t, "$last", "and now?")
	asked, said := len(w.script.asked()), w.room.count()
	w.say(t, "$first", "hello there")
	equal(t, w.say(t, "$last", "and now?").Text, last.Text)
	wrong(t, len(w.script.asked()) != asked || w.room.count() != said,
		"%d more requests, %d more answers", len(w.script.asked())-asked, w.room.count()-said)
	if past, err := w.cfg.History.Load(t.Context(), "!dm"); err != nil || len(past) > 14 { // and not the whole conversation
		t.Errorf("%d messages are read for each request, %v", len(past), err)
	}
}

// TestServerRefuses: what the server finds too large is compacted once in a turn; if that does not help, the person hears so.
func TestServerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string // "" = as always
		helps   bool
	}{
		"once":              {[]string{"too large"}, true},
		"again":             {[]string{"too large", "too large", "not asked for"}, false},
		"again, after work": {[]string{"too large", `{"entry":"likes tea"}`, "too large", "not asked for"}, false},
	} {
		w := newWorld(t, t.TempDir())
		w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
		w.chatter(t, "a", 15)
		summaries := w.script.reply
		w.script.reply = func(body string) (answer string, ok bool) {
			if isSummary(body) || len(c.answers) == 0 {
				return summaries(body)
			}
			answer, c.answers = c.answers[0], c.answers[1:]
			return answer, true
		}
		got := w.say(t, "$x", "and now?")
		if len(w.compactions(t)) != 1 || got.Notice == c.helps || !c.helps && (!strings.Contains(got.Text, "has grown too large") || len(c.answers) != 1) {
			t.Errorf("%s: %v; answer %+v; not asked for: %q", name, w.compactions(t), got, c.answers)
		}
	}
}

// TestHugeMessages: two messages of three times the window, and 2 MB, are answered, and the model is told that it has not all of it.
func TestHugeMessages(t *testing.T) {
	w := newWindow(t, t.TempDir(), 8192)
	w.summarising(t, func(string) string { return "They sent long texts, one after the other." })
	for i, size := range []int{3 * 8192, 3 * 8192, 500_000} {
		text := fmt.Sprintf("Begin %d. ", i) + strings.Repeat("word ", size) + fmt.Sprintf("What is the end %d?", i)
		began := time.Now()
		if got := w.say(t, fmt.Sprintf("$%d", i), text); got.Notice || !strings.HasPrefix(got.Text, "Understood.") {
			t.Fatalf("message %d is answered with %.300q", i, got.Text)
		}
		wants(t, w.lastPrompt(t), fmt.Sprintf("Begin %d.", i), fmt.Sprintf("What is the end %d?", i), "characters left out here")
		if told := w.room.notices(); len(told) != i+1 || !strings.Contains(told[i], "Your message is longer than I can read at once") || strings.Contains(told[i], "summarised") != (i > 0) {
			t.Errorf("message %d: told %q", i, told)
		}
		t.Logf("%d bytes: %s", len(text), time.Since(began))
	}
	got := w.say(t, "$y", "!retry")
	wrong(t, got.Notice, "!retry: %.300q", got.Text)
}

// TestManyToolResults: a thousand results of tools, of one turn and of many.
func TestManyToolResults(t *testing.T) {
	for _, rounds := range []int{1, 40, 1000} { // into which they come
		w := newWindow(t, t.TempDir(), 8192)
		w.summarising(t, func(string) string { return "They looked at many files, and nothing was found in any of them." })
		w.append(t, history.Message{Role: llm.User, Sender: owner, EventID: "$1", Text: "look at all of it"})
		for r := range rounds {
			m := history.Message{Role: llm.Assistant}
			for i := range 1000 / rounds {
				m.Calls = append(m.Calls, llm.ToolCall{ID: fmt.Sprintf("c%d_%d", r, i), Name: "read_file", Arguments: `{"path":"x"}`})
			}
			w.append(t, m)
			for _, c := range m.Calls {
				w.append(t, history.Message{Role: llm.Tool, CallID: c.ID, Text: strings.Repeat("it says so. ", 30)})
			}
		}
		began := time.Now()
		if got := w.say(t, "$1", "look at all of it"); got.Notice || !strings.HasPrefix(got.Text, "Understood.") {
			t.Fatalf("in %d rounds: %.300q", rounds, got.Text)
		}
		wants(t, w.lastPrompt(t), "look at all of it", "They looked at many files")
		t.Logf("in %d rounds: %s", rounds, time.Since(began))
	}
}

// TestSlowSummary: nobody waits for a summary longer than it may take.
func TestSlowSummary(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.cfg.Summary = 50 * time.Millisecond
	hang := make(chan struct{})
	defer close(hang)
	w.summarising(t, func(string) string { return "" })
	quick := w.script.reply
	w.script.reply = func(body string) (string, bool) {
		if isSummary(body) {
			w.script.block = hang // the lock of the script is held
		} else {
			w.script.block = nil
		}
		return quick(body)
	}
	w.untilCompacted(t, 1)
	got := w.compactions(t)
	wrong(t, got[0] != "extract", "level %v", got)
}

// TestStopEndsACompaction: !stop ends it, and nothing is changed.
func TestStopEndsACompaction(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	hang := make(chan struct{})
	defer close(hang)
	asked := make(chan struct{}, 1)
	w.script.forever = strings.Repeat("I take note of it and will come back to it. ", 5)
	w.script.reply = func(body string) (string, bool) {
		w.script.block = nil
		if isSummary(body) {
			w.script.block = hang
			asked <- struct{}{}
		}
		return "", false
	}
	in := Inbound{Room: "!dm", Sender: owner, Private: true}
	for i := 0; ; i++ {
		in.ID, in.Text, in.At = fmt.Sprint("$", i), strings.Repeat("we go on talking about the weather, ", 4), time.Now()
		must(t, w.Deliver(t.Context(), in))
		select {
		case <-w.room.handled:
			continue
		case <-asked:
		}
		break
	}
	stop := in
	stop.ID, stop.Text = "$stop", "!stop"
	must(t, w.Deliver(t.Context(), stop))
	for range 2 {
		<-w.room.handled
	}
	got := w.room.said(in.ID)
	wrong(t, got.Text != i18n.Source()["stop.ended"] || len(w.compactions(t)) != 0, "said %+v; %v", got, w.compactions(t))
}
