// Package config loads, validates and writes the configuration file. It reports all faults of a
// file at once, each with line, key and remedy.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a container image without zone files still knows every time zone

	"reverie/internal/llm"
	"reverie/internal/matrix/gate"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/tool/web"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// Config is the validated configuration file, with defaults, environment variables and secret files
// filled in. config.example.yaml explains each key.
type Config struct {
	Name     string      `yaml:"name"`
	Data     string      `yaml:"data"` // absolute after loading
	Timezone string      `yaml:"timezone"`
	Matrix   *Matrix     `yaml:"matrix"` // nil = no Matrix; required by `bot run`
	LLM      LLM         `yaml:"llm"`
	Prompt   Prompt      `yaml:"prompt"`
	Context  Context     `yaml:"context"`
	Memory   Memory      `yaml:"memory"`
	Dreaming Dreaming    `yaml:"dreaming"`
	Harvest  Harvest     `yaml:"harvest"`
	Tasks    Tasks       `yaml:"tasks"`
	Seed     Seed        `yaml:"seed"`
	Subs     SubSessions `yaml:"sub_sessions"`
	MCP      MCP         `yaml:"mcp"`
	Skills   []string    `yaml:"skills"` // shared ones whose text is in every prompt
	Tools    Tools       `yaml:"tools"`

	Operation
	voice.Voice
	Loaded
}

// Operation is how the program is run and watched.
type Operation struct {
	Log     Log       `yaml:"log"`
	Web     Inspector `yaml:"web"`
	Metrics Listener  `yaml:"metrics"`
	Backup  Backup    `yaml:"backup"`
	Traces  struct {
		Endpoint string `yaml:"endpoint"` // of OTLP by HTTP; empty = off
	} `yaml:"traces"`
}

// Backup configures the scheduled backups. After loading, Passphrase includes one from a file.
type Backup struct {
	Dir            string `yaml:"dir"`      // absolute after loading; empty = no backups
	Schedule       string `yaml:"schedule"` // five cron fields
	Keep           int    `yaml:"keep"`     // how many
	Passphrase     Secret `yaml:"passphrase"`
	PassphraseFile string `yaml:"passphrase_file"`

	When task.Schedule // schedule
}

// Inspector configures the pages for owners. After loading, ClientSecret includes one from a file.
type Inspector struct {
	Listener
	OIDC struct {
		Issuer           string            `yaml:"issuer"` // empty = off
		ClientID         string            `yaml:"client_id"`
		ClientSecret     Secret            `yaml:"client_secret"`
		ClientSecretFile string            `yaml:"client_secret_file"`
		Users            map[string]string `yaml:"users"` // subject or verified e-mail address → Matrix user ID
	} `yaml:"oidc"`
}

// Listener configures a server of our own: the inspector, or figures for Prometheus.
type Listener struct {
	Listen string   `yaml:"listen"` // host:port; empty = off
	Hosts  []string `yaml:"hosts"`  // further names by which it is reached
}

// Loaded is what loading found out.
type Loaded struct {
	File         string         // this file's absolute path
	Zone         *time.Location // of all times shown and read
	Warnings     []string       // accepted, but worth knowing; full sentences
	UnsetSecrets []string       // secrets whose environment variable is not set
}

// Matrix configures the bot's account and who may talk to it. After loading, Password and
// AccessToken include those from files.
type Matrix struct {
	Homeserver      string   `yaml:"homeserver"`
	User            string   `yaml:"user"`
	Password        Secret   `yaml:"password"`
	PasswordFile    string   `yaml:"password_file"`
	AccessToken     Secret   `yaml:"access_token"`
	AccessTokenFile string   `yaml:"access_token_file"`
	DeviceName      string   `yaml:"device_name"`
	Owners          []string `yaml:"owners"`
	Allow           []string `yaml:"allow"`
	Bots            []string `yaml:"bots"`
	Devices         string   `yaml:"devices"` // whose devices must be cross-signed; empty = the owners'

	Media Media `yaml:"media"`
}

// Media limits files in messages.
type Media struct {
	MaxSize string `yaml:"max_size"` // per file, received or sent, such as 20MB
	Side    int    `yaml:"side"`     // pixels; larger pictures are scaled down for the model
	Text    int    `yaml:"text"`     // characters of a file shown to the model

	Bytes int64 // max_size
}

// LLM lists the language models and their roles.
type LLM struct {
	Models []Model             `yaml:"models"`
	Roles  map[string][]string `yaml:"roles"` // role → model names, in failover order; "chat" always exists

	Parallel     int `yaml:"parallel"`            // answers that are written at the same time
	PersonTokens int `yaml:"person_daily_tokens"` // of one person a day, of all models; 0 = no limit

	Embedding *Embedding `yaml:"embedding"` // nil = none
}

// Model is one model on one server. After loading, APIKey includes one from a file.
type Model struct {
	llm.ModelConfig
	APIKey      Secret `yaml:"api_key"`
	APIKeyFile  string `yaml:"api_key_file"`
	DailyTokens int    `yaml:"daily_tokens"` // most tokens a day; 0 = no limit
}

// Embedding is the embedding model. After loading, APIKey includes one from a file.
type Embedding struct {
	BaseURL    string        `yaml:"base_url"`
	Model      string        `yaml:"model"`
	APIKey     Secret        `yaml:"api_key"`
	APIKeyFile string        `yaml:"api_key_file"`
	Timeout    time.Duration `yaml:"timeout"` // 0 = 2 minutes
}

// Prompt configures the prompt.
type Prompt struct {
	Layout       string      `yaml:"layout"`
	Instructions literalText `yaml:"instructions"` // the owner's, for every conversation and job
	Steering     bool        `yaml:"steering"`     // notes for the model on the state of the conversation
	Budget       int         `yaml:"budget"`       // tokens of the sections; 0 = as many as the window holds
}

// Context limits the prompt and its parts.
type Context struct {
	Tier    int             `yaml:"tier"`     // 1–5; 0 = by the window
	Probe   bool            `yaml:"probe"`    // query this machine's GPUs
	VRAMMiB int             `yaml:"vram_mib"` // memory of the GPUs; 0 = detected
	Limits  ComponentLimits `yaml:"component_size_limits"`
}

// ComponentLimits are in characters.
type ComponentLimits struct {
	Memories int `yaml:"memories"`
	Tasks    int `yaml:"tasks"`
	Skills   int `yaml:"skills"`
}

// Memory configures where memories are stored and searched.
type Memory struct {
	Backend   string `yaml:"backend"`
	Isolation string `yaml:"isolation"` // strict or shared: scope of new memories

	Qdrant *Server `yaml:"qdrant"` // nil = none
}

// Server returns the server of the backend, or nil.
func (m Memory) Server() *Server { return map[string]*Server{"qdrant": m.Qdrant}[m.Backend] }

// Server is a vector database. After loading, APIKey includes one from a file.
type Server struct {
	URL        string `yaml:"url"` // of its REST interface
	APIKey     Secret `yaml:"api_key"`
	APIKeyFile string `yaml:"api_key_file"`
	Collection string `yaml:"collection"` // "" = reverie
}

// Dreaming configures when memory is consolidated.
type Dreaming struct {
	Schedule  string `yaml:"schedule"`  // five cron fields; empty = never
	Zone      string `yaml:"zone"`      // of the schedule; empty = timezone
	Notice    bool   `yaml:"notice"`    // send the owner a digest
	Questions int    `yaml:"questions"` // per person and night; 0 = none

	Budget DreamBudget `yaml:"budget"`

	When task.Schedule // schedule in zone; without a type: never
}

// DreamBudget limits the model use of one dream.
type DreamBudget struct {
	Calls   int `yaml:"calls"`
	Tokens  int `yaml:"tokens"`  // of requests and answers, estimated
	Minutes int `yaml:"minutes"` // of model time
}

// Harvest configures when conversations are read for facts.
type Harvest struct {
	Enabled  bool          `yaml:"enabled"`
	Messages int           `yaml:"messages"` // unread messages of a room that start a reading
	Idle     time.Duration `yaml:"idle"`     // silence that starts a reading
	Calls    int           `yaml:"calls"`    // requests in 24 hours, without those of dreams
}

// Tasks limits scheduled tasks with a prompt.
type Tasks struct {
	PerPerson  int `yaml:"per_person"`   // active ones of a person, over all rooms
	RunsPerDay int `yaml:"runs_per_day"` // in 24 hours, over all rooms
}

// Seed configures the beginning of a new conversation.
type Seed struct {
	Language string `yaml:"language"`
}

// SubSessions limits background work of the model.
type SubSessions struct {
	Parallel int           `yaml:"parallel"` // at the same time; 0 = disabled
	Depth    int           `yaml:"depth"`    // nesting of sub-sessions
	Timeout  time.Duration `yaml:"timeout"`  // per sub-session
	Rounds   int           `yaml:"rounds"`   // model requests per sub-session
}

// MCP lists the servers whose tools the model may use.
type MCP struct {
	Servers []MCPServer `yaml:"servers"`
}

// MCPServer is a server with tools, at a URL or started by a command. After loading, Token and
// Environment include those from files.
type MCPServer struct {
	Name        string            `yaml:"name"`
	URL         string            `yaml:"url"`
	Token       Secret            `yaml:"token"`
	TokenFile   string            `yaml:"token_file"`
	Command     string            `yaml:"command"`
	Environment map[string]Secret `yaml:"environment"`
	Folders     []string          `yaml:"folders"` // that the command may read; absolute after loading
	Network     bool              `yaml:"network"`
	Everyone    bool              `yaml:"everyone"` // not for owners alone
}

// Tools configures the tools of the model that need it.
type Tools struct {
	Code  bool     `yaml:"code"` // run_code, where the kernel can confine it
	Shell Shell    `yaml:"shell"`
	Files Files    `yaml:"files"`
	Web   WebTools `yaml:"web"`
}

// WebTools configures web_search and web_fetch.
type WebTools struct {
	Search       []SearchEngine `yaml:"search"` // in the order in which they are tried; empty = no web_search
	Fetch        bool           `yaml:"fetch"`
	Hosts        []string       `yaml:"hosts"`          // host:port, allowed whatever their address is
	FakeIPRanges []string       `yaml:"fake_ip_ranges"` // in which a proxy's DNS puts public names

	FakeIP []netip.Prefix // fake_ip_ranges
}

// SearchEngine is a search engine with a JSON interface. After loading, APIKey includes one from a
// file.
type SearchEngine struct {
	web.Engine
	APIKey     Secret `yaml:"api_key"`
	APIKeyFile string `yaml:"api_key_file"`
}

// Files configures the work folders of rooms.
type Files struct {
	Quota   string        `yaml:"quota"` // of one room's files, such as 100MB
	Folders []BoundFolder `yaml:"folders"`

	Bytes int64 // quota
}

// BoundFolder is a folder of the machine that one room sees.
type BoundFolder struct {
	Room  string `yaml:"room"`
	Path  string `yaml:"path"` // absolute after loading
	Name  string `yaml:"name"`
	Write bool   `yaml:"write"`
}

// Shell configures commands on this machine.
type Shell struct {
	Rooms      []string      `yaml:"rooms"` // by id; "*" is the direct chats of owners; empty = off
	Network    bool          `yaml:"network"`
	Time       time.Duration `yaml:"time"`       // of one command
	Background time.Duration `yaml:"background"` // of one in the background
}

// Log configures the operator's log.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Allowed values and names.
var (
	layouts    = store.Map(prompt.Layouts(), func(l prompt.Layout) string { return string(l) })
	isolations = []string{"strict", "shared"}
	roleNames  = append([]string{"advisor", "chat", "compaction", "dreaming", "harvest", "rerank", "sub_session", "transcription"},
		settings.ModeRoles()...)
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

const (
	defaultMaxOutput = 2048
	defaultTimeout   = 300 * time.Second
)

func defaultConfig() *Config {
	return &Config{
		Name: "Reverie", Data: "./data", Timezone: "Local",
		LLM:      LLM{Parallel: 4},
		Prompt:   Prompt{Layout: "stable", Steering: true, Budget: 16_384},
		Context:  Context{Probe: true, Limits: ComponentLimits{Memories: 10_000, Tasks: 5_000, Skills: 2_000}},
		Dreaming: Dreaming{Schedule: "0 3 * * *", Questions: 3, Budget: DreamBudget{Calls: 60, Tokens: 200_000, Minutes: 30}},
		Harvest:  Harvest{Enabled: true, Messages: 20, Idle: 15 * time.Minute, Calls: 500},
		Tasks:    Tasks{PerPerson: task.DefaultPerPerson, RunsPerDay: task.DefaultRunsPerDay},
		Memory:   Memory{Backend: "local_vector", Isolation: "strict"},
		Seed:     Seed{Language: "en"},
		Tools: Tools{Web: WebTools{Fetch: true}, Files: Files{Quota: "100MB"}, Code: true,
			Shell: Shell{Time: time.Minute, Background: time.Hour}},
		Subs:      SubSessions{Parallel: 2, Depth: 2, Timeout: 15 * time.Minute, Rounds: 15},
		Operation: Operation{Log: Log{Level: "info", Format: "text"}, Backup: Backup{Schedule: "30 4 * * *", Keep: 7}},
	}
}

// Load reads and checks the file at path, which must be absolute. Its error lists every fault with
// file, line and key, and never contains a value. env looks up an environment variable.
func Load(path string, env func(string) (string, bool), needsModel bool) (*Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration at %s; `bot init` writes one, --config names another", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, literal, err := parseConfig(path, data, filepath.Dir(path), env, needsModel)
	if err != nil {
		return nil, err
	}
	c.File = path
	// A group that may read it was chosen on purpose.
	if info, err := os.Stat(path); literal && err == nil && info.Mode().Perm()&0o004 != 0 {
		c.warn("%s holds a secret and other users of this machine can read it; chmod 600 %s", path, path)
	}
	return c, nil
}

// parseConfig is Load without the file. Paths are relative to dir, name is used in errors, and
// literal reports whether data contains a secret.
func parseConfig(name string, data []byte, dir string, env func(string) (string, bool), needsModel bool) (
	_ *Config, literal bool, _ error,
) {
	r := &reader{env: env, lines: map[string]int{}, needsModel: needsModel}
	c := defaultConfig()
	r.read(data, c)
	c.UnsetSecrets, c.Warnings = r.unsetSecrets, append(c.Warnings, r.removed...)
	if !slices.ContainsFunc(r.faults, func(f fault) bool { return f.key == "" }) {
		c.complete(r, dir) // skip for a file that is not YAML keys
	}
	if err := r.err(name); err != nil {
		return nil, false, err
	}
	return c, r.literal, nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Explain adds to err the secrets whose variable is not set. They may be the cause.
func (c *Config) Explain(err error) error {
	if len(c.UnsetSecrets) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(c.UnsetSecrets, "; "))
}

// TerminalUser is the person in `bot chat` if the file has no owner.
const TerminalUser = "owner"

// Owners returns the people who may do everything; at least one.
func (c *Config) Owners() []string {
	if c.Matrix == nil {
		return []string{TerminalUser}
	}
	return c.Matrix.Owners
}

// Owner returns the first owner, whose memories are in data/MEMORIES.txt.
func (c *Config) Owner() string { return c.Owners()[0] }

// Level returns a function for how far a user is trusted. The person at the machine is an owner.
func (c *Config) Level() func(user string) trust.Integrity {
	allowed := func(string) bool { return false }
	if m := c.Matrix; m != nil {
		allowed = gate.New(m.User, m.Owners, m.Allow, m.Bots...).Allows
	}
	owners := slices.Concat(c.Owners(), []string{TerminalUser})
	return func(user string) trust.Integrity { return trust.SenderIntegrity(user, true, owners, allowed) }
}

// Files returns the limits of files, also without Matrix.
func (c *Config) Files() Media {
	if c.Matrix == nil {
		return defaultMedia
	}
	return c.Matrix.Media
}
