package main

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/i18n"
	"reverie/internal/matrix"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/pace"
	"reverie/internal/session"
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
	inspector, err := openInspector(ctx, b.cfg.Web)
	if err != nil {
		return err
	}
	s := b.connect(connection{
		transport: client, rooms: client, exceptRoom: terminalRoom, verify: client.RunVerifyCommand, inspector: inspector,
		activeRooms: func(ctx context.Context) ([]string, error) { return session.Rooms(ctx, b.db) },
		status:      func(ctx context.Context, say i18n.Say) []string { return client.Status(ctx).Lines(time.Now(), say) },
	})
	link, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range s.backgroundLoops() {
		g.Go(func() error { return run(ctx) })
	}
	g.Go(func() error { return freeStartupMemory(ctx) })
	g.Go(func() error { return b.media.Run(ctx, b.fileUses(client.ReferencedFiles), b.log) })
	g.Go(func() error { defer unlink(); return s.Run(ctx) })
	g.Go(func() error { return client.Run(link, s) })
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// freeStartupMemory returns memory used during start-up to the operating system, once.
func freeStartupMemory(ctx context.Context) error {
	if pace.Pause(ctx, nil, 3*time.Second) == nil {
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
