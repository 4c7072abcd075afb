package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	reverie "reverie"
	"reverie/cmd/bot/config"
	"reverie/internal/backup"
	"reverie/internal/doctor"
	"reverie/internal/dream"
	"reverie/internal/goal"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/idle"
	"reverie/internal/llm"
	"reverie/internal/llm/discover"
	"reverie/internal/llm/encoder"
	"reverie/internal/llm/rehearsal"
	"reverie/internal/manner"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/metrics"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/recall"
	"reverie/internal/sandbox"
	"reverie/internal/search/backend"
	"reverie/internal/search/vector"
	"reverie/internal/settings"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/tool/advisor"
	"reverie/internal/tool/mcp"
	"reverie/internal/tool/web"
	"reverie/internal/tool/workspace"
	"reverie/internal/usage"
	"reverie/internal/vram"
	inspector "reverie/internal/web"
	"reverie/internal/window"
)

// bot holds all parts of Reverie except the transport. openBot builds them in order of dependency.
type bot struct {
	cfg     *config.Config
	log     *slog.Logger
	db      *store.DB
	models  *llm.Models
	usage   *usage.Store
	counted *metrics.Counters
	memory  *memory.Store
	vectors *vector.Vectors // nil = search by words only
	server  backend.Server  // nil = no vector server
	tasks   *task.Store
	skills  *skill.Library
	history *history.Store
	prompt  *prompt.Assembler
	tools   *tool.Set
	mcp     *mcp.Servers // nil = none is configured
	media   *media.Store

	messages *settings.Messages

	window *window.Detector
	upkeep

	closers []func() error // run in reverse order by close
}

// upkeep maintains the memory while no person waits for an answer.
type upkeep struct {
	background *idle.Gate     // background work that yields to people
	waiting    *idle.Priority // people, before single requests in the background
	harvester  *harvest.Harvester
	dreamer    *dream.Dreamer
	nightly    *dream.Nightly
}

// openBot opens the data folder and builds everything that needs no network. With lock it refuses a
// folder in use and writes the default files; without, it only reads.
func openBot(ctx context.Context, cfg *config.Config, log *slog.Logger, lock bool) (_ *bot, err error) {
	b := &bot{cfg: cfg, log: log, counted: metrics.New(version)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if lock {
		if err := backup.CheckFinished(cfg.Data); err != nil {
			return nil, err
		}
		held, err := store.AcquireLock(cfg.Data)
		if err != nil {
			return nil, err
		}
		b.closers = append(b.closers, held.Release)
		if _, err := store.WriteDefaults(reverie.Data, cfg.Data); err != nil {
			return nil, err
		}
	}
	if b.db, err = store.Open(ctx, filepath.Join(cfg.Data, "bot.db"), reverie.Migrations); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, b.db.Close)
	b.messages = settings.OpenMessages(cfg.Data, b.db, cfg.Seed.Language)
	if lock { // otherwise the files may be of an earlier release
		for _, p := range b.messages.Problems() {
			log.Warn("invalid line in a messages file", "problem", p)
		}
	}

	if b.models, err = b.openModels(ctx); err != nil {
		return nil, err
	}
	b.window = b.openWindow(vram.New(vram.Config{
		Size: uint64(cfg.Context.VRAMMiB) << 20, Off: !cfg.Context.Probe && cfg.Context.VRAMMiB == 0, Log: log,
	}))
	b.background, b.waiting = idle.New(2*time.Second, time.Now), idle.NewPriority()
	if lock { // other commands need not load all vectors
		if b.vectors, err = b.openVectors(ctx, 0); err != nil {
			return nil, err
		}
	}
	b.server = b.openServer(b.vectors, 0)
	mc := memory.Config{
		DB: b.db, Dir: cfg.Data, Owner: cfg.Owner(), Purge: b.forgetTexts, Log: log,
		Backend: cfg.Memory.Backend, Vectors: b.vectors, Server: b.server,
		BeforeForget: func(ctx context.Context) error { return recall.IndexAll(ctx, b.history, b.memory) },
	}
	if b.models.Has("rerank") {
		mc.Rerank = b.models.Rerank
	}
	if b.memory, err = memory.Open(ctx, mc); err != nil {
		return nil, err
	}
	b.tasks = task.NewStore(b.db, task.Config{Location: cfg.Zone, PerPerson: cfg.Tasks.PerPerson, RunsPerDay: cfg.Tasks.RunsPerDay})
	b.skills = skill.Open(filepath.Join(cfg.Data, "skills"), log, cfg.Skills...)
	b.history = history.NewStore(b.db)
	b.media = media.Open(cfg.Data, cfg.Files().Side)
	b.mcp = openMCP(b)
	files := cfg.Tools.Files
	work := workspace.Config{Dir: cfg.Data, DB: b.db, Quota: files.Bytes}
	for _, f := range files.Folders {
		work.Folders = append(work.Folders, workspace.Bound(f))
	}
	b.tools = tool.New(tool.Config{
		Memory: b.memory, Tasks: b.tasks, Goals: goal.NewStore(b.db, time.Now), Skills: b.skills, Dir: cfg.Data, Media: b.media,
		Files: workspace.Open(work), MCP: b.mcp, Models: b.models.Names(), Web: b.openWeb(), Commands: b.commands(ctx, lock),
		Advisors: &advisor.Panel{Dir: cfg.Data, Models: b.models, Seats: cfg.LLM.Roles["advisor"], LocalServer: b.localServer,
			Waiting: b.waiting, Log: log},
		Location: cfg.Zone, Log: log, Ran: b.counted.ToolRan,
	})
	if b.prompt, err = b.openPrompt(); err != nil {
		return nil, err
	}
	b.harvester = b.openHarvester()
	b.dreamer = b.openDreamer()
	b.nightly = b.openDreamSchedule()
	return b, nil
}

// hidden are the files and folders that no program of a tool may read.
func (b *bot) hidden() []string { return []string{b.cfg.Data, b.cfg.File} }

// commands returns what may run on this machine. With test it tries whether the kernel confines commands. Code
// has nothing to reach, so the start does not wait for a try; without the kernel's guard it does not run.
func (b *bot) commands(ctx context.Context, test bool) tool.Commands {
	t := b.cfg.Tools
	if !t.Code && len(t.Shell.Rooms) == 0 {
		return tool.Commands{}
	}
	err := sandbox.Supported()
	if err == nil && test && len(t.Shell.Rooms) > 0 {
		_, err = sandbox.Available(ctx, b.hidden()...)
	}
	if err != nil {
		b.log.Warn("the model can run neither code nor commands", "err", err)
		return tool.Commands{}
	}
	zone := b.cfg.Zone.String()
	if b.cfg.Zone == time.Local { // which the variable may have set
		zone = os.Getenv("TZ")
	}
	return tool.Commands{Code: t.Code, Rooms: t.Shell.Rooms, Owners: b.cfg.Owners(), Network: t.Shell.Network, Time: t.Shell.Time,
		Background: t.Shell.Background, Quota: t.Files.Bytes, Hidden: b.hidden(), Zone: zone}
}

func (b *bot) profiles() profile.Store { return profile.Store{Dir: b.cfg.Data, Location: b.cfg.Zone} }

func (b *bot) openPrompt() (*prompt.Assembler, error) {
	cfg := b.cfg
	machine := "OS " + runtime.GOOS + "/" + runtime.GOARCH
	if host, err := os.Hostname(); err == nil {
		machine = "host " + host + ", " + machine
	}
	limits, reports := cfg.Context.Limits, 0
	if cfg.Web.Listen != "" {
		reports = storedReports
	}
	return prompt.New(prompt.Config{Layout: prompt.Layout(cfg.Prompt.Layout), Budget: cfg.Prompt.Budget,
		DB: b.db, History: b.history, Log: b.log, Reports: reports,
		Limits: map[string]int{"memories": limits.Memories, "tasks": limits.Tasks, "skills": limits.Skills},
		Sources: &section.Sources{
			Dir: cfg.Data, Defaults: reverie.Data, Name: cfg.Name, Profiles: b.profiles(), SeedLanguage: cfg.Seed.Language,
			Memory: b.memory, Tasks: b.tasks, Skills: b.skills, KnownTools: b.tools.Names(), Instructions: string(cfg.Prompt.Instructions),
			Voice: cfg.Voice, Models: b.models.Names(), Summary: b.tools.Summary, Machine: machine, NoSteering: !cfg.Prompt.Steering,
			Terminal: terminalRoom, Programs: b.programs, Warned: b.usage.WarnedBetween, Manner: manner.Store{DB: b.db}}})
}

// localServer returns the address of a model's server if it runs on this machine, else "".
func (b *bot) localServer(model string) string {
	for _, m := range b.cfg.LLM.Models {
		if u, err := url.Parse(m.BaseURL); err == nil && m.Name == model && discover.IsLocal(u.Hostname()) {
			return u.Host
		}
	}
	return ""
}

func (b *bot) openWeb() *web.Client {
	w := b.cfg.Tools.Web
	c := web.Config{Fetch: w.Fetch, Hosts: w.Hosts, FakeIP: w.FakeIP, PDF: b.media.PDFText, Log: b.log}
	for _, e := range w.Search {
		e.Key = string(e.APIKey)
		c.Engines = append(c.Engines, e.Engine)
	}
	return web.New(c)
}

func (b *bot) openModels(ctx context.Context) (*llm.Models, error) {
	b.usage = &usage.Store{DB: b.db, Models: map[string]int{}, Person: b.cfg.LLM.PersonTokens,
		Location: b.cfg.Zone, Now: time.Now, Log: b.log}
	b.closers = append(b.closers, func() error { return b.usage.Write(context.WithoutCancel(ctx)) })
	c := llm.Config{Roles: b.cfg.LLM.Roles, Meter: b.counted.Meter(b.usage), Log: b.log}
	for _, m := range b.cfg.LLM.Models {
		b.usage.Models[m.Name] = m.DailyTokens
		m.ModelConfig.APIKey = string(m.APIKey)
		if m.BaseURL == discover.Rehearsal {
			served, stop, err := rehearsal.Start(ctx, rehearsal.Config{Log: b.log})
			if err != nil {
				return nil, err
			}
			b.closers = append(b.closers, func() error { stop(); return nil })
			m.BaseURL = served
			if m.Vision == nil { // it describes pictures
				sees := true
				m.Vision = &sees
			}
		}
		c.Models = append(c.Models, m.ModelConfig)
	}
	return llm.New(c), nil
}

func (b *bot) openWindow(gpu *vram.Prober) *window.Detector {
	d := &window.Detector{
		Models: b.models, GPU: gpu, Tier: b.cfg.Context.Tier,
		Settings: fmt.Sprintf("vram_mib=%d probe=%t", b.cfg.Context.VRAMMiB, b.cfg.Context.Probe),
	}
	for _, m := range b.cfg.LLM.Models {
		d.Servers = append(d.Servers, window.Server{Name: m.Name, Model: m.Model, BaseURL: m.BaseURL, Window: m.Window})
	}
	return d
}

func (b *bot) close() {
	for i := len(b.closers) - 1; i >= 0; i-- {
		if err := b.closers[i](); err != nil {
			b.log.Warn("closing", "err", err)
		}
	}
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // checked by config; otherwise info
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(inspector.Remember(slog.NewJSONHandler(w, o)))
	}
	return slog.New(inspector.Remember(slog.NewTextHandler(w, o)))
}

// loadConfig reads the configuration and logs its warnings. With needsModel, one without a model is an error.
func loadConfig(path filePath, w io.Writer, needsModel bool) (*config.Config, *slog.Logger, error) {
	cfg, err := config.Load(string(path), os.LookupEnv, needsModel)
	if err != nil {
		return nil, nil, usageError{err}
	}
	log := newLogger(w, cfg.Log)
	for _, s := range cfg.Warnings {
		log.Warn(s)
	}
	return cfg, log, nil
}

// embedding returns the configured embedding model, or nil.
func (b *bot) embedding() *llm.Embedding {
	e := b.cfg.LLM.Embedding
	if e == nil {
		return nil
	}
	return llm.NewEmbedding(llm.ModelConfig{BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model, Timeout: e.Timeout},
		llm.Config{Log: b.log})
}

// openVectors opens the vectors of memories for memory.backend. It uses the configured embedding
// model or the built-in one. It returns nil if the backend has no vectors or no model exists.
// patience is how long a query waits for its vector; 0 = the default.
func (b *bot) openVectors(ctx context.Context, patience time.Duration) (*vector.Vectors, error) {
	if !b.backend().Meaning {
		return nil, nil
	}
	c := vector.Config{DB: b.db, Patience: patience, Log: b.log}
	if configured := b.embedding(); configured != nil {
		c.Embedder = configured
		return vector.Open(ctx, c)
	}
	v, err := vector.OpenBuiltIn(ctx, c)
	if errors.Is(err, encoder.ErrNoWeights) {
		b.log.Info(doctor.NoVectors, "err", err)
		return nil, nil
	}
	return v, err
}

// runVectors embeds memories and sends the vectors to the server, until ctx ends.
func (b *bot) runVectors(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if b.vectors != nil {
		g.Go(func() error { return b.vectors.Run(ctx) })
	}
	if b.server != nil {
		g.Go(func() error { return b.server.Run(ctx) })
	}
	return g.Wait()
}

// vectorLines returns lines for !status on the progress of embedding.
func (b *bot) vectorLines(ctx context.Context, say i18n.Say) (lines []string) {
	switch {
	case !b.backend().Meaning:
		return nil
	case b.vectors == nil:
		return []string{say("why.by_words_only")}
	}
	if s := b.vectors.Status(ctx); !s.UpToDate() {
		lines = append(lines, s.Line(b.cfg.Zone).In(say))
	}
	if b.server != nil {
		lines = append(lines, b.server.Line(b.cfg.Zone).In(say))
	}
	return lines
}

func (b *bot) backend() backend.Backend { return backend.Of(b.cfg.Memory.Backend) }

// openServer opens the vector server of the backend, or returns nil. It also works without vectors,
// to delete forgotten memories. patience is how long a query waits; 0 = the default.
func (b *bot) openServer(v *vector.Vectors, patience time.Duration) backend.Server {
	s, open := b.cfg.Memory.Server(), b.backend().Open
	if open == nil {
		return nil
	}
	return open(backend.Config{Vectors: v, URL: s.URL, Key: string(s.APIKey), Collection: s.Collection, Patience: patience, Log: b.log})
}
