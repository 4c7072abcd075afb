package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// shown are the scripted answers, by the question "show: NAME".
var shown = map[string]string{
	"everything": "## A table\n\nThese are the *largest* cities:\n\n| City | People | Since |\n|---|--:|---|\n| Berlin | 3,700,000 | 1237 |\n| Hamburg | 1,900,000 | 808 |\n\n" +
		"## Code\n\nIn `Go` it reads:\n\n```go\nfunc main() {\n\tif a < b && c > d {\n\t\tfmt.Println(\"<hello>\")\n\t}\n}\n```\n\n" +
		"## Formulas\n\nThe sum is $n(n+1)/2$, it costs $5 or $6, and\n\n$$\n\\sum_{k=1}^{n} k = \\frac{n(n+1)}{2}\n$$\n\n" +
		"## Lists\n\n1. First\n   - below\n2. Second\n\n- [x] done\n- [ ] to do\n\n> A quotation, [a link](https://example.org), H<sub>2</sub>O. That is all.",
	"group": "I **agree** with the table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all.",
}

// newShowModel is a model with the scripted answers of shown; otherwise it is the rehearsal model.
func newShowModel(t *testing.T) *model {
	other := rehearsal.Handler(rehearsal.Config{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var asked struct {
			Stream   bool
			Messages []struct {
				Role    string
				Content any
			}
		}
		_ = json.Unmarshal(body, &asked)
		name := ""
		for _, m := range asked.Messages {
			if m.Role == "user" {
				name = ""
				if found := regexp.MustCompile(`show: (\w+)`).FindStringSubmatch(fmt.Sprint(m.Content)); found != nil {
					name = found[1]
				}
			}
		}
		if shown[name] == "" || !asked.Stream {
			r.Body = io.NopCloser(bytes.NewReader(body))
			other.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(delta js, finish any) {
			line, err := json.Marshal(js{"object": "chat.completion.chunk", "model": "rehearsal", "choices": []js{{"index": 0, "delta": delta, "finish_reason": finish}}})
			if err != nil {
				panic(err) // strings always encode
			}
			fmt.Fprintf(w, "data: %s\n\n", line)
			_ = http.NewResponseController(w).Flush()
		}
		say(js{"content": shown[name]}, nil)
		say(js{}, "stop")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return &model{url: s.URL + "/v1"}
}

// browser runs Hydrogen in Chromium, see look/look.mjs.
type browser struct {
	stdin  io.Writer
	stdout *bufio.Reader
	stderr *logBuffer
	shots  string
}

// missing skips the test because of a missing tool, or fails it if pictures were requested.
func missing(t *testing.T, why string, args ...any) {
	t.Helper()
	if os.Getenv("REVERIE_LOOK") != "" {
		t.Fatalf(why, args...)
	}
	t.Skipf(why, args...)
}

// findChromium returns the path of the browser. It skips the test without one.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "Chromium is missing (on Debian: apt-get install chromium): nobody looks")
	return ""
}

// newBrowser builds the client and starts the browser. It skips the test without a browser.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	chromium := findChromium(t)
	npmInstall(t, "look", "web client")
	build := exec.CommandContext(t.Context(), "npm", "run", "build")
	build.Dir = "look"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("npm run build in test/look: %v\n%s", err, out)
	}
	b := &browser{stderr: &logBuffer{}, shots: os.Getenv("REVERIE_LOOK")}
	if b.shots == "" {
		b.shots = t.TempDir()
	} else if err := os.MkdirAll(b.shots, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join("look", "look.mjs"), chromium, t.TempDir())
	cmd.Stderr = b.stderr
	stdin := expect.Must(cmd.StdinPipe())(t)
	stdout := expect.Must(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	b.stdin, b.stdout = stdin, bufio.NewReaderSize(stdout, 16<<20)
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = stdin.Close() // the browser ends with its input
		go func() { defer close(ended); _ = cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	t.Logf("Chromium %s", b.answer(t, "start"))
	return b
}

// do runs one command of the browser.
func (b *browser) do(t *testing.T, command string, args js) json.RawMessage {
	t.Helper()
	line := js{"do": command}
	maps.Copy(line, args)
	out := expect.Must(json.Marshal(line))(t)
	if _, err := b.stdin.Write(append(out, '\n')); err != nil {
		t.Fatalf("the browser is gone: %v\n%s", err, b.stderr)
	}
	return b.answer(t, command)
}

func (b *browser) answer(t *testing.T, command string) json.RawMessage {
	t.Helper()
	type result struct {
		line []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := b.stdout.ReadBytes('\n')
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		var reply struct {
			OK    json.RawMessage
			Error string
		}
		if r.err != nil {
			t.Fatalf("the browser ended at %s: %v\n%s", command, r.err, b.stderr)
		}
		if err := json.Unmarshal(r.line, &reply); err != nil || reply.Error != "" {
			t.Fatalf("the browser: %s, %v\n%s", reply.Error, err, b.stderr)
		}
		return reply.OK
	case <-time.After(2 * time.Minute):
		t.Fatalf("the browser: no result of %s within two minutes\n%s", command, b.stderr)
		return nil
	}
}

func (b *browser) shot(t *testing.T, name, at string) {
	t.Helper()
	path := filepath.Join(b.shots, name+".png")
	b.do(t, "shot", js{"path": path, "at": at})
	t.Logf("%s", path)
}

// texts returns the texts of the timeline elements that a selector matches.
func (b *browser) texts(t *testing.T, selector string) (list []string) {
	t.Helper()
	found := b.do(t, "value", js{"expression": fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.textContent)", ".Timeline "+selector)})
	expect.OK(t, json.Unmarshal(found, &list))
	return list
}

// TestLook: a real web client shows the bot's tables, code, lists and replies. `make look` keeps the pictures.
// Holds M48, M49.
func TestLook(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	w := newWorld(t)
	you, friend := w.person(t, "you"), w.person(t, "friend")
	w.bot(t, "reverie", newShowModel(t), you.UserID(), friend.UserID())
	bot := "@reverie:" + w.home.Name
	site := httptest.NewServer(http.FileServer(http.Dir(filepath.Join("look", "dist"))))
	t.Cleanup(site.Close)
	b.do(t, "login", js{"address": site.URL + "/?homeserver=" + url.QueryEscape(w.home.URL), "user": "you", "password": password("you")})

	room := func(name string, direct, encrypted bool, invite ...string) string {
		id := expect.Must(you.CreateRoom(t.Context(), peer.Room{Name: name, Direct: direct, Encrypted: encrypted, Invite: append(invite, bot)}))(t)
		waitJoined(t, you, id, bot)
		return id
	}
	room("Reverie", true, true)
	room("Encrypted", true, true)
	group := room("Group", false, false, friend.UserID())
	expect.OK(t, friend.Join(t.Context(), group))

	for _, s := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"talk", func(t *testing.T) { lookAtATalk(t, b) }},
		{"everything", func(t *testing.T) { lookAtEverything(t, b) }},
		{"group", func(t *testing.T) {
			b.do(t, "open", js{"room": "Group"})
			expect.Must(friend.SayTo(t.Context(), group, "what do you think? show: group", bot))(t)
			b.do(t, "wait", js{"text": "That is all.", "within": ".Timeline_messageBody"})
			b.shot(t, "group", "")
			if quoted := b.texts(t, ".ReplyPreviewView"); len(quoted) != 1 || !strings.Contains(quoted[0], "friend") || !strings.Contains(quoted[0], "what do you think?") {
				t.Errorf("what is replied to is shown as %q; want the question of friend", quoted)
			}
		}},
	} {
		if !t.Run(s.name, s.run) {
			b.shot(t, "failed-"+s.name, "")
			t.Logf("the browser's console:\n%s", b.stderr)
		}
	}
}

// lookAtATalk is the picture of README.md: memory and a task, as somebody meets them first.
func lookAtATalk(t *testing.T, b *browser) {
	b.do(t, "open", js{"room": "Reverie"})
	for _, line := range []struct{ say, answer string }{
		{"Hello!", "I only rehearse"}, // the rehearsal model introduces itself, above the picture
		{"Remember that my sister Jana is allergic to nuts", "I will remember"},
		{"Remind me tomorrow at 7:30 to water the ferns", "I will remind you"},
		{"What do you know about Jana?", "given about"},
		{"!memory", "MEMORIES.txt"},
	} {
		b.do(t, "say", js{"text": line.say})
		b.do(t, "wait", js{"text": line.answer})
	}
	b.shot(t, "talk", "MEMORIES.txt")
}

func lookAtEverything(t *testing.T, b *browser) {
	b.do(t, "open", js{"room": "Encrypted"})
	b.do(t, "say", js{"text": "show: everything"})
	b.do(t, "wait", js{"text": "That is all."})
	b.shot(t, "top", "A table")
	b.shot(t, "end", "That is all.")
	if cells := strings.Join(b.texts(t, "table th, .Timeline table td"), "|"); cells != "City|People|Since|Berlin|3,700,000|1237|Hamburg|1,900,000|808" {
		t.Errorf("the table's cells read %q", cells)
	}
	if code := b.texts(t, "pre code"); len(code) != 1 || !strings.Contains(code[0], "\tif a < b && c > d {\n\t\tfmt.Println(\"<hello>\")") {
		t.Errorf("the code reads %q", code)
	}
	if small := strings.Join(b.texts(t, ".Timeline_messageBody code"), "\n"); !strings.Contains(small, "n(n+1)/2\n") || !strings.Contains(small, `\sum_{k=1}^{n} k = \frac{n(n+1)}{2}`) || strings.Contains(small, "5 or") {
		t.Errorf("formulas and code read %q", small)
	}
	if items := strings.Join(b.texts(t, ".Timeline_messageBody li"), "|"); !strings.Contains(items, "☑ done|☐ to do") {
		t.Errorf("lists read %q", items)
	}
}
