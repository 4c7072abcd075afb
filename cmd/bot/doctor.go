package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	reverie "reverie"
	"reverie/cmd/bot/config"
	"reverie/internal/dream"
	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/media"
	"reverie/internal/store"
)

type doctorCommand struct{}

// finding is one line of the doctor's report.
type finding struct {
	Area   string `json:"area"`
	State  state  `json:"state"`
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

type state string

const (
	well state = "ok"
	note state = "note" // works, but worth knowing
	ill  state = "ill"  // must be mended
)

// report is what the doctor prints as JSON.
type report struct {
	Findings []finding      `json:"findings"`
	Matrix   *doctor.Status `json:"matrix,omitempty"` // nil = not looked at
}

func (r *report) add(found ...finding) { r.Findings = append(r.Findings, found...) }

// Run examines everything the bot needs, says what to do about what is not well, and fails if
// anything must be mended. It may run beside the bot.
func (d doctorCommand) Run(ctx context.Context, c console, path filePath) error {
	var r report
	d.examine(ctx, path, &r)
	if c.json {
		if err := printJSON(c.out, r); err != nil {
			return err
		}
	}
	failed := false
	for _, f := range r.Findings {
		failed = failed || f.State == ill
		if c.json {
			continue
		}
		mark := map[state]string{well: "✓", note: "·", ill: "✗"}[f.State]
		fmt.Fprintf(c.out, "%s %-8s %s\n", mark, f.Area, f.What)
		if f.Remedy != "" {
			fmt.Fprintf(c.out, "  %-8s → %s\n", "", f.Remedy)
		}
	}
	if failed {
		return errSaid
	}
	return nil
}

func (d doctorCommand) examine(ctx context.Context, path filePath, r *report) {
	cfg, err := config.Load(string(path), os.LookupEnv, true)
	if err != nil {
		r.add(finding{"config", ill, err.Error(), "mend the file, or write a new one with `bot init`"})
		return
	}
	r.add(finding{"config", well, string(path) + " is good", ""})
	for _, w := range cfg.Warnings {
		r.add(finding{"config", note, w, ""})
	}
	for _, w := range cfg.Unset {
		r.add(finding{"config", note, w + "; it matters to what uses it only: a password to the first login, a key to its server", ""})
	}
	b, err := openBot(ctx, cfg, slog.New(slog.DiscardHandler), false)
	if err != nil {
		r.add(finding{"data", ill, err.Error(),
			"check free space and permissions; a damaged file is left as it is: restore it from a backup, or move it away to begin anew"})
		return
	}
	defer b.close()
	examineFiles(cfg, r)
	b.window.Look(ctx)
	r.add(b.examinePrompt(ctx)...)
	r.add(b.examineModels(ctx)...)
	r.add(b.examineTier(ctx)...)
	r.add(b.examineEmbedding(ctx)...)
	r.add(b.examineQdrant(ctx)...)
	b.examineMatrix(ctx, r)
}

func examineFiles(cfg *config.Config, r *report) {
	if info, err := os.Stat(cfg.Data); err == nil && info.Mode().Perm()&0o077 != 0 {
		r.add(finding{"files", note, fmt.Sprintf("other users of this machine may look into %s (%v)", cfg.Data, info.Mode().Perm()),
			"chmod 700 " + cfg.Data})
	}
	probe := filepath.Join(cfg.Data, ".doctor")
	if err := store.WriteFile(probe, []byte("x")); err != nil {
		r.add(finding{"files", ill, "cannot write into the data folder: " + err.Error(), "check free space and permissions"})
	} else {
		_ = os.Remove(probe)
		r.add(finding{"files", well, cfg.Data + " can be written", ""})
	}
	if !media.ReadsPDF() {
		r.add(finding{"files", note, "PDF files cannot be read: the program pdftotext is missing", "install the package poppler-utils"})
	}
	if err := r.examineDefaults(cfg.Data); err != nil {
		r.add(finding{"files", ill, err.Error(), readable})
	}
}

// readable is what to do about a data folder that cannot be read.
const readable = "make the data folder readable for this user"

// examineTemplates names the templates of requests in the data folder that cannot be used.
func examineTemplates(data string) (found []finding) {
	for _, t := range dream.Templates() {
		if text, err := os.ReadFile(filepath.Join(data, t.File)); err == nil { // else who reads it for a request says so
			if err := t.Check(string(text)); err != nil {
				found = append(found,
					finding{"prompt", note, "the text that came with the program is used in the place of " + t.File, err.Error()})
			}
		}
	}
	return found
}

func (b *bot) examinePrompt(ctx context.Context) []finding {
	found := examineTemplates(b.cfg.Data)
	for _, p := range b.skills.Problems() {
		found = append(found, finding{"skills", note, store.Problem(p).String(), ""})
	}
	for _, p := range b.messages.Problems() {
		found = append(found, finding{"messages", note, p.String(), ""})
	}
	p, err := b.connect(connection{}).sessions.Preview(ctx, "")
	if err != nil {
		return append(found, finding{"prompt", ill, err.Error(), "shorten the files under data/, or use a model with a larger window"})
	}
	for _, p := range p.Report.Problems {
		found = append(found, finding{"prompt", note, p.String(), ""})
	}
	for _, o := range p.Report.Oversize {
		what := fmt.Sprintf("%s take %d characters, and a prompt has room for %d: what is over is left out of it",
			o.Contributor, o.Size, o.Max)
		found = append(found, finding{"prompt", note, what,
			"make them shorter (of tasks, skills and flat_file memories the model is asked to, once a day), " +
				"or raise context.component_size_limits"})
	}
	return append(found,
		finding{"prompt", well, fmt.Sprintf("the prompt of a new conversation takes %d of %d tokens", p.Report.Total, p.Report.Window), ""})
}

func (b *bot) examineModels(ctx context.Context) []finding {
	const remedy = "see that it runs and answers; its address, key and name stand under llm.models in the configuration"
	var found []finding
	for _, name := range b.models.Names() {
		found = append(found, probe(ctx, "model", name, remedy, func(ctx context.Context) (string, error) {
			err := b.models.Probe(ctx, name)
			return "; window " + b.models.Limit(name).String(), err
		})...)
	}
	return found
}

// probe asks a server, called name, and waits 20 seconds at most. more is what its answer tells.
func probe(ctx context.Context, area, name, remedy string, ask func(context.Context) (more string, err error)) []finding {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := time.Now()
	more, err := ask(ctx)
	if err != nil {
		return []finding{{area, ill, err.Error(), remedy}}
	}
	return []finding{{area, well, fmt.Sprintf("%s answers (%s)%s", name, time.Since(began).Round(time.Millisecond), more), ""}}
}

func (b *bot) examineMatrix(ctx context.Context, r *report) {
	if b.cfg.Matrix == nil {
		r.add(finding{"matrix", note, "no matrix: section; `bot chat` works, `bot run` needs one", ""})
		return
	}
	pid, since, err := store.Holder(b.cfg.Data)
	if err != nil {
		r.add(finding{"files", ill, err.Error(), readable})
	}
	status, found := matrix.Examine(ctx, b.matrixConfig(), doctor.Process{ID: pid, Since: since})
	r.Matrix = &status
	for _, f := range found {
		s := ill
		switch {
		case f.Note:
			s = note
		case f.OK:
			s = well
		}
		r.add(finding{"matrix", s, f.What, f.Remedy})
	}
	if e2ee.DeviceRule(b.cfg.Matrix.Devices) == e2ee.DevicesAny {
		r.add(finding{"matrix", note, "matrix.devices is any: devices that nobody has verified are obeyed, and in rooms without " +
			"encryption the homeserver vouches for who writes",
			"write `matrix.devices: owners`, so that an owner's identity proves their devices"})
	}
}

// examineDefaults says which default files their owner edited.
func (r *report) examineDefaults(data string) error {
	defaults, err := store.ListDefaults(reverie.Data, data)
	for _, f := range defaults {
		if f.State == store.Edited {
			r.add(finding{"files", note, f.Path + " was edited by you and does not follow releases",
				"delete it to get the default back at the next start"})
		}
	}
	return err
}
