package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a container image without zone files still knows every time zone

	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/task"
)

// Config is what a person wrote in the configuration file, checked, with
// defaults, environment variables and secret files filled in. Each key is
// explained in config.example.yaml.
type Config struct {
	Name     string         `yaml:"name"`
	Data     string         `yaml:"data"` // absolute after loading
	Timezone string         `yaml:"timezone"`
	Matrix   *MatrixConfig  `yaml:"matrix"` // nil = no Matrix; only `bot run` minds
	LLM      LLMConfig      `yaml:"llm"`
	Prompt   PromptConfig   `yaml:"prompt"`
	Context  ContextConfig  `yaml:"context"`
	Memory   MemoryConfig   `yaml:"memory"`
	Dreaming DreamingConfig `yaml:"dreaming"`
	Harvest  HarvestConfig  `yaml:"harvest"`
	Tasks    TasksConfig    `yaml:"tasks"`
	Seed     SeedConfig     `yaml:"seed"`
	Subs     SubConfig      `yaml:"sub_sessions"`
	Web      WebConfig      `yaml:"web"`
	Log      LogConfig      `yaml:"log"`

	zone     *time.Location
	warnings []string // what is accepted but worth knowing, in plain sentences
	unset    []string // secrets whose environment variable is not set
}

// MatrixConfig is the bot's account and who may talk to it. After loading,
// Password and AccessToken hold what their files said.
type MatrixConfig struct {
	Homeserver      string   `yaml:"homeserver"`
	User            string   `yaml:"user"`
	Password        secret   `yaml:"password"`
	PasswordFile    string   `yaml:"password_file"`
	AccessToken     secret   `yaml:"access_token"`
	AccessTokenFile string   `yaml:"access_token_file"`
	DeviceName      string   `yaml:"device_name"`
	Owners          []string `yaml:"owners"`
	Allow           []string `yaml:"allow"`
	Bots            []string `yaml:"bots"`
	Devices         string   `yaml:"devices"` // whose devices must be signed; empty = the owners'

	Media MediaConfig `yaml:"media"`
}

// LLMConfig is the language models and which of them does what.
type LLMConfig struct {
	Models []ModelConfig       `yaml:"models"`
	Roles  map[string][]string `yaml:"roles"` // role → model names, in failover order; "chat" is always there

	Embedding *EmbeddingConfig `yaml:"embedding"` // nil = none
}

// ModelConfig is one model on one server. After loading, APIKey holds what its file said.
type ModelConfig struct {
	Name        string        `yaml:"name"`
	BaseURL     string        `yaml:"base_url"`
	APIKey      secret        `yaml:"api_key"`
	APIKeyFile  string        `yaml:"api_key_file"`
	Model       string        `yaml:"model"`
	Window      int           `yaml:"window"`     // tokens; 0 = found out from the server
	MaxOutput   int           `yaml:"max_output"` // tokens
	Timeout     time.Duration `yaml:"timeout"`
	Temperature *float32      `yaml:"temperature"` // nil = the server's own
	Vision      *bool         `yaml:"vision"`      // it can be shown pictures; nil = as its server says
	CacheMarks  bool          `yaml:"cache_marks"` // tell the server which parts of a request to keep
}

// PromptConfig says how the prompt is laid out.
type PromptConfig struct {
	Layout       string `yaml:"layout"`
	Instructions prose  `yaml:"instructions"` // the owner's own, for every conversation and job
	Steering     bool   `yaml:"steering"`     // notes for the model on how the conversation goes
}

// ContextConfig says how large a prompt is made, and how much of the model's window its
// parts may take.
type ContextConfig struct {
	Tier    int             `yaml:"tier"`     // 1–5; 0 = by the window
	Probe   bool            `yaml:"probe"`    // ask this machine's GPUs for their memory
	VRAMMiB int             `yaml:"vram_mib"` // what there is; 0 = asked
	Limits  ComponentLimits `yaml:"component_size_limits"`
}

// ComponentLimits are in characters.
type ComponentLimits struct {
	Memories int `yaml:"memories"`
	Tasks    int `yaml:"tasks"`
	Skills   int `yaml:"skills"`
}

// MemoryConfig says how memories are found.
type MemoryConfig struct {
	Backend   string `yaml:"backend"`
	Isolation string `yaml:"isolation"` // strict or shared: where new memories go

	Qdrant *QdrantConfig `yaml:"qdrant"` // nil = none
}

// DreamingConfig says when memory is consolidated.
type DreamingConfig struct {
	Schedule  string `yaml:"schedule"`  // five cron fields; empty = never
	Zone      string `yaml:"zone"`      // of the schedule; empty = timezone
	Notice    bool   `yaml:"notice"`    // tell the owner in the morning what was dreamt
	Questions int    `yaml:"questions"` // that a person is asked in a night; 0 = none

	Budget DreamBudget `yaml:"budget"`
}

// DreamBudget bounds what one dream asks of models.
type DreamBudget struct {
	Calls   int `yaml:"calls"`
	Tokens  int `yaml:"tokens"`  // of questions and answers together, about
	Minutes int `yaml:"minutes"` // of asking
}

// SeedConfig says how a new conversation begins.
type SeedConfig struct {
	Language string `yaml:"language"`
}

// SubConfig bounds what the model has done in the background.
type SubConfig struct {
	Parallel int           `yaml:"parallel"` // at the same time; 0 = there are none
	Depth    int           `yaml:"depth"`    // how deep they may ask for others
	Timeout  time.Duration `yaml:"timeout"`  // of work, for each
	Rounds   int           `yaml:"rounds"`   // requests to the model, for each
}

// WebConfig says where the status page is served.
type WebConfig struct {
	Listen string `yaml:"listen"` // host:port on loopback; empty = off
}

// LogConfig says what the operator's log looks like.
type LogConfig struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// What the configuration may say, and what holds where it says nothing.
var (
	layouts    = layoutNames()
	backends   = []string{"flat_file", "fts5", "local_vector", "qdrant"}
	isolations = []string{"strict", "shared"}
	roleNames  = append([]string{"chat", "compaction", "dreaming", "harvest", "sub_session", "transcription"}, settings.ModeRoles()...)
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

func layoutNames() []string {
	var names []string
	for _, l := range prompt.Layouts() {
		names = append(names, string(l))
	}
	return names
}

const (
	defaultMaxOutput = 2048
	defaultTimeout   = 300 * time.Second
)

func defaultConfig() *Config {
	return &Config{
		Name: "Reverie", Data: "./data", Timezone: "Local",
		Prompt:   PromptConfig{Layout: "stable", Steering: true},
		Context:  ContextConfig{Probe: true, Limits: ComponentLimits{Memories: 10_000, Tasks: 5_000, Skills: 2_000}},
		Dreaming: DreamingConfig{Schedule: "0 3 * * *", Questions: 3, Budget: DreamBudget{Calls: 60, Tokens: 200_000, Minutes: 30}},
		Harvest:  HarvestConfig{Enabled: true, Messages: 20, Idle: 15 * time.Minute, Calls: 500},
		Tasks:    TasksConfig{PerRoom: task.DefaultPerRoom, PerPerson: task.DefaultPerPerson, RunsPerDay: task.DefaultRunsPerDay},
		Memory:   MemoryConfig{Backend: "local_vector", Isolation: "strict"},
		Seed:     SeedConfig{Language: "en"},
		Subs:     SubConfig{Parallel: 2, Depth: 2, Timeout: 15 * time.Minute, Rounds: 15},
		Log:      LogConfig{Level: "info", Format: "text"},
	}
}

// loadConfig reads and checks the file at path. Its error names every fault
// with file, line and key, and never repeats a value.
func loadConfig(path string, needsModel bool) (*Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration at %s; `bot init` writes one, --config names another", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, literal, err := parseConfig(path, data, dir, os.LookupEnv, needsModel)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); literal && err == nil && info.Mode().Perm()&0o044 != 0 {
		c.warn("%s holds a secret and other users of this machine can read it; chmod 600 %s", path, path)
	}
	return c, nil
}

// parseConfig is loadConfig without the file: paths are relative to dir, name
// stands in errors, and literal tells whether a secret stands in data itself.
func parseConfig(name string, data []byte, dir string, env func(string) (string, bool), needsModel bool) (_ *Config, literal bool, _ error) {
	r := &reader{env: env, lines: map[string]int{}, needsModel: needsModel}
	c := defaultConfig()
	r.read(data, c)
	c.unset = r.unset
	if !slices.ContainsFunc(r.faults, func(f fault) bool { return f.key == "" }) {
		c.complete(r, dir) // of a file that is no configuration at all, nothing is missing
	}
	if err := r.err(name); err != nil {
		return nil, false, err
	}
	return c, r.literal, nil
}

func (c *Config) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// explain adds to err the secrets that it may be about because their variable is not set.
func (c *Config) explain(err error) error {
	if len(c.unset) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(c.unset, "; "))
}

// location is the zone that all times are shown and read in.
func (c *Config) location() *time.Location { return c.zone }

// terminalUser is who types in `bot chat` when the file names no owner.
const terminalUser = "owner"

// owners are the people who may do everything; there is always one.
func (c *Config) owners() []string {
	if c.Matrix == nil {
		return []string{terminalUser}
	}
	return c.Matrix.Owners
}

// owner is the person whose memories stand in data/MEMORIES.txt.
func (c *Config) owner() string { return c.owners()[0] }
