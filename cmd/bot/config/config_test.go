package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"reverie/internal/search/backend"
	"reverie/internal/test/expect"
)

var errTest = errors.New("a test")

var update = flag.Bool("update", false, "rewrite config.example.yaml from config.yaml.tmpl")

// environment holds the variables of these tests.
var environment = map[string]string{"MATRIX_PASSWORD": "hunter2", "LLM_KEY": "sk-hunter3", "EMPTY": ""}

func lookup(name string) (string, bool) { v, ok := environment[name]; return v, ok }

func parse(t testing.TB, dir, text string) (*Config, error) {
	t.Helper()
	c, _, err := parseConfig("config.yaml", []byte(text), dir, lookup, true)
	return c, err
}

// sample is a configuration that must be supported.
const sample = `
name: Reverie
data: ./data
timezone: Europe/Berlin
matrix:
  homeserver: https://matrix.example.org
  user: "@reverie:example.org"
  password: ${MATRIX_PASSWORD}        # or password_file, or access_token
  owners: ["@me:example.org"]
  allow: ["*:example.org"]            # who else may talk to it; empty = owners only
llm:
  models:
    - {name: local, base_url: "http://127.0.0.1:11434/v1", api_key: "${LLM_KEY}", model: qwen3:8b, window: 0, max_output: 2048}
  roles: {chat: [local], compaction: [local], dreaming: [local], harvest: [local], sub_session: [local]}
prompt: {layout: stable}
memory: {backend: fts5}
dreaming: {schedule: "0 3 * * *"}
seed: {language: en}
`

const small = "llm:\n  models:\n    - {name: a, base_url: \"http://127.0.0.1:1/v1\", model: m}\n"

func TestConfigDefaults(t *testing.T) {
	c := expect.Must(parse(t, "/x", small+"matrix:\n"))(t)
	if c.Matrix != nil || c.Name != "Reverie" || c.Data != "/x/data" || c.Zone != time.Local || c.Prompt.Layout != "stable" ||
		c.Memory.Backend != "local_vector" || c.LLM.Models[0].MaxOutput != 2048 || !slices.Equal(c.LLM.Roles["chat"], []string{"a"}) || c.Owner() == "" || len(c.Warnings) != 0 {
		t.Errorf("%#v", c)
	}
	for data, want := range map[string]string{"./d": "/x/d", "../d": "/d", "/abs/d": "/abs/d", "~/d": filepath.Join(os.Getenv("HOME"), "d")} {
		if c, err := parse(t, "/x", small+"data: "+data+"\n"); err != nil || c.Data != want {
			t.Errorf("data %q: %v, %v", data, c, err)
		}
	}
	// A small window leaves room for the prompt.
	if c, err := parse(t, "/x", strings.Replace(small, "model: m", "model: m, window: 2048", 1)); err != nil || c.LLM.Models[0].MaxOutput != 512 {
		t.Errorf("%#v, %v", c, err)
	}
}

// TestConfigFaults: every fault of a file at once, with its line, key and remedy.
func TestConfigFaults(t *testing.T) {
	known := backend.Names()
	last := len(known) - 1
	_, err := parse(t, "/x", `nam: Reverie
timezone: Mars/Olympus
homeserver: https://example.org
skills: {size: 5}
matrix:
  homeserver: matrix.example.org
  user: reverie
  user_id: "@reverie:example.org"
  password: ${NOT_SET}
  owners: ["@me:example.org", me]
  allow: ["*", "*:example.org"]
llm:
  models:
    - {name: local, base_url: "ftp://hunter2@somewhere", model: m, api_key: ["hunter2"], window: lots}
    - name: local
      base_url: "http://user:hunter2@example.org/v1"
      timeout: 120
      temperature: 3
    - {base_url: "https://example.org/v1/chat/completions", model: m, window: 100, max_output: 100}
    -
  roles: {chat: [local, other, local], harvest: [], chatt: [local], dreaming: local}
prompt: {layout: fancy}
memory: {backend: fts4}
dreaming: {schedule: "TZ=UTC"}
seed: {language: EN}
web: {listen: "8090", hosts: ["https://bot.example.org"]}
log: {level: trace, format: xml, Level: info}
name: "A"
name: "B"
`)
	if err == nil {
		t.Fatal("accepted")
	}
	want := strings.TrimSpace(`
config.yaml:1: nam: unknown key; did you mean ` + "`name`" + `?
config.yaml:2: timezone: unknown time zone; write one such as Europe/Berlin, or Local for this machine's
config.yaml:3: homeserver: unknown key; known here: name, data, timezone, matrix, llm, prompt, context, memory, dreaming, harvest, tasks, seed, sub_sessions, mcp, skills, tools, log, web, metrics, backup, traces, persona, character, style
config.yaml:4: skills: expected a list: put the value in [brackets], or one entry a line after a dash
config.yaml:6: matrix.homeserver: write a full http or https address, such as https://matrix.example.org
config.yaml:7: matrix.user: write the bot's full Matrix id in quotes, such as "@reverie:example.org"
config.yaml:8: matrix.user_id: unknown key; known here: homeserver, user, password, password_file, access_token, access_token_file, device_name, owners, allow, bots, devices, media
config.yaml:10: matrix.owners[1]: write one person's full Matrix id in quotes, such as "@me:example.org"
config.yaml:11: matrix.allow[0]: write "@user:server", or "*:server" for everybody there
config.yaml:14: llm.models[0].api_key: expected a single value here, not a list or further keys
config.yaml:14: llm.models[0].window: write a whole number, such as 2048
config.yaml:14: llm.models[0].base_url: write a full http or https address, such as http://127.0.0.1:11434/v1
config.yaml:15: llm.models[1].name: llm.models[0] has the same name; choose another
config.yaml:15: llm.models[1].model: missing; write the model's name on its server, such as qwen3:8b
config.yaml:16: llm.models[1].base_url: leave the user and password out of the address; there are keys for them
config.yaml:17: llm.models[1].timeout: write a time with its unit, such as 90s or 2m
config.yaml:18: llm.models[1].temperature: write a number from 0 to 2, or leave it out
config.yaml:19: llm.models[2].name: missing; choose any word, the roles use it
config.yaml:19: llm.models[2].base_url: leave out /chat/completions; the address ends before it, mostly in /v1
config.yaml:19: llm.models[2].max_output: write the most tokens of one answer, fewer than the window
config.yaml:20: llm.models[3]: an empty entry; remove it
config.yaml:21: llm.roles.chatt: unknown key; did you mean ` + "`chat`" + `?
config.yaml:21: llm.roles.dreaming: expected a list: put the value in [brackets], or one entry a line after a dash
config.yaml:21: llm.roles.chat[1]: there is no such model; llm.models has: local, local
config.yaml:21: llm.roles.chat[2]: this model is in the list already; name each once
config.yaml:21: llm.roles.harvest: the list is empty; name a model, or remove the line
config.yaml:22: prompt.layout: write stable, classic, tiered, split, layered or phased
config.yaml:23: memory.backend: write ` + strings.Join(known[:last], ", ") + " or " + known[last] + `; did you mean fts5?
config.yaml:24: dreaming.schedule: write the five fields minute, hour, day, month, weekday of a time that comes, such as "0 3 * * *"; empty = never
config.yaml:25: seed.language: write two small letters, such as en; data/prompts/SEED_en.txt belongs to it
config.yaml:26: web.listen: write an address and a port of this machine in quotes, such as "127.0.0.1:8090"; empty = off
config.yaml:26: web.hosts[0]: write a name, and a port if the address has one, such as "bot.example.org"
config.yaml:27: log.Level: unknown key; did you mean ` + "`level`" + `?
config.yaml:27: log.level: write debug, info, warn or error
config.yaml:27: log.format: write text or json
config.yaml:29: name: is a duplicate (first on line 28); keep one
`)
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Error("a secret is in the error")
	}
}

func TestConfigEnvironment(t *testing.T) {
	for value, want := range map[string]string{
		"${MATRIX_PASSWORD}": "hunter2", "a${MATRIX_PASSWORD}b${LLM_KEY}": "ahunter2bsk-hunter3", "$MATRIX_PASSWORD": "$MATRIX_PASSWORD",
		"pa$$word": "pa$$word", "$${MATRIX_PASSWORD}": "${MATRIX_PASSWORD}", "a$": "a$",
	} {
		if c, err := parse(t, "/x", small+"name: "+value+"\n"); err != nil || c.Name != want {
			t.Errorf("%s: %+v, %v", value, c, err)
		}
	}
	for value, want := range map[string]string{
		"${NOPE}": "variable NOPE is not set", "${": "write ${NAME}", "${a b}": "write ${NAME}", "${}": "write ${NAME}", "${1A}": "write ${NAME}",
		"${EMPTY}": "write a name",
	} {
		_, err := parse(t, "/x", small+"name: \""+value+"\"\n")
		if err == nil || !strings.Contains(err.Error(), "config.yaml:4: name: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
	// Numbers are numbers: no variable, no text.
	if _, err := parse(t, "/x", strings.Replace(small, "model: m", `model: m, window: "${LLM_KEY}"`, 1)); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v", err)
	}
	// A secret is missing only where it is used.
	c, err := parse(t, "/x", strings.Replace(small, "model: m", `model: m, api_key: "a${NOPE}"`, 1))
	if err != nil || c.LLM.Models[0].APIKey != "" || !slices.Equal(c.UnsetSecrets, []string{"llm.models[0].api_key: the environment variable NOPE is not set"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.Explain(errTest); !errors.Is(err, errTest) || !strings.HasSuffix(err.Error(), "(llm.models[0].api_key: the environment variable NOPE is not set)") {
		t.Error(err)
	}
	// An empty key is a server that wants none.
	if c, err := parse(t, "/x", strings.Replace(small, "model: m", `model: m, api_key: "${EMPTY}"`, 1)); err != nil || c.LLM.Models[0].APIKey != "" {
		t.Errorf("%v", err)
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "hunter2\r\n", "two": "hunter2\nhunter3\n", "empty": "\n"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	with := func(more string) string { return strings.Replace(small, "model: m", "model: m, "+more, 1) }
	c, err := parse(t, dir, with("api_key_file: good"))
	if err != nil || c.LLM.Models[0].APIKey != "hunter2" || len(c.Warnings) != 0 {
		t.Fatalf("%v %v", c, err)
	}
	expect.OK(t, os.Chmod(filepath.Join(dir, "good"), 0o644))
	c, err = parse(t, dir, with("api_key_file: ./good"))
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "chmod 600") || strings.Contains(c.Warnings[0], "hunter") {
		t.Errorf("%v, %v", c.Warnings, err)
	}
	for more, want := range map[string]string{
		"api_key_file: good, api_key: hunter2": "llm.models[0].api_key_file: the secret is given twice; keep either this or api_key",
		"api_key_file: missing":                "missing: no such file",
		"api_key_file: two":                    "must hold the secret on one line and nothing else",
		"api_key_file: empty":                  "must hold the secret on one line and nothing else",
		"api_key_file: .":                      "is a directory",
	} {
		if _, err := parse(t, dir, with(more)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", more, err)
		}
	}
	m := "matrix: {homeserver: \"https://example.org\", user: \"@r:x\", owners: [\"@me:x\"], "
	c, err = parse(t, dir, small+m+"password_file: good, access_token_file: good}\n")
	if err != nil || c.Matrix.Password != "hunter2" || c.Matrix.AccessToken != "hunter2" {
		t.Errorf("%v", err)
	}
	if _, err := parse(t, dir, small+m+"password_file: good, password: x, access_token: y, access_token_file: good}\n"); err == nil ||
		!strings.Contains(err.Error(), "matrix.password_file: the secret is given twice") || !strings.Contains(err.Error(), "matrix.access_token_file: the secret is given twice") {
		t.Errorf("%v", err)
	}
}

func TestSecretIsHidden(t *testing.T) {
	c := expect.Must(parse(t, "/x", sample))(t)
	s := c.Matrix.Password
	if string(s) != "hunter2" || c.LLM.Models[0].APIKey != "sk-hunter3" || len(c.Warnings) != 0 {
		t.Fatalf("the secrets cannot be read either, or it warns: %q", c.Warnings)
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T%v"} {
		fmt.Fprintf(&out, verb+"\n", s, s)
		fmt.Fprintf(&out, verb+"\n", c.Matrix, c.LLM)
	}
	fmt.Fprintln(&out, s, *c.Matrix, s.String())
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "secret", s, "matrix", c.Matrix, "config", c)
	}
	j := expect.Must(json.Marshal(c))(t)
	y := expect.Must(yaml.Marshal(c))(t)
	out.Write(j)
	out.Write(y)
	if text := out.String(); strings.Contains(text, "hunter") || strings.Contains(text, "68756e74") || !strings.Contains(text, hidden) {
		t.Errorf("a secret shows in:\n%s", text)
	}
}

func TestLoadConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if _, err := Load(path, lookup, true); err == nil || !strings.Contains(err.Error(), "`bot init`") || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir, lookup, true); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a folder: %v", err)
	}
	literal := strings.Replace(small, "model: m", "model: m, api_key: hunter2", 1)
	for text, want := range map[string]int{small: 0, literal: 1} {
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
		expect.OK(t, os.Chmod(path, 0o644))
		c, err := Load(path, lookup, true)
		if err != nil || c.Data != filepath.Join(dir, "data") || len(c.Warnings) != want {
			t.Errorf("%v, %v, %v", c, err, c.Warnings)
		}
	}
}

// exampleAnswers make config.example.yaml.
func exampleAnswers() Answers {
	a := DefaultAnswers()
	a.Timezone, a.Homeserver, a.User, a.Owner = "Europe/Berlin", "https://matrix.example.org", "@reverie:example.org", "@me:example.org"
	return a
}

// TestExampleConfig: the example is what `bot init` writes, loads, and explains every key.
func TestExampleConfig(t *testing.T) {
	const path = "../../../config.example.yaml"
	want := Render(exampleAnswers())
	if *update {
		expect.OK(t, os.WriteFile(path, want, 0o644))
	}
	got := expect.Must(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("config.example.yaml is not what config.yaml.tmpl makes; go test ./cmd/bot/config -run TestExampleConfig -update (-want +got):\n%s", diff)
	}
	c := expect.Must(parse(t, "/x", string(got)))(t)
	expect.Equal(t, len(c.Warnings), 0, "the example warns: %v", c.Warnings)
	for _, name := range keysOf(reflect.TypeFor[Config]()) {
		if !regexp.MustCompile(`(?m)^ *(# |- )?` + name + `:( |$)`).Match(got) {
			t.Errorf("%s is not in config.example.yaml", name)
		}
	}
}

// keysOf lists the names of all keys below t.
func keysOf(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t != rolesType && t.Kind() != reflect.Struct {
		return nil
	}
	names = keyNames(t)
	if t.Kind() == reflect.Struct {
		for _, f := range configFields(t) {
			names = append(names, keysOf(f.Type)...)
		}
	}
	return names
}

// FuzzConfig: no file causes a panic, every fault has a text, and a loaded configuration is valid
// when checked again.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(small))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("name: |\n  x\nllm: {models: [{}]}\n---\n"))
	f.Add([]byte("dreaming: {schedule: \"CRON_TZ= * * * * *\"}\nseed: {language: ${MATRIX_PASSWORD}}"))
	f.Add(Render(exampleAnswers()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("_file")) {
			t.Skip() // would open files of this machine
		}
		c, err := parse(t, "/x", string(data))
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" || !strings.HasPrefix(err.Error(), "config.yaml") || strings.Contains(err.Error(), "hunter2") && !bytes.Contains(data, []byte("hunter2")) {
				t.Errorf("error %q", err)
			}
			return
		}
		again := &reader{env: lookup, lines: map[string]int{}}
		if c.complete(again, "/x"); len(again.faults) > 0 {
			t.Errorf("loaded, and yet: %v", again.faults)
		}
		_ = c.Warnings
		if c.Name == "" || c.Zone == nil || c.Owner() == "" || len(c.LLM.Roles["chat"]) == 0 || !filepath.IsAbs(c.Data) {
			t.Errorf("%+v", c)
		}
	})
}

func TestWriteConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	expect.OK(t, Write(path, DefaultAnswers()))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	c, err := Load(path, lookup, true) // as it stands, with nothing set anywhere
	if err != nil || c.Matrix != nil || len(c.Warnings) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	before, _ := os.ReadFile(path)
	if err := Write(path, exampleAnswers()); err == nil || !strings.Contains(err.Error(), path+" is there already") {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
	// A link that leads nowhere is something, too.
	link := filepath.Join(dir, "link.yaml")
	expect.OK(t, os.Symlink("elsewhere.yaml", link))
	if err := Write(link, DefaultAnswers()); err == nil {
		t.Error("wrote through a link")
	}
	// The commented section works when the marks are taken away.
	_, section, _ := strings.Cut(string(before), "# matrix:\n")
	section, _, _ = strings.Cut(section, "\n\n# Language models")
	lines := strings.Split("# matrix:\n"+section, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "# ")
	}
	if c, err := parse(t, dir, small+strings.Join(lines, "\n")+"\n"); err != nil || c.Matrix == nil || c.Matrix.User != "@reverie:example.org" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestWriteConfigQuotes: any answer is written so that it is read back unchanged.
func TestWriteConfigQuotes(t *testing.T) {
	for _, odd := range []string{"yes", "null", "~", "12", "1e3", "a: b", "# x", `"q"`, "it's", "@x:y", "*a", "ä<b>&c", "- x", "!t", "%p", "`", "{a}", "[a]", "\\n", "2026-01-01", "0x10", "qwen3:8b"} {
		a := exampleAnswers()
		a.Model = odd
		text := Render(a)
		c, err := parse(t, "/x", string(text))
		if err != nil || c.LLM.Models[0].Model != odd {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

// TestConfigRead: each section is read, with a value of each kind.
func TestConfigRead(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(dir, "key"), []byte("hunter4\n"), 0o600))
	c := expect.Must(parse(t, dir, strings.Replace(small, "model: m", "model: m, vision: true, temperature: 0.5, cache_marks: true", 1)+
		`  embedding: {base_url: "http://127.0.0.1:11434/api", model: nomic-embed-text, api_key_file: key, timeout: 9s}
sub_sessions: {parallel: 0, depth: 1, timeout: 90s, rounds: 4}
tasks: {per_person: 2, runs_per_day: 3}
context: {tier: 5, probe: false, vram_mib: 24564, component_size_limits: {tasks: 300}}
dreaming: {budget: {calls: 5, tokens: 5000, minutes: 6}}
memory: {backend: qdrant, isolation: shared, qdrant: {url: "https://q.example.org", api_key_file: key}}
mcp: {servers: [{name: issues, url: "https://mcp.example.org/mcp", token_file: key, everyone: true},
  {name: prog, command: "srv --x", environment: {A: "${UNITS}", B_file: key}}]}
prompt:
  layout: phased
  steering: false
  instructions: |
    Prefer ${UNITS}.
    {agent_name} is kind.
`))(t)
	if m := c.LLM.Models[0]; !*m.Vision || *m.Temperature != 0.5 || !m.CacheMarks || len(c.LLM.Roles["chat"]) != 1 {
		t.Errorf("models: %+v, %v", m, c.LLM.Roles)
	}
	for _, section := range []struct{ got, want any }{
		{*c.LLM.Embedding, Embedding{"http://127.0.0.1:11434/api", "nomic-embed-text", "hunter4", "key", 9 * time.Second}},
		{c.Subs, SubSessions{0, 1, 90 * time.Second, 4}},
		{c.Tasks, Tasks{2, 3}},
		{c.Context, Context{5, false, 24564, ComponentLimits{10_000, 300, 2_000}}},
		{c.Dreaming.Budget, DreamBudget{5, 5000, 6}},
		{*c.Memory.Qdrant, Server{"https://q.example.org", "hunter4", "key", "reverie"}},
		{c.MCP.Servers[0].Token, Secret("hunter4")}, {c.MCP.Servers[0].Everyone, true}, {c.MCP.Servers[0].URL, "https://mcp.example.org/mcp"},
		{c.MCP.Servers[1].Environment["B"], Secret("hunter4")}, {len(c.MCP.Servers[1].Environment), 2}, {fmt.Sprint(c.MCP.Servers[1].Environment), "map[A:(hidden) B:(hidden)]"},
		{c.Prompt, Prompt{"phased", "Prefer ${UNITS}.\n{agent_name} is kind.\n", false, 16_384}},
		{c.Memory.Isolation, "shared"},
	} {
		expect.Equal(t, section.got, section.want)
	}
}

// TestConfigYAML: a file that is not a configuration gets one helpful fault.
func TestConfigYAML(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i, c := range "bcdefghij" {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "the file is empty"},
		"only comments": {"# name: x\n", "the file is empty"},
		"a word":        {"hello\n", "config.yaml:1: this is not a list of keys"},
		"bare at":       {"name: x\nmatrix:\n  user: @reverie:example.org\n", "must stand in quotes"},
		"bare star":     {small + "matrix:\n  password: *hunter2\n", "config.yaml: not valid YAML: unknown anchor; a value that begins with @, *, ` or % or"},
		"tab":           {"llm:\n\tmodels: []\n", "config.yaml:2: not valid YAML"},
		"colon":         {"name: a: b\n", "config.yaml:1: not valid YAML"},
		"open bracket":  {"matrix: {user: x\nname: y\n", "every quote and bracket is closed"},
		"two documents": {small + "---\nname: x\n", "config.yaml:4: a second document begins here"},
		"alias":         {"name: &hunter2 x\ndata: *hunter2\n", "config.yaml:2: data: YAML aliases are not used here"},
		"bomb":          {bomb, "config.yaml:1: a: unknown key"},
		"tag":           {"name: !hunter2 x\n", "config.yaml:1: name: YAML tags are not used here"},
		"complex key":   {"? [a]\n: b\n", "config.yaml:1: a key must be a single word"},
		"not text":      {"name: \xc3\x28", "not valid YAML"},
		"bool for text": {small + "name: true\n", "config.yaml:4: name: expected text"},
		"roles as list": {small + "  roles: [a]\n", "config.yaml:4: llm.roles: expected one line for each name"},
		"deep":          {strings.Repeat("[", 20000), "not valid YAML"},
		"BOM":           {"\ufeffname: x\nlog: [x]\n", "config.yaml:2: log: expected keys below it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, "/x", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	// Nothing of the Go program or of YAML's type names is in a fault, whatever stands where.
	for _, value := range []string{"x", "[x]", "[[x]]", "{x: y}", "5", "2.5", "true", "2001-01-01", "\"\""} {
		var text strings.Builder
		for _, f := range configFields(reflect.TypeFor[Config]()) {
			fmt.Fprintf(&text, "%s: %s\n", f.Tag.Get("yaml"), value)
		}
		if _, err := parse(t, "/x", text.String()); err == nil || regexp.MustCompile(`config\.[A-Z]|!!|unmarshal|string\b|\bint\b|float|\bstruct\b`).MatchString(err.Error()) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestRemovedKeys: a file with keys of earlier versions still works, and says so.
func TestRemovedKeys(t *testing.T) {
	c, _, err := parseConfig("config.yaml", []byte("tasks: {per_room: 20, per_person: 5}\n"), t.TempDir(), os.LookupEnv, false)
	expect.OK(t, err)
	expect.Equal(t, strings.Join(c.Warnings, "|"), "tasks.per_room is not used any more; delete it")
	expect.Equal(t, c.Tasks.PerPerson, 5)
}

// TestInspectorAddress: an address that other machines reach is accepted with a warning.
func TestInspectorAddress(t *testing.T) {
	for listen, warned := range map[string]bool{"127.0.0.1:8090": false, "[::1]:8090": false, "localhost:8090": false,
		"0.0.0.0:8090": true, ":8090": true, "192.168.1.5:8090": true, "[::]:8090": true} {
		c, _, err := parseConfig("config.yaml", []byte("web: {listen: '"+listen+"', hosts: [bot.example.org, 'localhost:9000', '[::1]:9000']}\n"),
			t.TempDir(), os.LookupEnv, false)
		expect.OK(t, err)
		expect.Equal(t, strings.Contains(strings.Join(c.Warnings, "|"), "web.listen: other machines reach"), warned, listen)
	}
}
