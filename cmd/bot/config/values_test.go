package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reverie/internal/test/expect"
	"strings"
	"testing"
	"time"
)

// TestConfigValues: allowed values of each key, and the fault for others.
func TestConfigValues(t *testing.T) {
	const matrix = `matrix: {homeserver: "https://example.org", user: "@b:x", owners: ["@me:x"], `
	qdrant := func(fields string) string { return "memory: {backend: qdrant, qdrant: {" + fields + "}}" }
	if _, err := parse(t, "/x", "name: A\n"); err == nil || !strings.HasPrefix(err.Error(), "config.yaml: llm.models: name at least one model, such as") {
		t.Errorf("without a model: %v", err)
	}
	for text, want := range map[string]string{ // "" = it is right
		"sub_sessions: {parallel: 99}":  "sub_sessions.parallel: write a number from 0 to 16",
		"sub_sessions: {timeout: 1s}":   "sub_sessions.timeout: write how long one may work",
		"tasks: {per_person: 0}":        "tasks.per_person: write a number from 1 to 1000",
		"skills: [tea, weekly-report]":  "",
		"skills: [../tea]":              "config.yaml:4: skills[0]: write the name of a skill",
		"skills: [tea, tea]":            "skills[1]: write the name of a skill in data/skills once",
		"skills: [a, b, c, d, e]":       "skills: name at most 4",
		"context: {tier: 6}":            "context.tier: write 1 to 5",
		"context: {tier: high}":         "context.tier: write a whole number",
		"context: {probe: maybe}":       "context.probe: write true or false",
		"context: {vram_mib: 99999999}": "context.vram_mib: write the memory",
		"  roles: {planing: [a]}":       "llm.roles.planing: unknown key; did you mean `planning`?",

		"context: {component_size_limits: {memories: 10}}": "context.component_size_limits.memories: write a number of characters",

		"prompt: {instructions: " + strings.Repeat("x", maxInstructions+1) + "}": "at most 8000 characters",

		"harvest: {idle: 5s}": "harvest.idle: ",

		`dreaming: {schedule: "0 3 30 2 *"}`:                         "of a time that comes",
		`dreaming: {schedule: "@daily"}`:                             "",
		`dreaming: {zone: Europe/Nowhere}`:                           "dreaming.zone: unknown time zone",
		`dreaming: {budget: {calls: 0}}`:                             "dreaming.budget.calls: write a number from 1 to",
		`memory: {backend: qdrant}`:                                  "memory.backend: qdrant needs a server",
		`mcp: {servers: [{name: "a b", url: "http://127.0.0.1:1"}]}`: "mcp.servers[0].name: write small letters",
		`mcp: {servers: [{name: a, url: "http://127.0.0.1:1"}, {name: a, url: "http://127.0.0.1:1"}]}`: "mcp.servers[1].name: another server has the same name",
		`mcp: {servers: [{name: a}]}`: "mcp.servers[0].url: ",
		`mcp: {servers: [{name: a, command: srv, folders: [/usr/bin], environment: {T: x}, network: true}]}`: "",
		`mcp: {servers: [{name: a, command: srv, url: "http://127.0.0.1:1"}]}`:                               "mcp.servers[0].command: a server has a command, or a url",
		`mcp: {servers: [{name: a, command: srv, token: x}]}`:                                                "mcp.servers[0].command: a server has a command, or a url",
		`mcp: {servers: [{name: a, url: "http://127.0.0.1:1", network: true}]}`:                              "mcp.servers[0].url: environment, folders and network are for",
		`mcp: {servers: [{name: a, url: "http://127.0.0.1:1", environment: {T: x}}]}`:                        "mcp.servers[0].url: environment, folders and network are for",
		`mcp: {servers: [{name: a, command: srv, folders: [./nowhere]}]}`:                                    "mcp.servers[0].folders[0]: there is no such folder",
		`mcp: {servers: [{name: a, command: srv, folders: [/]}]}`:                                            "mcp.servers[0].folders[0]: this folder and the one with the assistant's keys",
		`mcp: {servers: [{name: a, command: srv, environment: {"A B": x}}]}`:                                 "mcp.servers[0].environment.A B: write the name of a variable",
		`mcp: {servers: [{name: a, command: srv, environment: [x]}]}`:                                        "mcp.servers[0].environment: expected one line for each name",
		`mcp: {servers: [{name: a, command: srv, environment: {T_file: ./nowhere}}]}`:                        "mcp.servers[0].environment.T_file: ",
		`tools: {web: {search: [{kind: searxng, url: "http://127.0.0.1:8888"}, {kind: brave, api_key: x}]}}`: "",
		`tools: {web: {search: [{kind: google}]}}`:                                                           "tools.web.search[0].kind: write searxng, brave or json",
		`tools: {web: {search: [{kind: searxng}]}}`:                                                          "tools.web.search[0].url: missing",
		`tools: {web: {search: [{kind: brave}]}}`:                                                            "tools.web.search[0].api_key: missing",
		`tools: {web: {search: [{kind: json, url: "https://x/?q="}]}}`:                                       "tools.web.search[0].url: write {query}",
		`tools: {web: {search: [{kind: json, url: "https://x/?q={query}"}]}}`:                                "tools.web.search[0].results: missing",
		`tools: {web: {hosts: ["wiki.lan:8080", "[fd00::1]:80"]}}`:                                           "",
		`tools: {web: {hosts: [wiki.lan]}}`:                                                                  "tools.web.hosts[0]: write one host and its port",
		`tools: {web: {hosts: ["*.lan:80"]}}`:                                                                "tools.web.hosts[0]: write one host and its port",
		`tools: {web: {hosts: ["http://wiki.lan:80"]}}`:                                                      "tools.web.hosts[0]: write one host and its port",
		`tools: {web: {fake_ip_ranges: [198.18.0.0/16, "fc00::/18"]}}`:                                       "",
		`tools: {web: {fake_ip_ranges: [127.0.0.0/8]}}`:                                                      "tools.web.fake_ip_ranges[0]: write a range such as 198.18.0.0/15",
		`tools: {web: {fake_ip_ranges: [192.168.1.0/24]}}`:                                                   "tools.web.fake_ip_ranges[0]: write a range",
		`tools: {web: {fake_ip_ranges: [0.0.0.0/0]}}`:                                                        "tools.web.fake_ip_ranges[0]: write a range",
		`tools: {web: {fake_ip_ranges: ["::/0"]}}`:                                                           "tools.web.fake_ip_ranges[0]: write a range",
		`tools: {web: {fake_ip_ranges: ["fc00::/7"]}}`:                                                       "tools.web.fake_ip_ranges[0]: write a range",

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

// TestConfigWarnings: accepted values with a warning.
func TestConfigWarnings(t *testing.T) {
	qdrant := func(url string) string {
		return small + `memory: {backend: qdrant, qdrant: {url: "` + url + `", api_key: x}}`
	}
	for text, want := range map[string]string{
		small:                                "",
		strings.Replace(small, "/v1", "", 1): "llm.models[0].base_url: ",
		qdrant("http://q.example.org:6333"):  "memory.qdrant.url: the key and the vectors",
		qdrant("http://127.0.0.1:6333"):      "",
		qdrant("http://[::1]:6333"):          "",
		qdrant("http://localhost"):           "",
	} {
		c := expect.Must(parse(t, "/x", text))(t)
		if w := strings.Join(c.Warnings, "|"); (w == "") != (want == "") || !strings.HasPrefix(w, want) {
			t.Errorf("%s: warnings %q, want %q", text, w, want)
		}
	}
}

// TestFolders: a folder that a room sees exists and is apart from keys and conversations, also by links.
func TestFolders(t *testing.T) {
	base := expect.Must(filepath.EvalSymlinks(t.TempDir()))(t)
	home, notes := filepath.Join(base, "bot"), filepath.Join(base, "notes")
	for _, dir := range []string{filepath.Join(home, "data", "skills"), filepath.Join(home, "papers"), notes} {
		expect.OK(t, os.MkdirAll(dir, 0o700))
	}
	for link, target := range map[string]string{"link": "bot/data", "up": ".", "there": "notes"} {
		expect.OK(t, os.Symlink(filepath.Join(base, target), filepath.Join(base, link)))
	}
	folder := func(path, name string) (*Config, error) {
		return parse(t, home, small+fmt.Sprintf("tools: {files: {folders: [{room: \"!r:x\", path: %q, name: %q}]}}\n", path, name))
	}
	for _, path := range []string{notes, "../notes", filepath.Join(base, "there"), "papers"} {
		if c, err := folder(path, "notes"); err != nil || !filepath.IsAbs(c.Tools.Files.Folders[0].Path) || c.Tools.Files.Folders[0].Write {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/", base, home, ".", "data", "data/skills", "data/new", filepath.Join(base, "link"), filepath.Join(base, "link", "skills"),
		filepath.Join(base, "up"), filepath.Join(base, "up", "bot"), "../nowhere", ""} {
		_, err := folder(path, "notes")
		expect.False(t, err == nil || !strings.Contains(err.Error(), "tools.files.folders[0].path"), "%q: %v", path, err)
	}
	for _, name := range []string{"", "work", "data", "skills", "Notes", "a/b", "..", ".x", "a b"} {
		_, err := folder(notes, name)
		expect.False(t, err == nil || !strings.Contains(err.Error(), "tools.files.folders[0].name"), "%q: %v", name, err)
	}
	_, err := parse(t, home, small+"tools: {files: {quota: lots, folders: [{room: general, path: ../notes, name: a}, {room: general, path: ../notes, name: a}]}}\n")
	for _, key := range []string{"files.quota", "folders[0].room", "folders[1].name"} {
		expect.False(t, err == nil || !strings.Contains(err.Error(), key), "%s: %v", key, err)
	}
}

// TestShell: commands are off, rooms are named by id, and a command has a time.
func TestShell(t *testing.T) {
	c := expect.Must(parse(t, t.TempDir(), small))(t)
	expect.False(t, !c.Tools.Code || len(c.Tools.Shell.Rooms) > 0 || c.Tools.Shell.Network || c.Tools.Shell.Time != time.Minute, "%+v", c.Tools)
	c = expect.Must(parse(t, t.TempDir(), small+"tools: {code: false, shell: {rooms: [\"*\", \"!r:x\"], network: true, time: 5m}}\n"))(t)
	expect.False(t, c.Tools.Code || len(c.Tools.Shell.Rooms) != 2 || !c.Tools.Shell.Network || c.Tools.Shell.Time != 5*time.Minute, "%+v", c.Tools)
	_, err := parse(t, t.TempDir(), small+"tools: {shell: {rooms: [general], time: 1h, sudo: true}}\n")
	for _, key := range []string{"tools.shell.rooms", "tools.shell.time", "tools.shell.sudo"} {
		expect.False(t, err == nil || !strings.Contains(err.Error(), key), "%s: %v", key, err)
	}
}

// TestTraces: the endpoint is an address like others, and off by default.
func TestTraces(t *testing.T) {
	for endpoint, good := range map[string]bool{"": true, "http://127.0.0.1:4318": true, "https://otel.example.org/": true,
		"127.0.0.1:4318": false, "grpc://127.0.0.1:4317": false, "http://me:secret@otel.example.org": false, "http://otel.example.org?key=secret": false} {
		c, err := parse(t, "/x", small+fmt.Sprintf("traces: {endpoint: %q}\n", endpoint))
		switch {
		case good && (err != nil || c.Traces.Endpoint != endpoint):
			t.Errorf("%q: %v", endpoint, err)
		case !good:
			expect.ErrorContains(t, err, "config.yaml:4: traces.endpoint: write an address", endpoint)
		}
	}
}

// TestMetrics: the address is one of this machine with a port; one that others reach is warned of.
func TestMetrics(t *testing.T) {
	for listen, want := range map[string]string{
		"": "", "127.0.0.1:9464": "", "localhost:0": "", "[::1]:9464": "", "0.0.0.0:9464": "everybody", "[::]:9464": "everybody",
		"10.1.2.3:9464": "everybody",
		":9464":         "everybody", "example.org:9464": "everybody", "9464": "refused", "127.0.0.1": "refused", "127.0.0.1:http": "refused",
		"127.0.0.1:70000": "refused", "unix:/run/x": "refused", "http://127.0.0.1:9464": "refused",
	} {
		c, err := parse(t, "/x", small+fmt.Sprintf("metrics: {listen: %q}\n", listen))
		switch {
		case want == "refused":
			expect.ErrorContains(t, err, "config.yaml:4: metrics.listen: write an address and a port", listen)
		case err != nil:
			t.Errorf("%q: %v", listen, err)
		case strings.Contains(strings.Join(c.Warnings, "\n"), "metrics.listen: everybody") != (want != ""):
			t.Errorf("%q: warnings %q", listen, c.Warnings)
		}
	}
	_, err := parse(t, "/x", small+"metrics: {hosts: [reverie.lan, \"reverie.lan:9464\", \"*.lan\"]}\n")
	expect.ErrorContains(t, err, "metrics.hosts[2]: write a name")
}
