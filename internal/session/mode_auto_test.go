package session

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAskedMode(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for text, want := range map[string]string{
		"Let's plan the trip.":                                              "planning",
		"Let’s  PLAN\nthe trip":                                             "planning",
		"Kannst du mir helfen? Mach einen Plan":                             "planning",
		"ayúdame a planificar el viaje":                                     "planning",
		"AIDE-MOI À PLANIFIER":                                              "planning",
		"Facciamo un piano per l'estate":                                    "planning",
		"旅行の計画を立ててください":                                                     "planning",
		"请帮我规划一下":                                                           "planning",
		"please write a script for it":                                      "developer",
		"Schreib ein Programm, das zählt":                                   "developer",
		"請写一个程序":                                                            "developer",
		"can you help me debug this?":                                       "debugger",
		"デバッグしてください":                                                        "debugger",
		"帮我调试这个":                                                            "debugger",
		"back to normal mode":                                               "assistant",
		"zurück zum normalen Modus":                                         "assistant",
		"Traceback (most recent call last):\n  File \"a.py\", line 1":       "debugger",
		"look:\n```\npanic: oh\n\ngoroutine 1 [running]:\nmain.main()\n```": "debugger",
		"  at Object.run (/app/index.js:10:5)":                              "debugger",
		"thread 'main' panicked at src/main.rs:2:5:":                        "debugger",
		// and what asks for nothing:
		"":                                       "",
		"What is a plan?":                        "",
		"outlet's planning":                      "",
		"outlet's plan":                          "", // "let's plan" within a word
		"let's planet":                           "",
		"this planning committee debugged a lot": "",
		"Let's not, or rather: make a plan without me": "",
		"Don't make a plan yet":                        "",
		"mach keinen Plan, lass uns planen nicht":      "",
		"不要制定计划":                                       "",
		"> let's plan\nwhat did she mean":              "",
		"she wrote `let's plan` in the log":            "",
		"```\nlet's debug\n```":                        "",
		"Let's plan. And help me debug the tool.":      "", // two wishes
		long + "let's plan":                            "",
		"the meeting is at home (12:30)":               "",
		"user mode":                                    "",
	} {
		if got, why := askedMode([]string{text}); got != want || (got == "") != (why == "") {
			t.Errorf("%q asks for %q (%s), want %q", text, got, why, want)
		}
	}
	if got, why := askedMode([]string{"hello", "let's plan", "make a plan"}); got != "planning" || why != "“let's plan” was said" {
		t.Errorf("a burst: %q, %q", got, why)
	}
	if got, _ := askedMode([]string{"let's plan", "let's debug"}); got != "" {
		t.Errorf("two wishes in a burst: %q", got)
	}
	if got, _ := askedMode([]string{"let's plan", "goroutine 1 [running]:"}); got != "planning" {
		t.Errorf("words go before reports: %q", got)
	}
}

// TestAsksTable: every phrase asks for its own mode and for no other.
func TestAsksTable(t *testing.T) {
	for _, a := range asks {
		if _, known := modeNamed(a.mode); !known {
			t.Errorf("there is no mode %q", a.mode)
		}
		for _, phrase := range a.phrases {
			for _, text := range []string{phrase, "Hello, " + strings.ToUpper(phrase) + "!"} {
				if got, _ := askedMode([]string{text}); got != a.mode {
					t.Errorf("%q asks for %q, want %q", text, got, a.mode)
				}
			}
		}
	}
}

// TestAutoNeverOscillates: however people talk, and whatever the clock does, a mode is
// kept for the least stay, and changes of its own are apart.
func TestAutoNeverOscillates(t *testing.T) {
	texts := []string{"hello", "let's plan", "help me debug", "write a script", "back to normal mode", "goroutine 1 [running]:", "do not make a plan"}
	rapid.Check(t, func(t *rapid.T) {
		q := autoQuestion{now: "assistant", at: time.UnixMilli(1_000_000_000_000)}
		changes := 0
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			q.at = q.at.Add(time.Duration(rapid.IntRange(-30, 200).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "command") == 0 {
				q.now, q.changed = rapid.SampledFrom(Modes()).Draw(t, "mode"), q.at
			}
			q.texts = rapid.SliceOfN(rapid.SampledFrom(texts), 1, 3).Draw(t, "texts")
			q.fresh = rapid.SampledFrom([]string{"", "", "a new conversation began"}).Draw(t, "fresh")
			name, why := q.next()
			if name == "" {
				continue
			}
			if _, known := modeNamed(name); !known || why == "" || name == q.now {
				t.Fatalf("from %s to %q because %q", q.now, name, why)
			}
			if !q.changed.IsZero() && q.at.Sub(q.changed) < autoStay {
				t.Fatalf("left %s after %v", q.now, q.at.Sub(q.changed))
			}
			if !q.own.IsZero() && q.at.Sub(q.own) < autoCooldown {
				t.Fatalf("changed by itself again after %v", q.at.Sub(q.own))
			}
			q.now, q.changed, q.own = name, q.at, q.at
			changes++
		}
	})
}

// TestAuto: off by default; told in a line, kept with its reason; a person's word ends
// it; after a break the first mode is back.
func TestAuto(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	var later atomic.Int64
	now := time.Now()
	clock := func() time.Time { return now.Add(time.Duration(later.Load())) }
	w.cfg.Now = clock
	n := 0
	say := func(after time.Duration, text string) (answer, told string) {
		t.Helper()
		n++
		later.Add(int64(after))
		id := fmt.Sprintf("$%d", n)
		got := w.deliver(t, Inbound{ID: id, Room: "!dm", Sender: owner, Text: text, Private: true, At: clock()})
		w.room.mu.Lock()
		defer w.room.mu.Unlock()
		return got.Text, w.room.final["mode:"+id].Text
	}
	expect := func(mode string, auto bool) {
		t.Helper()
		got, err := newSession(w.Manager, "!dm").mode(t.Context())
		if err != nil || got.name != mode || got.auto != auto {
			t.Errorf("%s, by itself %v, %v; want %s, %v", got.name, got.auto, err, mode, auto)
		}
	}
	if answer, told := say(0, "let's plan the trip"); answer != "fine" || told != "" {
		t.Errorf("off by default: %q, %q", answer, told)
	}
	expect("assistant", false)
	if answer, _ := say(time.Hour, "!mode auto"); !strings.Contains(answer, "It is assistant now; `!mode assistant` keeps it.") {
		t.Errorf("%q", answer)
	}
	expect("assistant", true)
	answer, told := say(time.Minute, "let's plan the trip")
	if answer != "fine" || told != "I am in planning mode now, because “let's plan” was said. `!mode assistant` takes it back for good." {
		t.Errorf("%q, %q", answer, told)
	}
	expect("planning", true)
	if asked := w.script.asked(); !strings.Contains(asked[len(asked)-1], `"temperature":0.3`) {
		t.Error("the message that asked is answered in the old mode")
	}
	if _, told := say(time.Minute, "help me debug this"); told != "" { // too soon
		t.Errorf("%q", told)
	}
	expect("planning", true)
	w.stop()
	w = newWorld(t, dir)
	w.cfg.Now = clock
	if _, told := say(time.Minute, "help me debug this"); !strings.Contains(told, "debugger mode now") {
		t.Errorf("%q", told)
	}
	expect("debugger", true)
	if got, _ := say(0, "!mode"); !strings.Contains(got, "(by myself: “help me debug” was said); I may change it by myself.") || !strings.Contains(got, "assistant → planning (by myself") {
		t.Errorf("%q", got)
	}
	say(2*time.Hour, "and what now?")
	expect("debugger", true)
	if _, told := say(autoBreak+time.Minute, "good morning"); told != "I am in assistant mode now, because we had not talked for a while. `!mode debugger` takes it back for good." {
		t.Errorf("%q", told)
	}
	expect("assistant", true)
	say(time.Hour, "write a script that counts")
	expect("developer", true)
	say(time.Hour, "!new")
	expect("developer", true)
	if _, told := say(0, "hello"); !strings.Contains(told, "because a new conversation began") {
		t.Errorf("%q", told)
	}
	expect("assistant", true)
	if answer, _ := say(time.Hour, "!mode assistant"); !strings.Contains(answer, "stays assistant; I do not change it by myself any more") {
		t.Errorf("%q", answer)
	}
	expect("assistant", false)
	say(time.Hour, "!mode auto")
	say(time.Hour, "!mode user")
	expect("user", false)
	say(24*time.Hour, "let's plan")
	expect("user", false)
}

// TestAutoAfterAnInterruption: a message that is delivered again changes the mode once
// and tells it once.
func TestAutoAfterAnInterruption(t *testing.T) {
	w := newWorld(t, t.TempDir(), "500", "answered")
	w.say(t, "$0", "!mode auto")
	w.say(t, "$1", "let's plan")
	if got := w.say(t, "$1", "let's plan"); got.Text != "answered" {
		t.Errorf("%+v", got)
	}
	if n := w.room.count(); n != 3 {
		t.Errorf("%d things said: %v", n, w.room.order)
	}
	s := newSession(w.Manager, "!dm")
	if got, err := s.switches(t.Context(), 10); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	// It was told, and the program died before it was stored.
	if _, err := w.cfg.DB.Exec(`DELETE FROM mode_switch; UPDATE session SET mode = ''`); err != nil {
		t.Fatal(err)
	}
	in := Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "let's plan", Private: true}
	if err := s.autoMode(t.Context(), in, []Inbound{in}); err != nil {
		t.Fatal(err)
	}
	if now, err := s.mode(t.Context()); err != nil || now.name != "planning" || w.room.count() != 3 {
		t.Errorf("%v, %v, %v", now.name, err, w.room.order)
	}
}
