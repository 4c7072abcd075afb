package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/lazyregexp"
	"reverie/internal/llm/discover"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/prompt/section"
	"reverie/internal/search/backend"
	"reverie/internal/skill"
	"reverie/internal/task"
	"reverie/internal/text"
	"reverie/internal/tool/web"
	"reverie/internal/voice"
)

// maxInstructions is the maximum length of prompt.instructions, in characters.
const maxInstructions = 8000

var languagePattern = lazyregexp.New(`^[a-z]{2}$`)

// rule is one check: if not right, the fault at key is reported with remedy.
type rule struct {
	key    string
	right  bool
	remedy string
}

func inRange[T cmp.Ordered](v, least, most T) bool { return least <= v && v <= most }

func rangeRule(key string, n, least, most int) rule {
	return rule{key, inRange(n, least, most), fmt.Sprintf("write a number from %d to %d", least, most)}
}

func oneOf(key, value string, known []string) rule {
	remedy := "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near := text.Nearest(value, known); len(near) > 0 {
		remedy += "; did you mean " + near[0] + "?"
	}
	return rule{key, slices.Contains(known, value), remedy}
}

func (r *reader) check(rules ...rule) {
	for _, x := range rules {
		if !x.right {
			r.addFault(x.key, "%s", x.remedy)
		}
	}
}

// rules returns the checks of values that depend on no other key.
func (c *Config) rules() []rule {
	const limits, budget = "context.component_size_limits.", "dreaming.budget."
	const characters = "write a number of characters from 200 to 1000000"
	_, homeErr := time.LoadLocation(c.Timezone)
	_, zoneErr := time.LoadLocation(c.Dreaming.Zone)
	return []rule{
		{"name", strings.TrimSpace(c.Name) != "" && utf8.RuneCountInString(c.Name) <= 64, "write a name of 1 to 64 characters"},
		{"data", c.Data != "", "name a folder, such as ./data"},
		{"timezone", homeErr == nil && c.Timezone != "", "unknown time zone; write one such as Europe/Berlin, or Local for this machine's"},
		oneOf("prompt.layout", c.Prompt.Layout, layouts),
		{"prompt.instructions", utf8.RuneCountInString(string(c.Prompt.Instructions)) <= maxInstructions,
			fmt.Sprintf("write at most %d characters here; longer texts belong into files such as data/AGENTS.md", maxInstructions)},
		{"prompt.budget", c.Prompt.Budget == 0 || inRange(c.Prompt.Budget, 1_000, 1_000_000),
			"write 1000 to 1000000 tokens, or 0 for no limit but the window"},
		{"context.tier", inRange(c.Context.Tier, 0, 5), "write 1 to 5, or 0 to have it follow the model's window"},
		{"context.vram_mib", inRange(c.Context.VRAMMiB, 0, 4<<20),
			"write the memory of this machine's GPUs in MiB, such as 24576, or 0 to have it found out"},
		{limits + "memories", inRange(c.Context.Limits.Memories, 200, 1_000_000), characters},
		{limits + "tasks", inRange(c.Context.Limits.Tasks, 200, 1_000_000), characters},
		{limits + "skills", inRange(c.Context.Limits.Skills, 200, 1_000_000), characters},
		oneOf("memory.backend", c.Memory.Backend, backend.Names()),
		{"memory.backend", backend.Of(c.Memory.Backend).Open == nil || c.Memory.Server() != nil,
			fmt.Sprintf(`%s needs a server; add %[1]s: {url: "http://127.0.0.1:6333"} below memory:`, c.Memory.Backend)},
		oneOf("memory.isolation", c.Memory.Isolation, isolations),
		{"dreaming.zone", zoneErr == nil && c.Dreaming.Zone != "Local",
			"unknown time zone; write one such as Europe/Berlin; empty = the key timezone"},
		{"dreaming.questions", inRange(c.Dreaming.Questions, 0, 20), "write a number from 0 to 20; 0 = nobody is asked"},
		rangeRule(budget+"calls", c.Dreaming.Budget.Calls, 1, 10_000),
		rangeRule(budget+"tokens", c.Dreaming.Budget.Tokens, 1, 100_000_000),
		rangeRule(budget+"minutes", c.Dreaming.Budget.Minutes, 1, 600),
		{"harvest.messages", inRange(c.Harvest.Messages, 1, 1000), "write a number from 1 to 1000; `enabled: false` turns it off"},
		{"harvest.calls", inRange(c.Harvest.Calls, 1, 100_000),
			"write a number from 1 to 100000, of requests in 24 hours; `enabled: false` turns it off"},
		{"harvest.idle", inRange(c.Harvest.Idle, time.Minute, 7*24*time.Hour),
			"write how long a pause is, from 1m to 168h, such as 15m"},
		rangeRule("tasks.per_person", c.Tasks.PerPerson, 1, 1000),
		rangeRule("tasks.runs_per_day", c.Tasks.RunsPerDay, 1, 100_000),
		rangeRule("llm.parallel", c.LLM.Parallel, 1, 256),
		rangeRule("sub_sessions.parallel", c.Subs.Parallel, 0, 16),
		rangeRule("sub_sessions.depth", c.Subs.Depth, 1, 4),
		rangeRule("sub_sessions.rounds", c.Subs.Rounds, 2, 100),
		{"sub_sessions.timeout", inRange(c.Subs.Timeout, 10*time.Second, time.Hour),
			"write how long one may work, from 10s to 1h, such as 5m"},
		{"tools.shell.rooms", !slices.ContainsFunc(c.Tools.Shell.Rooms, isNoRoom),
			`write ids of rooms in quotes, such as "!id:example.org", or "*" for the direct chats of owners`},
		{"tools.shell.time", inRange(c.Tools.Shell.Time, time.Second, 10*time.Minute),
			"write how long one command may run, from 1s to 10m, such as 1m"},
		{"tools.shell.background", inRange(c.Tools.Shell.Background, time.Minute, 24*time.Hour),
			"write how long one command may run in the background, from 1m to 24h, such as 1h"},
		{"seed.language", languagePattern().MatchString(c.Seed.Language),
			"write two small letters, such as en; data/prompts/SEED_en.txt belongs to it"},
		{"traces.endpoint", c.Traces.Endpoint == "" || IsAddress(c.Traces.Endpoint), "write an address such as http://127.0.0.1:4318"},
		oneOf("log.level", c.Log.Level, logLevels),
		oneOf("log.format", c.Log.Format, logFormats),
	}
}

func isNoRoom(id string) bool { return id != "*" && !strings.HasPrefix(id, "!") }

// complete checks all values, reads the secret files and fills in dependent values.
func (c *Config) complete(r *reader, dir string) {
	r.check(c.rules()...)
	zone, _ := time.LoadLocation(c.Timezone) // reported by a rule
	c.Zone = cmp.Or(zone, time.UTC)
	c.Data = Resolve(dir, c.Data)
	c.Voice.Dir = c.Data
	if c.Matrix != nil {
		c.completeMatrix(r, dir)
	}
	if d := &c.Dreaming; d.Schedule != "" {
		var err error
		d.When, err = task.Schedule{Type: "cron", Expression: d.Schedule}.Validate(time.Now(), time.UTC)
		d.When.Zone = d.Zone
		r.check(rule{"dreaming.schedule", err == nil,
			`write the five fields minute, hour, day, month, weekday of a time that comes, such as "0 3 * * *"; empty = never`})
	}
	r.check(rule{"skills", len(c.Skills) <= section.MaxActive,
		fmt.Sprintf("name at most %d; the model reads the others when it needs them", section.MaxActive)})
	for i, name := range c.Skills {
		r.check(rule{fmt.Sprintf("skills[%d]", i), skill.IsName(name) && !slices.Contains(c.Skills[:i], name),
			"write the name of a skill in data/skills once, without .md, such as weekly-report"})
	}
	c.checkVoice(r)
	c.checkListener(r, "metrics", c.Metrics, "127.0.0.1:9464",
		"everybody who reaches it can read the figures; let a firewall or a proxy decide who may")
	c.completeModels(r, dir)
	c.completeRoles(r)
	c.completeEmbedding(r, dir)
	c.completeQdrant(r, dir)
	c.completeMCP(r, dir)
	c.completeWeb(r, dir)
	c.checkListener(r, "web", c.Web.Listener, "127.0.0.1:8090",
		"other machines reach the inspector; put a proxy with a certificate before it, name its host under web.hosts, "+
			"and listen on 127.0.0.1")
	if o := &c.Web.OIDC; o.Issuer != "" {
		checkURL(r, "web.oidc.issuer", o.Issuer, "https://login.example.org/realms/home")
		r.check(rule{"web.oidc.client_id", o.ClientID != "", "missing; the service gave one when you registered this client"},
			rule{"web.oidc.users", len(o.Users) > 0, `missing; write who may log in, such as "anna@example.org": "@anna:example.org"`})
		c.secretFile(r, dir, "web.oidc.client_secret", &o.ClientSecret, o.ClientSecretFile)
	}
	c.completeFolders(r, dir)
	c.completeBackup(r, dir)
}

func (c *Config) completeBackup(r *reader, dir string) {
	k := &c.Backup
	var err error
	k.When, err = task.Schedule{Type: "cron", Expression: k.Schedule}.Validate(time.Now(), c.Zone)
	if k.Dir != "" {
		k.Dir = Resolve(dir, k.Dir)
	}
	r.check(rule{"backup.schedule", err == nil,
		`write the five fields minute, hour, day, month, weekday of a time that comes, such as "30 4 * * *"`},
		rangeRule("backup.keep", k.Keep, 1, 1000),
		rule{"backup.dir", k.Dir == "" || !holds(c.Data, k.Dir), "name a folder outside the data folder, best on another disk"})
	c.secretFile(r, dir, "backup.passphrase", &k.Passphrase, k.PassphraseFile)
}

// checkVoice checks who the assistant is and how it speaks. A persona is checked when it is read.
func (c *Config) checkVoice(r *reader) {
	for _, name := range slices.Sorted(maps.Keys(c.Character)) {
		remedy := voice.Character.ValueRemedy(name, c.Character[name])
		r.check(rule{"character." + name, remedy == "", remedy})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Style)) {
		remedy := voice.Speech.ValueRemedy(name, c.Style[name])
		r.check(rule{"style." + name, remedy == "", remedy})
	}
}

func (c *Config) completeMatrix(r *reader, dir string) {
	m := c.Matrix
	m.Devices, m.DeviceName = cmp.Or(m.Devices, string(e2ee.DevicesOwners)), cmp.Or(m.DeviceName, c.Name)
	media := &m.Media
	media.MaxSize, media.Side = cmp.Or(media.MaxSize, defaultMedia.MaxSize), cmp.Or(media.Side, defaultMedia.Side)
	media.Text, media.Bytes = cmp.Or(media.Text, defaultMedia.Text), parseSize(media.MaxSize)
	checkURL(r, "matrix.homeserver", m.Homeserver, "https://matrix.example.org")
	r.check(
		rule{"matrix.user", IsPerson(m.User), `write the bot's full Matrix id in quotes, such as "@reverie:example.org"`},
		rule{"matrix.owners", len(m.Owners) > 0, `name yourself, such as ["@me:example.org"]; an owner may do everything`},
		oneOf("matrix.devices", m.Devices, e2ee.DeviceRules()),
		rule{"matrix.media.max_size", inRange(m.Media.Bytes, 1000, 1_000_000_000), "write a size from 1kB to 1GB, such as 20MB"},
		rule{"matrix.media.side", inRange(m.Media.Side, 64, 4096), "write a number of pixels from 64 to 4096"},
		rule{"matrix.media.text", inRange(m.Media.Text, 400, 1_000_000), "write a number of characters from 400 to 1000000"},
	)
	for i, id := range m.Owners {
		key := fmt.Sprintf("matrix.owners[%d]", i)
		r.check(rule{key, IsPerson(id), `write one person's full Matrix id in quotes, such as "@me:example.org"`},
			rule{key, id != m.User, "this is the bot's own account; name yours"})
	}
	for key, list := range map[string][]string{"matrix.allow": m.Allow, "matrix.bots": m.Bots} {
		for i, id := range list {
			r.check(rule{fmt.Sprintf("%s[%d]", key, i), gate.CheckPattern(id) == nil,
				`write "@user:server", or "*:server" for everybody there`})
		}
	}
	// Neither is required: after a login, data/matrix has the token.
	c.secretFile(r, dir, "matrix.password", &m.Password, m.PasswordFile)
	c.secretFile(r, dir, "matrix.access_token", &m.AccessToken, m.AccessTokenFile)
}

func (c *Config) completeModels(r *reader, dir string) {
	r.check(rule{"llm.models", len(c.LLM.Models) > 0 || !r.needsModel,
		`name at least one model, such as {name: local, base_url: "http://127.0.0.1:11434/v1", model: qwen3:8b}`})
	const noLimit = "write the most tokens of one day, or 0 for no limit"
	r.check(rule{"llm.person_daily_tokens", c.LLM.PersonTokens >= 0, noLimit})
	for i := range c.LLM.Models {
		m := &c.LLM.Models[i]
		key := fmt.Sprintf("llm.models[%d].", i)
		first := slices.IndexFunc(c.LLM.Models, func(o Model) bool { return o.Name == m.Name })
		if most := min(defaultMaxOutput, max(m.Window/4, 1)); m.MaxOutput == 0 && m.Window > 0 {
			m.MaxOutput = most
		}
		m.MaxOutput, m.Timeout = cmp.Or(m.MaxOutput, defaultMaxOutput), cmp.Or(m.Timeout, defaultTimeout)
		r.check(rule{key + "name", m.Name != "", "missing; choose any word, the roles use it"},
			rule{key + "name", first == i, fmt.Sprintf("llm.models[%d] has the same name; choose another", first)})
		if m.BaseURL != discover.Rehearsal {
			c.checkModelURL(r, key+"base_url", m.BaseURL,
				"leave out /chat/completions; the address ends before it, mostly in /v1", "/chat/completions")
		}
		r.check(
			rule{key + "model", m.Model != "", "missing; write the model's name on its server, such as qwen3:8b"},
			rule{key + "window", m.Window >= 0, "write the size of the context window in tokens, or 0 to have it found out"},
			rule{key + "max_output", m.MaxOutput > 0 && (m.Window <= 0 || m.MaxOutput < m.Window),
				"write the most tokens of one answer, fewer than the window"},
			rule{key + "daily_tokens", m.DailyTokens >= 0, noLimit},
			rule{key + "timeout", m.Timeout >= 0, "write how long one answer may take, such as 5m"},
			rule{key + "temperature", m.Temperature == nil || inRange(*m.Temperature, 0, 2),
				"write a number from 0 to 2, or leave it out"},
		)
		c.secretFile(r, dir, key+"api_key", &m.APIKey, m.APIKeyFile)
	}
}

func (c *Config) completeRoles(r *reader) {
	var names []string
	for _, m := range c.LLM.Models {
		if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	for _, role := range roleNames {
		list, given := c.LLM.Roles[role]
		r.check(rule{"llm.roles." + role, !given || len(list) > 0, "the list is empty; name a model, or remove the line"})
		for i, name := range list {
			key := fmt.Sprintf("llm.roles.%s[%d]", role, i)
			r.check(rule{key, slices.Contains(names, name), "there is no such model; llm.models has: " + strings.Join(names, ", ")},
				rule{key, !slices.Contains(list[:i], name), "this model is in the list already; name each once"})
		}
	}
	if c.LLM.Roles == nil {
		c.LLM.Roles = map[string][]string{}
	}
	if len(c.LLM.Roles["chat"]) == 0 {
		c.LLM.Roles["chat"] = slices.DeleteFunc(names,
			func(name string) bool {
				return slices.Contains(c.LLM.Roles["transcription"], name) || slices.Contains(c.LLM.Roles["rerank"], name)
			})
	}
}

// checkModelURL checks the address of a model server. remedy is for one that ends with the path of a request.
func (c *Config) checkModelURL(r *reader, key, value, remedy string, ends ...string) {
	u := checkURL(r, key, value, "http://127.0.0.1:11434/v1")
	if u == nil {
		return
	}
	path := strings.TrimRight(u.Path, "/")
	r.check(rule{key, !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(path, end) }), remedy})
	if path == "" {
		c.warn("%s: the address has no path; most servers want /v1 at its end", key)
	}
}

// checkURL parses a URL. It reports a fault and returns nil if it is invalid.
func checkURL(r *reader, key, value, example string) *url.URL {
	u, err := url.Parse(value)
	switch {
	case value == "":
		r.addFault(key, "missing; write an address such as %s", example)
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		r.addFault(key, "write a full http or https address, such as %s", example)
	case u.User != nil:
		r.addFault(key, "leave the user and password out of the address; there are keys for them")
	case u.RawQuery != "" || u.Fragment != "":
		r.addFault(key, "leave out everything from the ? or # on")
	default:
		return u
	}
	return nil
}

func (c *Config) completeEmbedding(r *reader, dir string) {
	e := c.LLM.Embedding
	if e == nil {
		return
	}
	const key = "llm.embedding."
	c.checkModelURL(r, key+"base_url", e.BaseURL,
		"leave out the last part; the address ends before it, in /v1 or, for Ollama's own protocol, /api", "/embeddings", "/embed")
	r.check(rule{key + "model", e.Model != "", "missing; write the model's name on its server, such as nomic-embed-text"},
		rule{key + "timeout", e.Timeout >= 0, "write how long one request may take, such as 2m"})
	c.secretFile(r, dir, key+"api_key", &e.APIKey, e.APIKeyFile)
}

var collectionPattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

func (c *Config) completeQdrant(r *reader, dir string) {
	q := c.Memory.Qdrant
	if q == nil {
		return
	}
	const key = "memory.qdrant."
	u := checkURL(r, key+"url", q.URL, "http://127.0.0.1:6333")
	q.Collection = cmp.Or(q.Collection, "reverie")
	r.check(rule{key + "collection", collectionPattern().MatchString(q.Collection),
		"write letters, digits, - and _, 63 at most; every bot needs a name of its own"})
	c.secretFile(r, dir, key+"api_key", &q.APIKey, q.APIKeyFile)
	if u != nil && u.Scheme == "http" && q.APIKey != "" && !discover.IsLocal(u.Hostname()) {
		c.warn("%surl: the key and the vectors go over the network for everybody to read; write https, "+
			"or reach the server through a tunnel", key)
	}
}

var serverPattern = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)

func (c *Config) completeMCP(r *reader, dir string) {
	for i := range c.MCP.Servers {
		s, key := &c.MCP.Servers[i], fmt.Sprintf("mcp.servers[%d].", i)
		first := slices.IndexFunc(c.MCP.Servers, func(o MCPServer) bool { return o.Name == s.Name })
		r.check(
			rule{key + "name", serverPattern().MatchString(s.Name),
				"write small letters, digits, - and _, 32 at most; its tools are called NAME.TOOL"},
			rule{key + "name", s.Name == "" || first == i, "another server has the same name; choose another"},
		)
		if s.Command != "" {
			c.completeProgram(r, dir, key, s)
			continue
		}
		r.check(rule{key + "url", len(s.Environment)+len(s.Folders) == 0 && !s.Network,
			"environment, folders and network are for a server with a command"})
		u := checkURL(r, key+"url", s.URL, "https://mcp.example.org/mcp; a program of this machine has a command instead")
		c.secretFile(r, dir, key+"token", &s.Token, s.TokenFile)
		if u != nil && u.Scheme == "http" && s.Token != "" && !discover.IsLocal(u.Hostname()) {
			c.warn("%surl: the token goes over the network for everybody to read; write https", key)
		}
	}
}

// completeProgram checks a server that is started by a command. A variable NAME_file of its environment
// names the file with the value of NAME.
func (c *Config) completeProgram(r *reader, dir, key string, s *MCPServer) {
	r.check(rule{key + "command", s.URL == "" && s.Token == "" && s.TokenFile == "",
		"a server has a command, or a url with its token; keep one, and write a token of the command under environment"})
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		at := key + "environment."
		r.check(rule{at + name, variableName().MatchString(name), "write the name of a variable: letters, digits and _"})
		if of, isFile := strings.CutSuffix(name, "_file"); isFile {
			value := s.Environment[of]
			c.secretFile(r, dir, at+of, &value, string(s.Environment[name]))
			s.Environment[of] = value
			delete(s.Environment, name)
		}
	}
	for i, path := range s.Folders {
		s.Folders[i] = c.folder(r, fmt.Sprintf("%sfolders[%d]", key, i), dir, path)
	}
}

// folder returns the absolute path of a folder that others see. It must not hold keys and conversations.
func (c *Config) folder(r *reader, key, dir, path string) string {
	full := Resolve(dir, path)
	info, err := os.Stat(full)
	r.check(rule{key, path != "" && err == nil && info.IsDir(), "there is no such folder on this machine"},
		rule{key, !holds(full, c.Data) && !holds(c.Data, full) && !holds(full, dir),
			"this folder and the one with the assistant's keys and conversations are inside one another; name another"})
	return full
}

// checkListener checks a server of our own: web or metrics. open says what it means if other machines reach it.
func (c *Config) checkListener(r *reader, key string, s Listener, example, open string) {
	host, port, err := net.SplitHostPort(s.Listen)
	n, bad := strconv.Atoi(port)
	good := err == nil && bad == nil && inRange(n, 0, 65535)
	r.check(rule{key + ".listen", s.Listen == "" || good,
		"write an address and a port of this machine in quotes, such as " + strconv.Quote(example) + "; empty = off"})
	if ip, err := netip.ParseAddr(host); good && host != "localhost" && (err != nil || !ip.IsLoopback()) {
		c.warn("%s.listen: %s", key, open)
	}
	for i, host := range s.Hosts {
		r.check(rule{fmt.Sprintf("%s.hosts[%d]", key, i), hostPattern().MatchString(host),
			`write a name, and a port if the address has one, such as "bot.example.org"`})
	}
}

var hostPattern = lazyregexp.New(`^(?i:[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)

func (c *Config) completeWeb(r *reader, dir string) {
	w := &c.Tools.Web
	for i := range w.Search {
		e, key := &w.Search[i], fmt.Sprintf("tools.web.search[%d].", i)
		r.check(oneOf(key+"kind", e.Kind, []string{web.SearXNG, web.Brave, web.JSON}))
		switch e.Kind {
		case web.SearXNG:
			checkURL(r, key+"url", e.URL, "http://127.0.0.1:8888")
		case web.Brave:
			given := e.APIKey != "" || e.APIKeyFile != "" || len(c.UnsetSecrets) > 0
			r.check(rule{key + "api_key", given, "missing; Brave gives one to each account"})
		case web.JSON:
			checkURL(r, key+"url", strings.Split(e.URL, "?")[0], "https://search.example.org/api?q={query}")
			r.check(rule{key + "url", strings.Contains(e.URL, "{query}"), "write {query} where the query belongs"},
				rule{key + "results", e.Results != "", "missing; write the path to the list of results, such as web.results"})
			e.Title, e.Link, e.Snippet = cmp.Or(e.Title, "title"), cmp.Or(e.Link, "url"), cmp.Or(e.Snippet, "snippet")
		}
		c.secretFile(r, dir, key+"api_key", &e.APIKey, e.APIKeyFile)
	}
	for i, at := range w.Hosts {
		host, port, err := net.SplitHostPort(at)
		n, _ := strconv.Atoi(port)
		named := err == nil && host != "" && inRange(n, 1, 65535) && !strings.ContainsAny(host, "/@*")
		r.check(rule{fmt.Sprintf("tools.web.hosts[%d]", i), named,
			`write one host and its port, such as "wiki.lan:8080"; there are no patterns`})
	}
	w.FakeIP = nil
	for i, text := range w.FakeIPRanges {
		p, err := netip.ParsePrefix(text)
		r.check(rule{fmt.Sprintf("tools.web.fake_ip_ranges[%d]", i), err == nil && web.MayBeFake(p),
			"write a range such as 198.18.0.0/15; it must not contain addresses of this machine or of private networks"})
		w.FakeIP = append(w.FakeIP, p)
	}
}

var folderPattern = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,30}$`)

// completeFolders checks the folders of the machine that rooms see. None may hold keys and conversations.
func (c *Config) completeFolders(r *reader, dir string) {
	f := &c.Tools.Files
	f.Bytes = parseSize(f.Quota)
	r.check(rule{"tools.files.quota", inRange(f.Bytes, 1_000_000, 100_000_000_000), "write a size from 1MB to 100GB, such as 100MB"})
	for i := range f.Folders {
		b := &f.Folders[i]
		key := fmt.Sprintf("tools.files.folders[%d].", i)
		same := func(o BoundFolder) bool { return o.Room == b.Room && o.Name == b.Name }
		r.check(
			rule{key + "room", strings.HasPrefix(b.Room, "!"),
				`write a room's id in quotes, such as "!id:example.org"; it is in the room's settings`},
			rule{key + "name", folderPattern().MatchString(b.Name) && !slices.Contains(takenNames, b.Name),
				"write a short name of small letters, digits, - and _, but not: " + strings.Join(takenNames, ", ")},
			rule{key + "name", !slices.ContainsFunc(f.Folders[:i], same), "this room has a folder of that name already"},
		)
		b.Path = c.folder(r, key+"path", dir, b.Path)
	}
}

// takenNames begin paths of files already.
var takenNames = []string{"data", "work", "skills", "prompts", "personas", "media", "memories"}

// holds reports whether folder is inner, or has it somewhere inside, also by links.
func holds(folder, inner string) bool {
	rel, err := filepath.Rel(realPath(folder), realPath(inner))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// realPath follows the links of a path, as far as it exists.
func realPath(name string) string {
	if at, err := filepath.EvalSymlinks(name); err == nil {
		return at
	}
	if parent := filepath.Dir(name); parent != name {
		return filepath.Join(realPath(parent), filepath.Base(name))
	}
	return name
}

var defaultMedia = Media{MaxSize: "20MB", Side: 1024, Text: 40_000, Bytes: 20_000_000}

var sizePattern = lazyregexp.New(`^(\d{1,9}) ?(kB|KB|MB|GB)$`)

// parseSize parses a size in bytes; 0 if it is invalid.
func parseSize(s string) int64 {
	m := sizePattern().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // nine digits always parse
	return n * map[byte]int64{'k': 1000, 'K': 1000, 'M': 1_000_000, 'G': 1_000_000_000}[m[2][0]]
}

// IsPerson reports whether s is the full Matrix id of one person.
func IsPerson(s string) bool { return strings.HasPrefix(s, "@") && gate.CheckPattern(s) == nil }

// IsAddress reports whether s is a full http or https address.
func IsAddress(s string) bool { return checkURL(new(reader), "", s, "") != nil }

// IsVariableName reports whether s may be the name of an environment variable.
func IsVariableName(s string) bool { return variableName().MatchString(s) }
