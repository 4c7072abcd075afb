package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestConfigRead: each section is read, with a value of each kind.
func TestConfigRead(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte("hunter4\n"), 0o600))
	c, err := parse(t, dir, strings.Replace(small, "model: m", "model: m, vision: true, temperature: 0.5, cache_marks: true", 1)+
		`  embedding: {base_url: "http://127.0.0.1:11434/api", model: nomic-embed-text, api_key_file: key, timeout: 9s}
sub_sessions: {parallel: 0, depth: 1, timeout: 90s, rounds: 4}
tasks: {per_room: 1, per_person: 2, runs_per_day: 3}
context: {tier: 5, probe: false, vram_mib: 24564, component_size_limits: {tasks: 300}}
dreaming: {budget: {calls: 5, tokens: 5000, minutes: 6}}
memory: {backend: qdrant, isolation: shared, qdrant: {url: "https://q.example.org", api_key_file: key}}
prompt:
  layout: phased
  steering: false
  instructions: |
    Prefer ${UNITS}.
    {agent_name} is kind.
`)
	must(t, err)
	if m := c.LLM.Models[0]; !*m.Vision || *m.Temperature != 0.5 || !m.CacheMarks || len(c.LLM.Roles["chat"]) != 1 {
		t.Errorf("models: %+v, %v", m, c.LLM.Roles)
	}
	for _, section := range []struct{ got, want any }{
		{*c.LLM.Embedding, EmbeddingConfig{"http://127.0.0.1:11434/api", "nomic-embed-text", "hunter4", "key", 9 * time.Second}},
		{c.Subs, SubConfig{0, 1, 90 * time.Second, 4}},
		{c.Tasks, TasksConfig{1, 2, 3}},
		{c.Context, ContextConfig{5, false, 24564, ComponentLimits{10_000, 300, 2_000}}},
		{c.Dreaming.Budget, DreamBudget{5, 5000, 6}},
		{*c.Memory.Qdrant, QdrantConfig{"https://q.example.org", "hunter4", "key", "reverie"}},
		{c.Prompt, PromptConfig{"phased", "Prefer ${UNITS}.\n{agent_name} is kind.\n", false}},
		{c.Memory.Isolation, "shared"},
	} {
		if section.got != section.want {
			t.Errorf("got %#v, want %#v", section.got, section.want)
		}
	}
}

// TestConfigValues: what may stand at a key, and what is said of another value.
func TestConfigValues(t *testing.T) {
	const matrix = `matrix: {homeserver: "https://example.org", user: "@b:x", owners: ["@me:x"], `
	qdrant := func(fields string) string { return "memory: {backend: qdrant, qdrant: {" + fields + "}}" }
	if _, err := parse(t, "/x", "name: A\n"); err == nil || !strings.HasPrefix(err.Error(), "config.yaml: llm.models: name at least one model, such as") {
		t.Errorf("without a model: %v", err)
	}
	for text, want := range map[string]string{ // "" = it is right
		"sub_sessions: {parallel: 99}":  "sub_sessions.parallel: write a number from 0 to 16",
		"sub_sessions: {timeout: 1s}":   "sub_sessions.timeout: write how long one may work",
		"tasks: {per_room: 0}":          "tasks.per_room: write a number from 1 to 1000",
		"context: {tier: 6}":            "context.tier: write 1 to 5",
		"context: {tier: high}":         "context.tier: write a whole number",
		"context: {probe: maybe}":       "context.probe: write true or false",
		"context: {vram_mib: 99999999}": "context.vram_mib: write the memory",
		"  roles: {planing: [a]}":       "llm.roles.planing: unknown key; did you mean `planning`?",

		"context: {component_size_limits: {memories: 10}}": "context.component_size_limits.memories: write a number of characters",

		"prompt: {instructions: " + strings.Repeat("x", maxInstructions+1) + "}": "at most 8000 characters",

		"harvest: {idle: 5s}": "harvest.idle: ",

		`dreaming: {schedule: "0 3 30 2 *"}`:       "of a time that comes",
		`dreaming: {schedule: "@daily"}`:           "",
		`dreaming: {zone: Europe/Nowhere}`:         "dreaming.zone: unknown time zone",
		`dreaming: {budget: {calls: 0}}`:           "dreaming.budget.calls: write a number from 1 to",
		`memory: {backend: qdrant}`:                "memory.backend: qdrant needs a server",
		qdrant(`url: "q.example.org:6333"`):        "memory.qdrant.url: write a full http or https address",
		qdrant(`url: "http://q", collection: "/"`): "memory.qdrant.collection: write letters",

		qdrant(`url: "http://q", api_key: a, api_key_file: key`): "memory.qdrant.api_key_file: the secret is given twice",

		`  embedding: {base_url: "http://127.0.0.1:1/api/embed"}`: "llm.embedding.base_url: leave out the last part",
		`  embedding: {base_url: "http://127.0.0.1:1/api"}`:       "llm.embedding.model: missing",
		`  embedding: {timeout: -1s}`:                             "llm.embedding.timeout: write how long",

		matrix + `devices: signed}`: "",
		matrix + `devices: owner}`:  "matrix.devices: write owners, signed or any; did you mean owners?",

		matrix + `media: {max_size: 1 GB}}`: "",
		matrix + `media: {max_size: "20"}}`: "matrix.media.max_size: write a size from 1kB to 1GB",
		matrix + `media: {max_size: 2GB}}`:  "matrix.media.max_size: write a size",

		`matrix: {homeserver: "https://example.org", user: "@r:x", owners: ["@r:x"]}`: "matrix.owners[0]: this is the bot's own account; name yours",
		`matrix: {homeserver: ""}`: `config.yaml:4: matrix.owners: name yourself, such as ["@me:example.org"]; an owner may do everything`,
	} {
		if _, err := parse(t, "/x", small+text+"\n"); (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter")) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestConfigWarnings: what is accepted, and worth knowing.
func TestConfigWarnings(t *testing.T) {
	qdrant := func(url string) string {
		return small + `memory: {backend: qdrant, qdrant: {url: "` + url + `", api_key: x}}`
	}
	for text, want := range map[string]string{
		small:                                "",
		strings.Replace(small, "/v1", "", 1): "llm.models[0].base_url: ",
		small + "web: {listen: \"127.0.0.1:8080\"}": "web.listen: ",
		qdrant("http://q.example.org:6333"):         "memory.qdrant.url: the key and the vectors",
		qdrant("http://127.0.0.1:6333"):             "",
		qdrant("http://[::1]:6333"):                 "",
		qdrant("http://localhost"):                  "",
	} {
		c, err := parse(t, "/x", text)
		must(t, err)
		if w := strings.Join(c.warnings, "|"); (w == "") != (want == "") || !strings.HasPrefix(w, want) {
			t.Errorf("%s: warnings %q, want %q", text, w, want)
		}
	}
}

// TestConfigYAML: what is no configuration at all gets one fault that helps.
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
		"roles as list": {small + "  roles: [a]\n", "config.yaml:4: llm.roles: expected one line for each role"},
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
		if _, err := parse(t, "/x", text.String()); err == nil || regexp.MustCompile(`main\.|!!|unmarshal|string\b|\bint\b|float|\bstruct\b`).MatchString(err.Error()) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
