package test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// TestLookAtInspector: in a real browser, with JavaScript and without, an owner logs in with the link of !web, follows
// every link of every page, and nothing breaks the policy, fails, or is wider than the window. `make look` keeps pictures.
func TestLookAtInspector(t *testing.T) {
	t.Parallel()
	chromium := findChromium(t)
	npmInstall(t, "look", "web client")
	bin, dir, port := buildBot(t), t.TempDir(), freePort(t)
	config := filepath.Join(dir, "config.yaml")
	expect.OK(t, os.WriteFile(config, fmt.Appendf(nil, "data: ./data\ntools: {code: false}\nweb: {listen: \"127.0.0.1:%d\"}\n"+
		"llm: {models: [{name: local, base_url: \"rehearsal:\", model: rehearsal}]}\n", port), 0o600))
	bot := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), bin, append([]string{"-c", config}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("bot %v: %v\n%s", args, err, out)
		}
	}
	expect.OK(t, os.WriteFile(filepath.Join(dir, "memories.jsonl"), []byte(lookMemories()), 0o600))
	bot("memory", "import", filepath.Join(dir, "memories.jsonl"))
	bot("dream")

	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	in, said := startChat(t, bin, config)
	say := func(line, answer string) string {
		t.Helper()
		before := len(said.String())
		_ = expect.Must(io.WriteString(in, line+"\n"))(t)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if found := regexp.MustCompile(answer).FindString(said.String()[before:]); found != "" {
				return found
			}
		}
		t.Fatalf("no answer to %q:\n%s", line, said)
		return ""
	}
	for _, line := range [][2]string{
		{"Hello!", "I only rehearse"}, {"Remember that my sister Jana is allergic to nuts", "I will remember"},
		{"Remind me tomorrow at 7:30 to water the ferns", "I will remind you"}, {"What do you know about Jana?", "given about"},
		{"Thank you, that helps with the cake", "rehearse"}, {"Remember that the ferry to the island leaves at 9:40", "I will remember"},
		{"What do you know about the ferry?", "given about"},
	} {
		say(line[0], line[1])
	}
	lookRows(t, filepath.Join(dir, "data", "bot.db"))
	link := func() string { return say("!web", `http://127\.0\.0\.1:\d+/login#[0-9a-f]{64}`) }
	shots := pictures(t)
	look, failed := exec.CommandContext(ctx, "node", filepath.Join("look", "inspector.mjs"), chromium, shots, link(), link()), &logBuffer{}
	look.Stderr = failed
	out, err := look.Output()
	if err != nil {
		t.Fatalf("the browser: %v\n%s", err, failed)
	}
	var found struct {
		Pages    int
		Problems []string
	}
	expect.OK(t, json.Unmarshal(out, &found))
	expect.EqualSlice(t, found.Problems, []string{})
	expect.False(t, found.Pages < 80, "only %d pages were found", found.Pages)
	t.Logf("%d pages, pictures in %s", found.Pages, shots)
}

// startChat runs `bot chat` until the end of the test.
func startChat(t *testing.T, bin, config string) (in io.WriteCloser, said *logBuffer) {
	t.Helper()
	chat, said := exec.CommandContext(t.Context(), bin, "-c", config, "chat"), &logBuffer{}
	chat.Stdout, chat.Stderr = said, said
	in = expect.Must(chat.StdinPipe())(t)
	expect.OK(t, chat.Start())
	t.Cleanup(func() { _ = in.Close(); _ = chat.Wait() })
	return in, said
}

// TestInspectorWithOIDC: in a real browser, an owner logs in by a real OpenID Connect provider. Another person of the
// provider is refused, and so is an answer of the provider that comes a second time.
func TestInspectorWithOIDC(t *testing.T) {
	t.Parallel()
	chromium := findChromium(t)
	npmInstall(t, "look", "OpenID Connect provider")
	// To a browser, localhost is another site than 127.0.0.1, so it keeps back the cookies that it keeps back from other sites.
	inspector, issuer := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("http://localhost:%d", freePort(t))
	config := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(config, fmt.Appendf(nil, "data: ./data\nlog: {level: debug}\n"+
		"web: {listen: %q, oidc: {issuer: %q, client_id: reverie, client_secret: s3cret, users: {\"anna@example.org\": owner}}}\n"+
		"llm: {models: [{name: local, base_url: \"rehearsal:\", model: rehearsal}]}\n", inspector, issuer), 0o600))
	_, log := startChat(t, buildBot(t), config)
	until(t, "the inspector is not up", func() bool { return strings.Contains(log.String(), "the inspector is up") })

	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	look := exec.CommandContext(ctx, "node", filepath.Join("look", "oidc.mjs"), chromium, pictures(t), issuer, "http://"+inspector)
	failed := &logBuffer{}
	look.Stderr = failed
	out, err := look.Output()
	if err != nil {
		t.Fatalf("the browser: %v\n%s\n%s", err, failed, log)
	}
	var saw map[string]struct {
		Status     int
		Path, Text string
	}
	expect.OK(t, json.Unmarshal(out, &saw))
	expect.Equal(t, saw["owner"].Path, "/")
	expect.Has(t, saw["owner"].Text, "Overview", "Tokens today", "Log out")
	for _, what := range []string{"replayed", "replayed-with-cookie", "stranger"} {
		expect.Equal(t, saw[what].Status, http.StatusForbidden, what)
		expect.Has(t, saw[what].Text, "The service did not name a person who may see these pages.")
		expect.Lacks(t, saw[what].Text, "Overview", "Log out")
	}
	expect.Equal(t, saw["stranger-later"].Path, "/login")
	expect.Has(t, log.String(), "this browser did not begin the login", "was used already", `the subject \"otto\" is nobody who may log in`)
}

// pictures returns the folder of the pictures.
func pictures(t *testing.T) string { return cmp.Or(os.Getenv("REVERIE_LOOK"), t.TempDir()) }

// lookMemories makes lines for `bot memory import`, of the last two months.
func lookMemories() string {
	var b strings.Builder
	places := []string{"the garden", "the office", "Lisbon", "the choir", "the workshop", "the lake"}
	habits := []string{"met %s at", "lost a blue scarf in", "wants to go with %s to", "was late for %s at", "planted thyme in", "sang with %s at"}
	people := []string{"Jana", "Milan", "Aunt Rosa", "Pavel", "Ines"}
	for i := range 140 {
		what := habits[i%len(habits)]
		if strings.Contains(what, "%s") {
			what = fmt.Sprintf(what, people[i%len(people)])
		}
		at := time.Now().AddDate(0, 0, -(i*i)%61).Add(-time.Duration(i) * time.Minute)
		fmt.Fprintf(&b, `{"text": "The owner %s %s (note %d).", "observed_at": %q, "source": "harvest", "scope": "private:owner"}`+"\n",
			what, places[(i/2)%len(places)], i+1, at.Format(time.RFC3339))
	}
	return b.String()
}

// lookRows adds what a short conversation does not have: the tokens of earlier days, and sub-sessions.
func lookRows(t *testing.T, path string) {
	t.Helper()
	db := expect.Must(store.Open(t.Context(), path, reverie.Migrations))(t)
	defer db.Close()
	for i := 1; i < 28; i++ {
		expect.OK(t, store.Exec(t.Context(), db, `INSERT INTO usage (day, model, person, tokens, estimated) VALUES (?, 'local', 'owner', ?, 0)`,
			time.Now().AddDate(0, 0, -i).Format(time.DateOnly), 6000+i*i*37%9000))
	}
	for i, what := range []string{"Read the timetable of the ferry", "Read the weather of the week", "Compare both and choose a day", "Write the packing list", "Summarise it for the owner"} {
		at := time.Now().Add(time.Duration(i-9) * time.Minute).UnixMilli()
		expect.OK(t, store.Exec(t.Context(), db, `INSERT INTO sub_session (id, depth, room, user, private, objective, mode, tools, timeout, status, created, ended, reported_at)
			VALUES (?, 1, 'terminal', 'owner', 1, ?, 'minimal', '[]', 60000, ?, ?, ?, 1)`, fmt.Sprintf("sub_look000%d", i), what,
			[]string{"completed", "completed", "completed", "failed", "completed"}[i], at, at+41_000))
	}
	for _, need := range [][2]int{{2, 0}, {2, 1}, {3, 2}, {4, 2}} {
		expect.OK(t, store.Exec(t.Context(), db, `INSERT INTO sub_session_need (node, needs) VALUES (?, ?)`, fmt.Sprintf("sub_look000%d", need[0]), fmt.Sprintf("sub_look000%d", need[1])))
	}
}

// freePort returns a port of this machine that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l := expect.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
