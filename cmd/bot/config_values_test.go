package main

import (
	"os"
	"path/filepath"
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
	for text, want := range map[string]string{ // "" = it is right
		"sub_sessions: {parallel: 99}":  "sub_sessions.parallel: write a number from 0 to 16",
		"sub_sessions: {depth: 0}":      "sub_sessions.depth: write a number from 1 to 4",
		"sub_sessions: {timeout: 1s}":   "sub_sessions.timeout: write how long one may work",
		"sub_sessions: {rounds: 1}":     "sub_sessions.rounds: write a number from 2 to 100",
		"tasks: {per_room: 0}":          "tasks.per_room: write a number from 1 to 1000",
		"tasks: {per_person: 9999}":     "tasks.per_person: write a number",
		"tasks: {runs_per_day: 0}":      "tasks.runs_per_day: write a number",
		"context: {tier: 6}":            "context.tier: write 1 to 5",
		"context: {tier: -1}":           "context.tier: write 1 to 5",
		"context: {tier: high}":         "context.tier: write a whole number",
		"context: {probe: maybe}":       "context.probe: write true or false",
		"context: {vram_mib: -1}":       "context.vram_mib: write the memory",
		"context: {vram_mib: 24GB}":     "context.vram_mib: write a whole number",
		"context: {vram_mib: 99999999}": "context.vram_mib: write the memory",
		"context: {tiers: 3}":           "did you mean `tier`?",
		"prompt: {steering: maybe}":     "prompt.steering: write true or false",
		"  roles: {planing: [a]}":       "llm.roles.planing: unknown key; did you mean `planning`?",

		"context: {component_size_limits: {memories: 10}}": "context.component_size_limits.memories: write a number of characters",
		"context: {component_size_limits: {skills: many}}": "context.component_size_limits.skills: write a whole number",

		`prompt: {instructions: "a\u0007b"}`:                                     "prompt.instructions: contains a control character",
		"prompt: {instructions: " + strings.Repeat("x", maxInstructions+1) + "}": "at most 8000 characters",

		"harvest: {messages: 0}":    "harvest.messages: ",
		"harvest: {idle: 5s}":       "harvest.idle: ",
		"harvest: {enabled: maybe}": "harvest.enabled: ",

		"harvest: {enabled: false, idle: 2h}": "",

		`dreaming: {schedule: "0 3 30 2 *"}`:       "of a time that comes",
		`dreaming: {schedule: "@every 1h"}`:        "write the five fields",
		`dreaming: {schedule: "@daily"}`:           "",
		`dreaming: {zone: Europe/Berlin}`:          "",
		`dreaming: {zone: Europe/Nowhere}`:         "dreaming.zone: unknown time zone",
		`dreaming: {budget: {calls: 0}}`:           "dreaming.budget.calls: write a number from 1 to",
		`dreaming: {budget: {tokens: -5}}`:         "dreaming.budget.tokens",
		`dreaming: {budget: {minutes: 601}}`:       "dreaming.budget.minutes",
		`dreaming: {budget: {hours: 1}}`:           "hours: unknown key",
		`memory: {backend: qdrant}`:                "memory.backend: qdrant needs a server",
		qdrant(`url: "q.example.org:6333"`):        "memory.qdrant.url: write a full http or https address",
		qdrant(``):                                 "memory.qdrant.url: missing",
		qdrant(`url: "http://q", collection: "/"`): "memory.qdrant.collection: write letters",

		qdrant(`url: "http://q", api_key: a, api_key_file: key`):   "memory.qdrant.api_key_file: the secret is given twice",
		qdrant(`url: "http://u:hunter9@q", api_key: a, host: "q"`): "memory.qdrant.host: unknown key",

		`  embedding: {base_url: "http://127.0.0.1:1/api/embed"}`: "llm.embedding.base_url: leave out the last part",
		`  embedding: {base_url: "http://127.0.0.1:1/api"}`:       "llm.embedding.model: missing",
		`  embedding: {timeout: -1s}`:                             "llm.embedding.timeout: write how long",
		`  embedding: {api_key: x, api_key_file: key}`:            "llm.embedding.api_key_file: the secret is given twice",
		`  embedding: {window: 5}`:                                "llm.embedding.window: unknown key; known here: base_url, model, api_key",

		matrix + `devices: owners}`: "",
		matrix + `devices: signed}`: "",
		matrix + `devices: any}`:    "",
		matrix + `devices: owner}`:  "matrix.devices: write owners, signed or any; did you mean owners?",

		matrix + `media: {max_size: 1 GB}}`:  "",
		matrix + `media: {max_size: 500kB}}`: "",
		matrix + `media: {max_size: "20"}}`:  "matrix.media.max_size: write a size from 1kB to 1GB",
		matrix + `media: {max_size: -1MB}}`:  "matrix.media.max_size: write a size",
		matrix + `media: {max_size: 1.5MB}}`: "matrix.media.max_size: write a size",
		matrix + `media: {max_size: 2GB}}`:   "matrix.media.max_size: write a size",

		`matrix: {homeserver: "https://example.org", user: "@r:x", owners: ["@r:x"]}`: "matrix.owners[0]: this is the bot's own account; name yours",
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
