package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"reverie/internal/session"
)

// page is a display that keeps what is printed.
type page struct {
	text   strings.Builder
	status []string // each that stood there, in order
}

func (p *page) print(text, status string) {
	p.text.WriteString(text)
	if len(p.status) == 0 || p.status[len(p.status)-1] != status {
		p.status = append(p.status, status)
	}
}

func (p *page) width() int { return 80 }

// said shows messages at a terminal, and elsewhere.
func said(t *testing.T, messages ...session.Outgoing) (live *page, script string) {
	t.Helper()
	var out bytes.Buffer
	live = new(page)
	for _, s := range []*screen{{display: live, name: "R"}, {out: &out, name: "R"}} {
		chat := &terminal{screen: s}
		for _, m := range messages {
			must(t, chat.Say(t.Context(), "", m))
		}
	}
	return live, out.String()
}

// What an answer waits for stands in a place of a terminal that goes away, and nowhere in
// what a script reads.
func TestProgressOnTheScreen(t *testing.T) {
	live, script := said(t,
		session.Outgoing{ID: "1", Text: "still working: thinking", Draft: true, Notice: true},
		session.Outgoing{ID: "1", Text: "The answer.", Draft: true},
		session.Outgoing{ID: "1", Text: "still working: late", Draft: true, Notice: true},
		session.Outgoing{ID: "1", Text: "The answer."})
	if script != "The answer.\n" {
		t.Errorf("script: %q", script)
	}
	if got := live.text.String(); got != "\nR: The answer.\n\n" {
		t.Errorf("live: %q", got)
	}
	if got := strings.Join(live.status, "|"); got != "still working: thinking|still working: late|" {
		t.Errorf("status: %q", got)
	}
}

// A question stands on the screen with what may be chosen. Closing it says nothing: what came of
// it is a message of its own.
func TestOptionsOnTheScreen(t *testing.T) {
	live, script := said(t,
		session.Outgoing{ID: "1", Text: "May I? Write !approve K7.", Options: []session.Option{{ID: "once", Text: "Yes, once"}, {ID: "no", Text: "No"}}},
		session.Outgoing{ID: "2", Text: "Done."},
		session.Outgoing{ID: "1", Text: "It is closed.", Notice: true})
	if script != "May I? Write !approve K7.\n1. Yes, once\n2. No\nDone.\n" {
		t.Errorf("script: %q", script)
	}
	if got := live.text.String(); got != "\nR: May I? Write !approve K7.\n1. Yes, once\n2. No\n\n\nR: Done.\n\n" {
		t.Errorf("live: %q", got)
	}
}

// TestChangedAnswer: an answer that changes what was shown is shown again; what only grows is not.
func TestChangedAnswer(t *testing.T) {
	draft := func(text string) session.Outgoing { return session.Outgoing{ID: "1", Text: text, Draft: true} }
	for _, c := range []struct {
		name string
		said []session.Outgoing
		want string
	}{
		{"grows", []session.Outgoing{draft("One\nTw"), draft("One\nTwo\nThr"), {ID: "1", Text: "One\nTwo\nThree"}}, "\nR: One\nTwo\nThree\n\n"},
		{"the same again", []session.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "One"}}, "\nR: One\n\n"},
		{"shorter for a moment", []session.Outgoing{draft("One\nTwo\n"), draft("One\n"), {ID: "1", Text: "One\nTwo"}}, "\nR: One\nTwo\n\n"},
		{"other words", []session.Outgoing{draft("One\nTwo\n"), {ID: "1", Text: "Four"}}, "\nR: One\nTwo\n\nR: Four\n\n"},
		{"edited later", []session.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "Two"}}, "\nR: One\n\n\nR: Two\n\n"},
	} {
		if live, _ := said(t, c.said...); live.text.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, live.text.String(), c.want)
		}
	}
}

// hostileText has what a terminal would obey: titles, the clipboard, colours, C1, and text
// that runs backwards.
const hostileText = "safe\x1b]0;title\x07\x1b]52;c;Y2xpcA==\x07\x1b[2J\x1b[31mred\r\b\x7f\u009b2Jc1\u0085\u202eback\u2066wards\u200f\u061c\u200e\u2069 end"

// commandsOf returns the runes of a text that command a terminal or turn its direction.
func commandsOf(text string) string {
	var found strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\u009b") {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&found, "%U ", r)
		}
	}
	return found.String()
}

// TestNoCommandReachesTheTerminal: whatever a model or a server says, no command prints what
// a terminal obeys, in words or as JSON.
func TestNoCommandReachesTheTerminal(t *testing.T) {
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken || r.Method == http.MethodGet {
			w.WriteHeader(http.StatusBadRequest)
			b, _ := json.Marshal(map[string]any{"error": map[string]string{"message": hostileText}})
			_, _ = w.Write(b)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{hostileText[:6], hostileText[6:30], hostileText[30:]} {
			b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": part}}}})
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	config := configFile(t, "data: ./data\nllm:\n  models:\n    - {name: r, base_url: \""+server.URL+"/v1\", model: m}\n")
	bot := func(want string, input string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		start(t.Context(), append(args, "--config", config), console{in: strings.NewReader(input), out: &out, err: &errs})
		for name, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
			if found := commandsOf(text); found != "" {
				t.Errorf("bot %s: %s has %s:\n%q", args[0], name, found, text)
			}
		}
		if !strings.Contains(out.String()+errs.String(), want) {
			t.Errorf("bot %s: no %q in\n%s%s", args[0], want, out.String(), errs.String())
		}
		return out.String()
	}
	bot("safe", "hello\n!remember my \u202etea is green\u2069, \u200fsafe\n", "chat")
	bot("tea", "", "memory", "list")
	bot("tea", "", "prompt", "--room", terminalRoom)
	bot("", "", "dream")
	bot("", "", "memory", "no\x1b[2Jsuch", "command")
	broken = true
	bot("", "hello\n", "chat")
	bot("", "", "doctor")
	bot("", "", "dream")
	for _, line := range strings.Split(strings.TrimSpace(bot("tea", "", "memory", "export")), "\n") {
		var e struct{ Text string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.Contains(e.Text, "\u202etea") {
			t.Errorf("what is exported lost something: %q, %v", line, err)
		}
	}
	var findings any
	if err := json.Unmarshal([]byte(bot("", "", "doctor", "--json")), &findings); err != nil {
		t.Error(err)
	}
}

// TestTerminalOwnCodes: on a terminal an answer grows without commands of the model's.
func TestTerminalOwnCodes(t *testing.T) {
	var out page
	s := &screen{display: &out, name: "R"}
	s.writing(true)
	s.progress(hostileText)
	for i := range hostileText {
		s.show("1", hostileText[:i], false)
	}
	s.show("1", hostileText, true)
	s.say("%s", hostileText)
	_, _ = s.Write([]byte(hostileText))
	text := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(out.text.String())
	if commandsOf(text) != "" || !strings.Contains(text, "\nR: safe]0;title]52;c;Y2xpcA==[2J[31mred2Jc1backwards end\n") {
		t.Errorf("%q", text)
	}
	if found := commandsOf(strings.Join(out.status, "")); found != "" || out.status[0] != "R is writing…" {
		t.Errorf("%s in %q", found, out.status)
	}
}

// TestPlainWriter: bytes that are no characters command nothing either.
func TestPlainWriter(t *testing.T) {
	var out bytes.Buffer
	_, err := (plainWriter{&out}).Write([]byte("Grüße 😀\tund\n\u009b\u202ex\x9b\xffy\r\n"))
	must(t, err)
	if got := out.String(); got != "Grüße 😀\tund\nx\ufffd\ufffdy\n" {
		t.Errorf("%q", got)
	}
}
