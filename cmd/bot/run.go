package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/cmd/bot/config"
	"reverie/internal/i18n"
	"reverie/internal/matrix"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/metrics"
	"reverie/internal/pace"
	"reverie/internal/search"
	"reverie/internal/session"
	"reverie/internal/store"
	"reverie/internal/systemd"
	"reverie/internal/trace"
)

type runCommand struct{}

// Run answers in Matrix rooms until a signal ends it.
func (runCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := loadConfig(path, c.err, true)
	if err != nil {
		return err
	}
	if cfg.Matrix == nil {
		return usageError{errors.New("the configuration has no matrix: section; add one (see config.example.yaml), " +
			"or use `bot chat` for a chat without Matrix")}
	}
	if err = runService(ctx, cfg, log); err != nil && cfg.Log.Format == "json" { // the last line is JSON, too
		log.Error("ended by an error", "err", err)
		return errReported
	}
	return err
}

func runService(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	began := time.Now()
	b, err := openBot(ctx, cfg, log, true)
	if err != nil {
		return err
	}
	defer b.close()
	client, err := matrix.Open(ctx, b.matrixConfig())
	if err != nil {
		return cfg.Explain(err)
	}
	log.Info("ready", "name", cfg.Name, "version", version, "commit", commit, "user", cfg.Matrix.User,
		"after", time.Since(began).Round(time.Millisecond))
	if err := b.serve(ctx, client); err != nil {
		return cfg.Explain(err)
	}
	log.Info("stopped")
	return nil
}

// serve handles the client's messages until ctx ends. Shutdown is in order: no new messages, then a
// grace period for running turns, then the client sends their replies.
func (b *bot) serve(ctx context.Context, client *matrix.Client) error {
	inspector, err := openInspector(ctx, b.cfg.Web.Listener)
	if err != nil {
		return err
	}
	ctx, endTraces := trace.Begin(ctx, b.cfg.Traces.Endpoint, b.log)
	defer endTraces()
	s := b.connect(connection{
		transport: client, rooms: client, exceptRoom: terminalRoom, verify: client.RunVerifyCommand, inspector: inspector,
		activeRooms: func(ctx context.Context) ([]string, error) { return session.Rooms(ctx, b.db) },
		status:      func(ctx context.Context, say i18n.Say) []string { return client.Status(ctx).Lines(time.Now(), say) },
	})
	link, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	g, ctx := errgroup.WithContext(ctx)
	if b.cfg.Metrics.Listen != "" {
		served, err := metrics.Listen(ctx, metrics.Config{Listen: b.cfg.Metrics.Listen, Hosts: b.cfg.Metrics.Hosts, Counters: b.counted,
			Read: gauges(b.db, filepath.Join(b.cfg.Data, "bot.db"), client), Log: b.log})
		if err != nil {
			return err
		}
		g.Go(func() error { return served.Run(ctx) })
	}
	for _, run := range s.backgroundLoops() {
		g.Go(func() error { return run(ctx) })
	}
	g.Go(func() error { return freeStartupMemory(ctx) })
	g.Go(func() error { return systemd.Report(ctx, os.Getenv("NOTIFY_SOCKET"), client.SyncProgress, b.log) })
	g.Go(func() error { return b.media.Run(ctx, b.fileUses(client.ReferencedFiles), b.log) })
	g.Go(func() error { defer unlink(); return s.Run(ctx) })
	g.Go(func() error { return client.Run(link, s) })
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// gauges returns a function that measures the state of the running service. db is the database in file.
func gauges(db *store.DB, file string, client *matrix.Client) func(context.Context) ([]metrics.Gauge, error) {
	began := time.Now()
	return func(ctx context.Context) ([]metrics.Gauge, error) {
		s, synced, size := client.Status(ctx), began, int64(0)
		if !s.LastSync.IsZero() {
			synced = s.LastSync
		}
		for _, name := range []string{file, file + "-wal"} {
			if info, err := os.Stat(name); err == nil {
				size += info.Size()
			}
		}
		memories, err := search.CountEntries(ctx, db)
		return []metrics.Gauge{
			{Name: "reverie_inbox_messages", Help: "Messages that wait for an answer.", Value: float64(s.Inbox)},
			{Name: "reverie_inbox_oldest_seconds", Help: "How long the oldest of them waits.", Value: float64(s.InboxOldest)},
			{Name: "reverie_outbox_messages", Help: "Messages that wait to be sent.", Value: float64(s.Outbox)},
			{Name: "reverie_outbox_oldest_seconds", Help: "How long the oldest of them waits.", Value: float64(s.OutboxOldest)},
			{Name: "reverie_undecryptable_messages", Help: "Messages that wait for their key.", Value: float64(s.Undecryptable)},
			{Name: "reverie_lost_messages", Help: "Unreadable messages that were given up.", Value: float64(s.Lost)},
			{Name: "reverie_unsent_messages", Help: "Own messages that were given up.", Value: float64(s.Dead)},
			{Name: "reverie_sync_age_seconds", Help: "Since the last sync, or the start.", Value: time.Since(synced).Seconds()},
			{Name: "reverie_sync_failures", Help: "Failed syncs since the last one that succeeded.", Value: float64(s.SyncFailures)},
			{Name: "reverie_memory_entries", Help: "Memories in the search index, with outdated ones.", Value: float64(memories)},
			{Name: "reverie_database_bytes", Help: "Size of bot.db.", Value: float64(size)},
		}, err
	}
}

// freeStartupMemory returns memory used during start-up to the operating system, once. It collects twice: a sync.Pool
// keeps its content for one collection, and the parser of migrations has 16 MB in one.
func freeStartupMemory(ctx context.Context) error {
	if pace.Pause(ctx, nil, 3*time.Second) == nil {
		runtime.GC()
		debug.FreeOSMemory()
	}
	return nil
}

func (b *bot) matrixConfig() matrix.Config {
	m := b.cfg.Matrix
	return matrix.Config{
		Homeserver: m.Homeserver, User: m.User, Password: string(m.Password), Token: string(m.AccessToken), DeviceName: m.DeviceName,
		Name: b.cfg.Name, Owners: m.Owners, Allow: m.Allow, Bots: m.Bots, Devices: e2ee.DeviceRule(m.Devices),
		Dir: b.cfg.Data, DB: b.db, Media: b.media, MaxFile: m.Media.Bytes,
		Text: b.messages.Text, Location: b.cfg.Zone, Log: b.log,
	}
}
