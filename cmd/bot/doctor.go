package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	reverie "reverie"
	"reverie/cmd/bot/config"
	"reverie/internal/doctor"
	"reverie/internal/matrix"
	matrixdoctor "reverie/internal/matrix/doctor"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/sandbox"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/tty"
	"reverie/internal/window"
)

type doctorCommand struct{}

// doctorReport is the output of --json.
type doctorReport struct {
	Findings doctor.Findings      `json:"findings"`
	Matrix   *matrixdoctor.Status `json:"matrix,omitempty"` // nil = not checked
}

// Run checks everything the bot needs and fails if anything must be fixed. The bot may run at the same time.
func (d doctorCommand) Run(ctx context.Context, c console, path filePath) error {
	var r doctorReport
	d.examine(ctx, path, &r)
	if c.json {
		if err := printJSON(c.out, r); err != nil {
			return err
		}
	}
	failed, out := false, tty.RenamingWriter{W: c.out, Name: c.program}
	for _, f := range r.Findings {
		failed = failed || f.State == doctor.Broken
		if c.json {
			continue
		}
		mark := map[doctor.State]string{doctor.OK: "✓", doctor.Note: "·", doctor.Broken: "✗"}[f.State]
		fmt.Fprintf(out, "%s %-8s %s\n", mark, f.Area, f.What)
		if f.Remedy != "" {
			fmt.Fprintf(out, "  %-8s → %s\n", "", f.Remedy)
		}
	}
	if failed {
		return errReported
	}
	return nil
}

func (d doctorCommand) examine(ctx context.Context, path filePath, r *doctorReport) {
	f := &r.Findings
	cfg, err := config.Load(string(path), os.LookupEnv, true)
	if err != nil {
		f.Add("config", doctor.Broken, err.Error(), "fix the file, or write a new one with `bot init`")
		return
	}
	f.Add("config", doctor.OK, string(path)+" is valid")
	for _, w := range cfg.Warnings {
		f.Add("config", doctor.Note, w)
	}
	for _, w := range cfg.UnsetSecrets {
		f.Add("config", doctor.Note, w+"; it is needed only where it is used: a password for the first login, a key for its server")
	}
	b, err := openBot(ctx, cfg, slog.New(slog.DiscardHandler), false)
	if err != nil {
		f.Add("data", doctor.Broken, err.Error(),
			"check free space and permissions; a damaged file is left as it is: restore it from a backup, or move it away to start again")
		return
	}
	defer b.close()
	b.window.Detect(ctx)
	*f = append(*f, b.doctor().Examine(ctx)...)
	b.examineMatrix(ctx, r)
	examineBackups(ctx, b, f)
}

func (b *bot) doctor() doctor.Doctor {
	d := doctor.Doctor{
		Dir: b.cfg.Data, Defaults: reverie.Data, Skills: b.skills, Messages: b.messages, Models: b.models,
		Preview: b.connect(connection{}).Preview, Conversations: b.conversations,
		Tier: func(ctx context.Context) (window.Decision, error) {
			r, err := b.tier(ctx)
			return r.Decision, err
		},
		Embedding: b.embedding(), Backend: b.backend(), Server: b.server, Web: b.openWeb(),
		Code: b.cfg.Tools.Code, Commands: len(b.cfg.Tools.Shell.Rooms) > 0 || slices.ContainsFunc(b.cfg.MCP.Servers, isProgram),
		Confined: func(ctx context.Context) (string, error) { return sandbox.Available(ctx, b.hidden()...) },
	}
	if b.server != nil {
		d.ServerURL = b.cfg.Memory.Server().URL
	}
	return d
}

// conversations lists the rooms and threads with messages, the most recent first.
func (b *bot) conversations(ctx context.Context) ([]string, error) {
	talks, err := b.history.Rooms(ctx)
	return slices.DeleteFunc(talks, func(talk string) bool { return strings.HasPrefix(talk, subsession.Prefix) }), err
}

func isProgram(s config.MCPServer) bool { return s.Command != "" }

func (b *bot) examineMatrix(ctx context.Context, r *doctorReport) {
	f := &r.Findings
	if b.cfg.Matrix == nil {
		f.Add("matrix", doctor.Note, "no matrix: section; `bot chat` works, `bot run` needs one")
		return
	}
	pid, since, err := store.LockHolder(b.cfg.Data)
	if err != nil {
		f.Unreadable(err)
	}
	status, found := matrix.ExamineAccount(ctx, b.matrixConfig(), matrixdoctor.Process{ID: pid, Since: since})
	r.Matrix = &status
	for _, m := range found {
		s := doctor.Broken
		switch {
		case m.Note:
			s = doctor.Note
		case m.OK:
			s = doctor.OK
		}
		f.Add("matrix", s, m.What, m.Remedy)
	}
	if e2ee.DeviceRule(b.cfg.Matrix.Devices) == e2ee.DevicesAny {
		f.Add("matrix", doctor.Note, "matrix.devices is any: commands from unverified devices are accepted, and in rooms without "+
			"encryption only the homeserver vouches for the sender",
			"set `matrix.devices: owners`, so that an owner's devices must be verified")
	}
}
