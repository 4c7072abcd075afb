package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"

	"reverie/internal/matrix"
)

// maxInstructions is how many characters of prompt.instructions a prompt has room for.
const maxInstructions = 8000

var languageCode = regexp.MustCompile(`^[a-z]{2}$`)

// complete checks every value, reads the secret files and fills in what
// depends on other keys.
func (c *Config) complete(r *reader, dir string) {
	if n := utf8.RuneCountInString(c.Name); strings.TrimSpace(c.Name) == "" || n > 64 {
		r.fault("name", "write a name of 1 to 64 characters")
	}
	if c.Data == "" {
		r.fault("data", "name a folder, such as ./data")
	}
	c.Data = resolve(dir, c.Data)
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "" {
		r.fault("timezone", "unknown time zone; write one such as Europe/Berlin, or Local for this machine's")
		zone = time.UTC
	}
	c.zone = zone
	if c.Matrix != nil {
		c.completeMatrix(r, dir)
	}
	c.completeModels(r, dir)
	c.completeRoles(r)
	c.completeEmbedding(r, dir)
	c.completeQdrant(r, dir)
	oneOf(r, "prompt.layout", c.Prompt.Layout, layouts)
	if n := utf8.RuneCountInString(string(c.Prompt.Instructions)); n > maxInstructions {
		r.fault("prompt.instructions", "write at most %d characters here; longer texts belong into files such as data/AGENTS.md", maxInstructions)
	}
	if t := c.Context.Tier; t < 0 || t > 5 {
		r.fault("context.tier", "write 1 to 5, or 0 to have it follow the model's window")
	}
	if n := c.Context.VRAMMiB; n < 0 || n > 4<<20 {
		r.fault("context.vram_mib", "write the memory of this machine's GPUs in MiB, such as 24576, or 0 to have it found out")
	}
	for _, l := range []struct {
		key string
		n   int
	}{{"memories", c.Context.Limits.Memories}, {"tasks", c.Context.Limits.Tasks}, {"skills", c.Context.Limits.Skills}} {
		if l.n < 200 || l.n > 1_000_000 {
			r.fault("context.component_size_limits."+l.key, "write a number of characters from 200 to 1000000")
		}
	}
	_, c.backend = r.lines["memory.backend"]
	oneOf(r, "memory.backend", c.Memory.Backend, backends)
	oneOf(r, "memory.isolation", c.Memory.Isolation, isolations)
	oneOf(r, "log.level", c.Log.Level, logLevels)
	oneOf(r, "log.format", c.Log.Format, logFormats)
	if !languageCode.MatchString(c.Seed.Language) {
		r.fault("seed.language", "write two small letters, such as en; data/prompts/SEED_en.txt belongs to it")
	}
	if s := c.Dreaming.Schedule; s != "" && !validCron(s) {
		r.fault("dreaming.schedule", `write the five fields minute, hour, day, month, weekday, such as "0 3 * * *"; empty = never`)
	} else if _, err := c.dreamTimes(time.Now()); s != "" && err != nil {
		what, _, _ := strings.Cut(err.Error(), ", for example") // that one is of a task
		r.fault("dreaming.schedule", "%s", what)
	}
	for _, l := range []struct {
		key     string
		n, most int
	}{{"calls", c.Dreaming.Budget.Calls, 10_000}, {"tokens", c.Dreaming.Budget.Tokens, 100_000_000}, {"minutes", c.Dreaming.Budget.Minutes, 600}} {
		if l.n < 1 || l.n > l.most {
			r.fault("dreaming.budget."+l.key, "write a number from 1 to %d", l.most)
		}
	}
	if c.Dreaming.Questions < 0 || c.Dreaming.Questions > 20 {
		r.fault("dreaming.questions", "write a number from 0 to 20; 0 = nobody is asked")
	}
	c.completeHarvest(r)
	completeTasks(r, c.Tasks)
	completeSubSessions(r, c.Subs)
	if c.Web.Listen != "" && !loopback(c.Web.Listen) {
		r.fault("web.listen", "write an address of this machine itself, such as 127.0.0.1:8080; empty = off")
	}
}

func completeSubSessions(r *reader, s SubConfig) {
	for _, l := range []struct {
		key            string
		n, least, most int
	}{{"parallel", s.Parallel, 0, 16}, {"depth", s.Depth, 1, 4}, {"rounds", s.Rounds, 2, 100}} {
		if l.n < l.least || l.n > l.most {
			r.fault("sub_sessions."+l.key, "write a number from %d to %d", l.least, l.most)
		}
	}
	if s.Timeout < 10*time.Second || s.Timeout > time.Hour {
		r.fault("sub_sessions.timeout", "write how long one may work, from 10s to 1h, such as 5m")
	}
}

func (c *Config) completeMatrix(r *reader, dir string) {
	m := c.Matrix
	checkURL(r, "matrix.homeserver", m.Homeserver, "https://matrix.example.org")
	m.Media.check(r)
	person := func(id string) bool { return matrix.CheckPattern(id) == nil && id[0] == '@' }
	if !person(m.User) {
		r.fault("matrix.user", `write the bot's full Matrix id in quotes, such as "@reverie:example.org"`)
	}
	if len(m.Owners) == 0 {
		r.fault("matrix.owners", `name yourself, such as ["@me:example.org"]; an owner may do everything`)
	}
	for i, id := range m.Owners {
		key := fmt.Sprintf("matrix.owners[%d]", i)
		switch {
		case !person(id):
			r.fault(key, `write one person's full Matrix id in quotes, such as "@me:example.org"`)
		case id == m.User:
			r.fault(key, "this is the bot's own account; name yours")
		}
	}
	for i, id := range m.Allow {
		if matrix.CheckPattern(id) != nil {
			r.fault(fmt.Sprintf("matrix.allow[%d]", i), `write "@user:server", or "*:server" for everybody there`)
		}
	}
	for i, id := range m.Bots {
		if matrix.CheckPattern(id) != nil {
			r.fault(fmt.Sprintf("matrix.bots[%d]", i), `write "@bot:server", or "*:server" for everything there`)
		}
	}
	if m.Devices == "" {
		m.Devices = string(matrix.DevicesOwners)
	}
	oneOf(r, "matrix.devices", m.Devices, matrix.DeviceRules())
	// No password and no token is no fault: once logged in, data/matrix knows the account.
	c.secretFile(r, dir, "matrix.password", &m.Password, m.PasswordFile)
	c.secretFile(r, dir, "matrix.access_token", &m.AccessToken, m.AccessTokenFile)
	if m.DeviceName == "" {
		m.DeviceName = c.Name
	}
}

func (c *Config) completeModels(r *reader, dir string) {
	if len(c.LLM.Models) == 0 && r.models {
		r.fault("llm.models", "name at least one model, such as {name: local, base_url: \"http://127.0.0.1:11434/v1\", model: qwen3:8b}")
	}
	first := map[string]int{}
	for i := range c.LLM.Models {
		m := &c.LLM.Models[i]
		key := func(name string) string { return fmt.Sprintf("llm.models[%d].%s", i, name) }
		if m.Name == "" {
			r.fault(key("name"), "missing; choose any word, the roles use it")
		} else if j, twice := first[m.Name]; twice {
			r.fault(key("name"), "llm.models[%d] has the same name; choose another", j)
		} else {
			first[m.Name] = i
		}
		if m.BaseURL != rehearsalURL {
			c.checkModelURL(r, key("base_url"), m.BaseURL)
		}
		if m.Model == "" {
			r.fault(key("model"), "missing; write the model's name on its server, such as qwen3:8b")
		}
		if m.MaxOutput == 0 {
			m.MaxOutput = defaultMaxOutput
			if m.Window > 0 {
				m.MaxOutput = min(defaultMaxOutput, max(m.Window/4, 1))
			}
		}
		if m.Timeout == 0 {
			m.Timeout = defaultTimeout
		}
		if m.Window < 0 {
			r.fault(key("window"), "write the size of the context window in tokens, or 0 to have it found out")
		}
		if m.MaxOutput < 0 || m.Window > 0 && m.MaxOutput >= m.Window {
			r.fault(key("max_output"), "write the most tokens of one answer, fewer than the window")
		}
		if m.Timeout < 0 {
			r.fault(key("timeout"), "write how long one answer may take, such as 5m")
		}
		if t := m.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
			r.fault(key("temperature"), "write a number from 0 to 2, or leave it out")
		}
		c.secretFile(r, dir, key("api_key"), &m.APIKey, m.APIKeyFile)
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
		if given && len(list) == 0 {
			r.fault("llm.roles."+role, "the list is empty; name a model, or remove the line")
		}
		for i, name := range list {
			key := fmt.Sprintf("llm.roles.%s[%d]", role, i)
			if !slices.Contains(names, name) {
				r.fault(key, "there is no such model; llm.models has: %s", strings.Join(names, ", "))
			} else if slices.Contains(list[:i], name) {
				r.fault(key, "this model is in the list already; name each once")
			}
		}
	}
	if c.LLM.Roles == nil {
		c.LLM.Roles = map[string][]string{}
	}
	if len(c.LLM.Roles["chat"]) == 0 {
		c.LLM.Roles["chat"] = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(c.LLM.Roles["transcription"], name) })
	}
}

// secretFile fills *s from file, if one is given. key is that of the secret itself.
func (c *Config) secretFile(r *reader, dir, key string, s *secret, file string) {
	if file == "" {
		return
	}
	if *s != "" {
		r.fault(key+"_file", "the secret is given twice; keep either this or %s", key[strings.LastIndexByte(key, '.')+1:])
		return
	}
	file = resolve(dir, file)
	data, err := readSmall(file, maxSecretSize)
	if err != nil {
		r.fault(key+"_file", "%v", err)
		return
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") {
		r.fault(key+"_file", "%s must hold the secret on one line and nothing else", file)
		return
	}
	*s = secret(text)
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		c.warn("%s_file: every user of this machine can read %s; chmod 600 %s", key, file, file)
	}
}

// readSmall reads a file, but no more than limit bytes of it.
func readSmall(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Mode()&(os.ModeDir|os.ModeDevice) != 0 { // a pipe is fine: <(command) in a shell
		return nil, fmt.Errorf("%s is a folder or a device, not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes; this cannot be the right file", path, limit)
	}
	return data, err
}

// resolve makes a path from the file absolute: relative to dir, ~/ being the home folder.
func resolve(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func oneOf(r *reader, key, value string, known []string) {
	if slices.Contains(known, value) {
		return
	}
	text := "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1]
	if near := nearest(value, known); near != "" {
		text += "; did you mean " + near + "?"
	}
	r.fault(key, "%s", text)
}

func (c *Config) checkModelURL(r *reader, key, value string) {
	u := checkURL(r, key, value, "http://127.0.0.1:11434/v1")
	if u == nil {
		return
	}
	if strings.HasSuffix(u.Path, "/chat/completions") {
		r.fault(key, "leave out /chat/completions; the address ends before it, mostly in /v1")
	}
	if u.Path == "" || u.Path == "/" {
		c.warn("%s: the address has no path; most servers want /v1 at its end", key)
	}
}

// checkURL returns nil after noting a fault.
func checkURL(r *reader, key, value, example string) *url.URL {
	u, err := url.Parse(value)
	switch {
	case value == "":
		r.fault(key, "missing; write an address such as %s", example)
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		r.fault(key, "write a full http or https address, such as %s", example)
	case u.User != nil:
		r.fault(key, "leave the user and password out of the address; there are keys for them")
	case u.RawQuery != "" || u.Fragment != "":
		r.fault(key, "leave out everything from the ? or # on")
	default:
		return u
	}
	return nil
}

// validCron takes the five fields or @daily and its like, but no zone of its
// own: the timezone key says it once (and cron panics on half a zone).
func validCron(s string) bool {
	if strings.Contains(s, "TZ=") {
		return false
	}
	_, err := cron.ParseStandard(s)
	return err == nil
}

func loopback(listen string) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
