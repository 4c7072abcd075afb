package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"reverie/cmd/bot/config"
	"reverie/internal/chat"
	"reverie/internal/llm"
	"reverie/internal/llm/discover"
	"reverie/internal/llm/encoder"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/tool/mcp/mcptest"
	"reverie/internal/trust"
	"reverie/internal/tty"
)

// page is a display that records what is printed.
type page struct {
	text   strings.Builder
	status []string // each that stood there, in order
}

func (p *page) Print(text, status string) {
	p.text.WriteString(text)
	if len(p.status) == 0 || p.status[len(p.status)-1] != status {
		p.status = append(p.status, status)
	}
}

func (p *page) Width() int { return 80 }

// said shows messages at a terminal, and elsewhere.
func said(t *testing.T, messages ...chat.Outgoing) (live *page, script string) {
	t.Helper()
	var out bytes.Buffer
	live = new(page)
	for _, s := range []*tty.Screen{{Display: live, Name: "R"}, {Out: &out, Name: "R"}} {
		chat := &terminal{Screen: s}
		for _, m := range messages {
			expect.OK(t, chat.Send(t.Context(), "", m))
		}
	}
	return live, out.String()
}

// Progress is shown in a temporary place of a terminal, and not in a script's output.
func TestProgressOnTheScreen(t *testing.T) {
	live, script := said(t,
		chat.Outgoing{ID: "1", Text: "still working: thinking", Draft: true, Notice: true},
		chat.Outgoing{ID: "1", Text: "The answer.", Draft: true},
		chat.Outgoing{ID: "1", Text: "still working: late", Draft: true, Notice: true},
		chat.Outgoing{ID: "1", Text: "The answer."})
	expect.Equal(t, script, "The answer.\n", "script")
	expect.Equal(t, live.text.String(), "\nR: The answer.\n\n", "live")
	expect.Equal(t, strings.Join(live.status, "|"), "still working: thinking|still working: late|", "status")
}

// A question is shown with its options. Closing it prints nothing, as its result is a message.
func TestOptionsOnTheScreen(t *testing.T) {
	live, script := said(t,
		chat.Outgoing{ID: "1", Text: "May I? Write !approve K7.", Options: []chat.Option{{ID: "once", Text: "Yes, once"}, {ID: "no", Text: "No"}}},
		chat.Outgoing{ID: "2", Text: "Done."},
		chat.Outgoing{ID: "1", Text: "It is closed.", Notice: true})
	expect.Equal(t, script, "May I? Write !approve K7.\n1. Yes, once\n2. No\nDone.\n", "script")
	expect.Equal(t, live.text.String(), "\nR: May I? Write !approve K7.\n1. Yes, once\n2. No\n\n\nR: Done.\n\n", "live")
}

// TestChangedAnswer: an answer that changes shown text is printed again; one that grows is not.
func TestChangedAnswer(t *testing.T) {
	draft := func(text string) chat.Outgoing { return chat.Outgoing{ID: "1", Text: text, Draft: true} }
	for _, c := range []struct {
		name string
		said []chat.Outgoing
		want string
	}{
		{"grows", []chat.Outgoing{draft("One\nTw"), draft("One\nTwo\nThr"), {ID: "1", Text: "One\nTwo\nThree"}}, "\nR: One\nTwo\nThree\n\n"},
		{"the same again", []chat.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "One"}}, "\nR: One\n\n"},
		{"shorter for a moment", []chat.Outgoing{draft("One\nTwo\n"), draft("One\n"), {ID: "1", Text: "One\nTwo"}}, "\nR: One\nTwo\n\n"},
		{"other words", []chat.Outgoing{draft("One\nTwo\n"), {ID: "1", Text: "Four"}}, "\nR: One\nTwo\n\nR: Four\n\n"},
		{"edited later", []chat.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "Two"}}, "\nR: One\n\n\nR: Two\n\n"},
	} {
		if live, _ := said(t, c.said...); live.text.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, live.text.String(), c.want)
		}
	}
}

// hostileText has terminal escapes (titles, clipboard, colours, C1) and bidirectional controls.
const hostileText = "safe\x1b]0;title\x07\x1b]52;c;Y2xpcA==\x07\x1b[2J\x1b[31mred\r\b\x7f\u009b2Jc1\u0085\u202eback\u2066wards\u200f\u061c\u200e\u2069 end"

// commandsOf returns the control and bidirectional runes of a text.
func commandsOf(text string) string {
	var found strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\u009b") {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&found, "%U ", r)
		}
	}
	return found.String()
}

// TestTerminalEscapesDropped: no subcommand prints escapes from models or servers, as text or JSON.
func TestTerminalEscapesDropped(t *testing.T) {
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
		execute(t.Context(), append(args, "--config", config), console{in: strings.NewReader(input), out: &out, err: &errs})
		for name, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
			expect.Equal(t, commandsOf(text), "", "bot %s: %s has:\n%q", args[0], name, text)
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
	for line := range strings.SplitSeq(strings.TrimSpace(bot("tea", "", "memory", "export")), "\n") {
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

// TestTerminalOwnCodes: a live answer contains only the program's own escapes.
func TestTerminalOwnCodes(t *testing.T) {
	var out page
	s := &tty.Screen{Display: &out, Name: "R"}
	s.SetTyping(true)
	s.Progress(hostileText)
	for i := range hostileText {
		s.Show("1", hostileText[:i], false)
	}
	s.Show("1", hostileText, true)
	s.Tell("%s", hostileText)
	_, _ = s.Write([]byte(hostileText))
	text := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(out.text.String())
	if commandsOf(text) != "" || !strings.Contains(text, "\nR: safe]0;title]52;c;Y2xpcA==[2J[31mred2Jc1backwards end\n") {
		t.Errorf("%q", text)
	}
	if found := commandsOf(strings.Join(out.status, "")); found != "" || out.status[0] != "R is writing…" {
		t.Errorf("%s in %q", found, out.status)
	}
}

// TestPlainWriter: invalid bytes are no escapes either.
func TestPlainWriter(t *testing.T) {
	var out bytes.Buffer
	expect.Must(tty.StripControls(&out).Write([]byte("Grüße 😀\tund\n\u009b\u202ex\x9b\xffy\r\n")))(t)
	expect.Equal(t, out.String(), "Grüße 😀\tund\nx\ufffd\ufffdy\n")
}

// board is a transport that records messages.
type board struct {
	mu   sync.Mutex
	said map[string]string // by ID
	db   *store.DB
}

func (b *board) Send(_ context.Context, room string, m chat.Outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !m.Draft {
		b.said[m.ID] = room + ": " + m.Text
	}
	return nil
}
func (b *board) SendFinal(ctx context.Context, room string, m chat.Outgoing, _ []string, also func(context.Context, *sql.Tx) error) error {
	return errors.Join(store.InTx(ctx, b.db, func(tx *sql.Tx) error { return also(ctx, tx) }), b.Send(ctx, room, m))
}
func (b *board) Redact(context.Context, string, string) error           { return nil }
func (b *board) ShowTyping(context.Context, string, bool)               {}
func (b *board) MessageCancelled(context.Context, string) (bool, error) { return false, nil }
func (b *board) Ack(context.Context, string) error                      { return nil }
func (b *board) all() (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		texts = append(texts, text)
	}
	return texts
}

// TestJobs: due tasks pass through the whole bot: a reminder is said as it is, a prompt is worked
// on, and its result is said or kept silent.
func TestJobs(t *testing.T) {
	b := openTest(t, "timezone: UTC\nmemory: {backend: flat_file}\nharvest: {enabled: false}\n"+rehearsing)
	at := time.Now().Add(time.Second).UTC().Truncate(time.Second).Add(time.Second)
	ids := map[string]string{}
	for _, it := range []task.Task{{Content: "stretch"}, {Content: "news", Prompt: "Read the news."}, {Content: "quietly", Prompt: "Tidy up.", Background: true}, {Content: "elsewhere", Room: "!elsewhere"}} {
		if it.Room == "" {
			it.Room = terminalRoom
		}
		it.Label = trust.Label{Integrity: trust.User, Readers: trust.RoomReaders(it.Room)}
		it.User, it.Schedule = "@you", &task.Schedule{Type: "once", At: at.Format(time.RFC3339)}
		added := expect.Must(b.tasks.Add(t.Context(), it))(t)
		ids[it.Content] = added.ID
	}
	out := &board{said: map[string]string{}, db: b.db}
	s := b.connect(connection{transport: out, rooms: chat.OneRoom{Room: terminalRoom, Person: b.cfg.Owner()}, onlyRoom: terminalRoom})
	background(t, s.Manager.Run, s.runTasks)
	until(t, "not all runs are done", func() bool {
		runs := expect.Must(b.tasks.Runs(t.Context(), "", "", 10))(t)
		return len(slices.DeleteFunc(runs, func(r task.Run) bool { return r.State != "done" })) == 3
	})
	said := strings.Join(out.all(), "\n")
	if len(out.all()) != 2 || !strings.Contains(said, "terminal: ⏰ Reminder: stretch") || strings.Contains(said, "elsewhere") {
		t.Errorf("said %q", out.all())
	}
	for content, id := range ids {
		it := expect.Must(b.tasks.Find(t.Context(), id))(t)
		switch {
		case content == "elsewhere" && (it.Status != task.Active || it.Runs != 0):
			t.Errorf("a room of another program was looked after: %+v", it)
		case content != "elsewhere" && (it.Status != task.Completed || it.Runs != 1 || it.LastResult == ""):
			t.Errorf("%s: %+v", content, it)
		}
	}
}

// TestPrivateJob: a private task is not said once others are in its room. It is paused, and the
// operator sees why.
func TestPrivateJob(t *testing.T) {
	b := openTest(t, "timezone: UTC\nmemory: {backend: flat_file}\nharvest: {enabled: false}\n"+rehearsing)
	expect.Must(b.db.Exec(`INSERT INTO session (room, person, private, last_message_at) VALUES (?, '@bob:x', 1, 1)`, terminalRoom))(t)
	at := time.Now().Add(time.Second).UTC().Truncate(time.Second).Add(time.Second)
	lawyer := task.Task{Room: terminalRoom, User: "@ann:x", Content: "see the lawyer", Schedule: &task.Schedule{Type: "once", At: at.Format(time.RFC3339)},
		Label: trust.Label{Integrity: trust.User, Readers: trust.PersonReaders("@ann:x")}}
	it, err := b.tasks.Add(t.Context(), lawyer)
	expect.OK(t, err)
	out := &board{said: map[string]string{}, db: b.db}
	s := b.connect(connection{transport: out, rooms: chat.OneRoom{Room: terminalRoom, Person: b.cfg.Owner()}, onlyRoom: terminalRoom})
	background(t, s.Manager.Run, s.runTasks)
	until(t, "the task is not paused", func() bool {
		if it, err = b.tasks.Find(t.Context(), it.ID); err != nil {
			t.Fatal(err)
		}
		return it.Status != task.Active
	})
	if it.Status != task.Paused || it.Reason.String() != "other people can read this room now" || it.Runs != 0 || len(out.all()) != 0 {
		t.Errorf("%+v; said %q", it, out.all())
	}
}

// TestOutageKinds: only an unanswered model request is an outage.
func TestOutageKinds(t *testing.T) {
	for kind, want := range map[llm.Kind]bool{
		llm.Failed: false, llm.Unreachable: true, llm.RateLimited: true, llm.Denied: false, llm.NotFound: false, llm.TooLarge: false,
		llm.TimedOut: true, llm.Empty: false, llm.Garbled: false,
	} {
		failed := fmt.Errorf("session: %w", &llm.Error{Kind: kind, Model: "m", Err: errors.New("said the server")})
		expect.Equal(t, isOutage(failed), want, "%s: outage", kind)
	}
	if isOutage(nil) || isOutage(errors.New("unreachable")) {
		t.Error("what no model gave is an outage")
	}
}

// TestJobMentions: only a reminder mentions its person. A due task has its own label and is for its readers.
func TestJobMentions(t *testing.T) {
	b := &bot{cfg: &config.Config{}, tasks: task.NewStore(nil, task.Config{})}
	label := trust.Label{Integrity: trust.Guest, Readers: trust.PersonReaders("@ann:x")}
	reminder := task.Task{Room: "!r", User: "@you:x", Content: "stretch", Label: label}
	for name, c := range map[string]struct {
		run  func(*task.Run)
		want bool
	}{
		"a reminder":         {func(*task.Run) {}, true},
		"of nobody":          {func(r *task.Run) { r.Task.User = "" }, false},
		"a notice":           {func(r *task.Run) { r.Notice = true }, false},
		"a task":             {func(r *task.Run) { r.Task.Prompt = "Read the news." }, false},
		"a silent task":      {func(r *task.Run) { r.Task.Prompt, r.Task.Background = "Read the news.", true }, false},
		"a notice of a task": {func(r *task.Run) { r.Task.Prompt, r.Notice = "Read the news.", true }, false},
	} {
		r := task.Run{Task: reminder}
		c.run(&r)
		if got := b.jobEvent(t.Context(), r, false); got.Mention != c.want || got.Room != "!r" || got.Label != label || got.Sender != "@ann:x" {
			t.Errorf("%s: %+v, want mention %v", name, got, c.want)
		}
	}
}

func TestMain(m *testing.M) {
	mcptest.Main()
	storetest.DoNotWait()
	testscript.Main(m, map[string]func(){"bot": main})
}

// TestScript runs the real binary under the scripts in testdata/script.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition: func(name string) (bool, error) {
			if name != "weights" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return encoder.BuiltIn(), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("REVERIE_LLM_URL", discover.Rehearsal) // never somebody's real model
			return nil
		},
	})
}

// exits N PROGRAM ARGS… runs a program and requires its exit code; stdout and stderr match its output.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// runBot runs a command in this process and returns its exit code and output.
func runBot(t *testing.T, input string, args ...string) (code int, printed string) {
	t.Helper()
	var out bytes.Buffer
	code = execute(t.Context(), args, console{in: strings.NewReader(input), out: &out, err: &out})
	return code, out.String()
}

// small is a configuration of one model.
const small = "llm:\n  models:\n    - {name: a, base_url: \"http://127.0.0.1:1/v1\", model: m}\n"

// rehearsing is a configuration without Matrix, with the rehearsal model.
const rehearsing = "data: ./data\nllm:\n  models:\n    - {name: r, base_url: \"rehearsal:\", model: rehearsal}\n"

// configFile writes a configuration into a new folder.
func configFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, store.WriteFile(path, []byte(text)))
	return path
}

// openTest opens the bot of a configuration until the end of the test.
func openTest(t *testing.T, config string) *bot {
	t.Helper()
	return openLogged(t, config, io.Discard)
}

func openLogged(t *testing.T, config string, log io.Writer) *bot {
	t.Helper()
	cfg := expect.Must(parse(t, config))(t)
	b := expect.Must(openBot(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)), true))(t)
	t.Cleanup(b.close)
	return b
}

// background runs work until the end of the test or stop, and fails on its error.
func background(t *testing.T, work ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range work {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// parse reads a configuration from a folder of its own.
func parse(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	return config.Load(configFile(t, text), os.LookupEnv, true)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b := expect.Must(os.ReadFile(path))(t)
	return string(b)
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestTaskCommandRooms: --room shows only that room, and a command changes only its task.
func TestTaskCommandRooms(t *testing.T) {
	config := configFile(t, "timezone: UTC\n"+rehearsing)
	run := func(args ...string) string {
		t.Helper()
		code, text := runBot(t, "", append([]string{"task", "--config", config}, args...)...)
		expect.Equal(t, code, 0, "%q: exit, %s", args, text)
		return text
	}
	id := regexp.MustCompile(`task_[a-z2-7]{8}`)
	const canary = "CANARY-4711"
	theirs := id.FindString(run("add", "--room", "!a", "--when", "every day at 9", canary))
	mine := id.FindString(run("add", "--room", "!b", "--when", "every day at 9", "Water the plants"))
	before := run("show", theirs, "--json")
	for _, args := range [][]string{{"list", "--room", "!b", "--all"}, {"list", "--room", "!b", "--json"}, {"runs", "--room", "!b", theirs}, {"runs", "--room", "!b", "--json"}} {
		if text := run(args...); strings.Contains(text, canary) || strings.Contains(text, theirs) {
			t.Errorf("%q: %s", args, text)
		}
	}
	for _, args := range [][]string{{"pause", mine}, {"resume", mine}, {"complete", mine, "Anna", "wrote", "that", "they", "are", "watered"}, {"delete", mine}} {
		if text := run(args...); !strings.Contains(text, mine) || strings.Contains(text, canary) {
			t.Errorf("%q: %s", args, text)
		}
	}
	if after := run("show", theirs, "--json"); after != before || !strings.Contains(after, canary) {
		t.Errorf("it was %s and is %s", before, after)
	}
}
