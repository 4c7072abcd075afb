// Package config reads and checks the configuration file, and writes the one to begin with. All faults of a file
// are told at once, each with its line, its key and what to write instead.
package config

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

	"reverie/internal/matrix/gate"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// Config is what a person wrote in the configuration file, checked, with
// defaults, environment variables and secret files filled in. Each key is
// explained in config.example.yaml.
type Config struct {
	Name     string      `yaml:"name"`
	Data     string      `yaml:"data"` // absolute after loading
	Timezone string      `yaml:"timezone"`
	Matrix   *Matrix     `yaml:"matrix"` // nil = no Matrix; only `bot run` minds
	LLM      LLM         `yaml:"llm"`
	Prompt   Prompt      `yaml:"prompt"`
	Context  Context     `yaml:"context"`
	Memory   Memory      `yaml:"memory"`
	Dreaming Dreaming    `yaml:"dreaming"`
	Harvest  Harvest     `yaml:"harvest"`
	Tasks    Tasks       `yaml:"tasks"`
	Seed     Seed        `yaml:"seed"`
	Subs     SubSessions `yaml:"sub_sessions"`
	Web      Web         `yaml:"web"`
	Log      Log         `yaml:"log"`

	Zone     *time.Location // that all times are shown and read in
	Warnings []string       // what is accepted but worth knowing, in plain sentences
	Unset    []string       // secrets whose environment variable is not set
}

// Matrix is the bot's account and who may talk to it. After loading,
// Password and AccessToken hold what their files said.
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
	Devices         string   `yaml:"devices"` // whose devices must be signed; empty = the owners'

	Media Media `yaml:"media"`
}

// Media bounds what comes with messages in files.
type Media struct {
	MaxSize string `yaml:"max_size"` // of a file that is fetched or sent, such as 20MB
	Side    int    `yaml:"side"`     // pixels; pictures are made no larger for the model
	Text    int    `yaml:"text"`     // characters of a file that the model gets

	Bytes int64 // max_size
}

// LLM is the language models and which of them does what.
type LLM struct {
	Models []Model             `yaml:"models"`
	Roles  map[string][]string `yaml:"roles"` // role → model names, in failover order; "chat" is always there

	Embedding *Embedding `yaml:"embedding"` // nil = none
}

// Model is one model on one server. After loading, APIKey holds what its file said.
type Model struct {
	Name        string        `yaml:"name"`
	BaseURL     string        `yaml:"base_url"`
	APIKey      Secret        `yaml:"api_key"`
	APIKeyFile  string        `yaml:"api_key_file"`
	Model       string        `yaml:"model"`
	Window      int           `yaml:"window"`     // tokens; 0 = found out from the server
	MaxOutput   int           `yaml:"max_output"` // tokens
	Timeout     time.Duration `yaml:"timeout"`
	Temperature *float32      `yaml:"temperature"` // nil = the server's own
	Vision      *bool         `yaml:"vision"`      // it can be shown pictures; nil = as its server says
	CacheMarks  bool          `yaml:"cache_marks"` // tell the server which parts of a request to keep
}

// Embedding is the model that turns texts into vectors. After loading,
// APIKey holds what its file said.
type Embedding struct {
	BaseURL    string        `yaml:"base_url"`
	Model      string        `yaml:"model"`
	APIKey     Secret        `yaml:"api_key"`
	APIKeyFile string        `yaml:"api_key_file"`
	Timeout    time.Duration `yaml:"timeout"` // 0 = 2 minutes
}

// Prompt says how the prompt is laid out.
type Prompt struct {
	Layout       string `yaml:"layout"`
	Instructions prose  `yaml:"instructions"` // the owner's own, for every conversation and job
	Steering     bool   `yaml:"steering"`     // notes for the model on how the conversation goes
}

// Context says how large a prompt is made, and how much of the model's window its
// parts may take.
type Context struct {
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

// Memory says how memories are found.
type Memory struct {
	Backend   string `yaml:"backend"`
	Isolation string `yaml:"isolation"` // strict or shared: where new memories go

	Qdrant *Server `yaml:"qdrant"` // nil = none
}

// Server is that of the backend; nil = nothing is said of one.
func (m Memory) Server() *Server { return map[string]*Server{"qdrant": m.Qdrant}[m.Backend] }

// Server is where vectors are compared. After loading, APIKey holds what its file said.
type Server struct {
	URL        string `yaml:"url"` // of its REST interface
	APIKey     Secret `yaml:"api_key"`
	APIKeyFile string `yaml:"api_key_file"`
	Collection string `yaml:"collection"` // "" = reverie
}

// Dreaming says when memory is consolidated.
type Dreaming struct {
	Schedule  string `yaml:"schedule"`  // five cron fields; empty = never
	Zone      string `yaml:"zone"`      // of the schedule; empty = timezone
	Notice    bool   `yaml:"notice"`    // tell the owner in the morning what was dreamt
	Questions int    `yaml:"questions"` // that a person is asked in a night; 0 = none

	Budget DreamBudget `yaml:"budget"`

	When task.Schedule // schedule in zone; without a type: never
}

// DreamBudget bounds what one dream asks of models.
type DreamBudget struct {
	Calls   int `yaml:"calls"`
	Tokens  int `yaml:"tokens"`  // of questions and answers together, about
	Minutes int `yaml:"minutes"` // of asking
}

// Harvest says when conversations are read for what is worth remembering.
type Harvest struct {
	Enabled  bool          `yaml:"enabled"`
	Messages int           `yaml:"messages"` // of people, in one room, since it was read last
	Idle     time.Duration `yaml:"idle"`     // nobody has said anything in the room
	Calls    int           `yaml:"calls"`    // requests in 24 hours, beside those of dreams
}

// Tasks bounds the tasks that the model works on by itself.
type Tasks struct {
	PerRoom    int `yaml:"per_room"`     // active ones in a room
	PerPerson  int `yaml:"per_person"`   // active ones of a person, over all rooms
	RunsPerDay int `yaml:"runs_per_day"` // in 24 hours, over all rooms
}

// Seed says how a new conversation begins.
type Seed struct {
	Language string `yaml:"language"`
}

// SubSessions bounds what the model has done in the background.
type SubSessions struct {
	Parallel int           `yaml:"parallel"` // at the same time; 0 = there are none
	Depth    int           `yaml:"depth"`    // how deep they may ask for others
	Timeout  time.Duration `yaml:"timeout"`  // of work, for each
	Rounds   int           `yaml:"rounds"`   // requests to the model, for each
}

// Web says where the status page is served.
type Web struct {
	Listen string `yaml:"listen"` // host:port on loopback; empty = off
}

// Log says what the operator's log looks like.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// What the configuration may say, and what holds where it says nothing.
var (
	layouts    = layoutNames()
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
		Prompt:   Prompt{Layout: "stable", Steering: true},
		Context:  Context{Probe: true, Limits: ComponentLimits{Memories: 10_000, Tasks: 5_000, Skills: 2_000}},
		Dreaming: Dreaming{Schedule: "0 3 * * *", Questions: 3, Budget: DreamBudget{Calls: 60, Tokens: 200_000, Minutes: 30}},
		Harvest:  Harvest{Enabled: true, Messages: 20, Idle: 15 * time.Minute, Calls: 500},
		Tasks:    Tasks{PerRoom: task.DefaultPerRoom, PerPerson: task.DefaultPerPerson, RunsPerDay: task.DefaultRunsPerDay},
		Memory:   Memory{Backend: "local_vector", Isolation: "strict"},
		Seed:     Seed{Language: "en"},
		Subs:     SubSessions{Parallel: 2, Depth: 2, Timeout: 15 * time.Minute, Rounds: 15},
		Log:      Log{Level: "info", Format: "text"},
	}
}

// Load reads and checks the file at path, which is absolute. Its error names every fault
// with file, line and key, and never repeats a value. env looks up a variable of the environment.
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
	if info, err := os.Stat(path); literal && err == nil && info.Mode().Perm()&0o044 != 0 {
		c.warn("%s holds a secret and other users of this machine can read it; chmod 600 %s", path, path)
	}
	return c, nil
}

// parseConfig is Load without the file: paths are relative to dir, name
// stands in errors, and literal tells whether a secret stands in data itself.
func parseConfig(name string, data []byte, dir string, env func(string) (string, bool), needsModel bool) (
	_ *Config, literal bool, _ error,
) {
	r := &reader{env: env, lines: map[string]int{}, needsModel: needsModel}
	c := defaultConfig()
	r.read(data, c)
	c.Unset = r.unset
	if !slices.ContainsFunc(r.faults, func(f fault) bool { return f.key == "" }) {
		c.complete(r, dir) // of a file that is no configuration at all, nothing is missing
	}
	if err := r.err(name); err != nil {
		return nil, false, err
	}
	return c, r.literal, nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Explain adds to err the secrets that it may be about because their variable is not set.
func (c *Config) Explain(err error) error {
	if len(c.Unset) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(c.Unset, "; "))
}

// TerminalUser is who types in `bot chat` when the file names no owner.
const TerminalUser = "owner"

// Owners are the people who may do everything; there is always one.
func (c *Config) Owners() []string {
	if c.Matrix == nil {
		return []string{TerminalUser}
	}
	return c.Matrix.Owners
}

// Owner is the person whose memories stand in data/MEMORIES.txt.
func (c *Config) Owner() string { return c.Owners()[0] }

// Level is how far the words that user addresses to the bot are trusted. Whoever sits at the machine is an owner.
func (c *Config) Level() func(user string) trust.Integrity {
	allowed := func(string) bool { return false }
	if m := c.Matrix; m != nil {
		allowed = gate.New(m.User, m.Owners, m.Allow, m.Bots...).Allows
	}
	owners := slices.Concat(c.Owners(), []string{TerminalUser})
	return func(user string) trust.Integrity { return trust.SenderIntegrity(user, true, owners, allowed) }
}

// Files is what bounds files: of `bot chat` too, which has no Matrix.
func (c *Config) Files() Media {
	if c.Matrix == nil {
		return defaultMedia
	}
	return c.Matrix.Media
}
