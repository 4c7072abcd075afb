// Package doctor checks files, models, prompt and vectors, and says how to fix faults.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reverie/internal/dream"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/media"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/search/backend"
	"reverie/internal/settings"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/tool/advisor"
	"reverie/internal/tool/web"
	"reverie/internal/window"
)

// Finding is one line of a report.
type Finding struct {
	Area   string `json:"area"`
	State  State  `json:"state"`
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// State is the result of a check.
type State string

// The states of a finding.
const (
	OK     State = "ok"
	Note   State = "note" // works, but worth knowing
	Broken State = "ill"  // must be fixed
)

// Findings lists results in the order of the checks.
type Findings []Finding

// Add adds a finding. A remedy says what to do about it.
func (f *Findings) Add(area string, s State, what string, remedy ...string) {
	*f = append(*f, Finding{area, s, what, strings.Join(remedy, "")})
}

// Unreadable adds that the data folder cannot be read.
func (f *Findings) Unreadable(err error) {
	f.Add("files", Broken, err.Error(), "make the data folder readable for this user")
}

// Doctor holds the parts to check.
type Doctor struct {
	Dir      string // the data folder
	Defaults fs.FS  // the built-in default files
	Skills   *skill.Library
	Messages *settings.Messages
	Models   *llm.Models
	Preview  func(ctx context.Context, room string) (prompt.Prompt, []llm.ToolSpec, error)
	Tier     func(context.Context) (window.Decision, error)

	Conversations func(context.Context) ([]string, error) // for Preview, the most recent first

	Embedding *llm.Embedding // nil = the built-in encoder
	Backend   backend.Backend
	Server    backend.Server // nil = none
	ServerURL string
	Web       *web.Client // its search engines are asked; nil = none

	Code     bool                                            // run_code is configured
	Commands bool                                            // so is the tool shell, or an MCP server that is a program
	Confined func(context.Context) (level string, err error) // tries whether programs are confined
}

// Examine runs all checks. The bot may run at the same time.
func (d Doctor) Examine(ctx context.Context) (f Findings) {
	d.files(&f)
	d.prompt(ctx, &f)
	for _, name := range d.Models.Names() {
		probe(ctx, &f, "model", name, "its address, key and name are set under llm.models in the configuration",
			func(ctx context.Context) (string, error) {
				err := d.Models.Probe(ctx, name)
				return "; window " + d.Models.Limit(name).String(), err
			})
	}
	d.contextTier(ctx, &f)
	d.vectors(ctx, &f)
	d.rerank(ctx, &f)
	for _, e := range d.Web.Engines() {
		probe(ctx, &f, "web", e.Name(), "its address and key are set under tools.web.search in the configuration",
			func(ctx context.Context) (string, error) {
				found, err := d.Web.Ask(ctx, e, "Matrix")
				return fmt.Sprintf(" with %d results", len(found)), err
			})
	}
	d.programs(ctx, &f)
	return f
}

func (d Doctor) files(f *Findings) {
	if info, err := os.Stat(d.Dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		f.Add("files", Note, fmt.Sprintf("other users of this machine can read %s (%v)", d.Dir, info.Mode().Perm()),
			"chmod 700 "+d.Dir)
	}
	file := filepath.Join(d.Dir, ".doctor")
	if err := store.WriteFile(file, []byte("x")); err != nil {
		f.Add("files", Broken, "cannot write into the data folder: "+err.Error(), "check free space and permissions")
	} else {
		_ = os.Remove(file)
		f.Add("files", OK, d.Dir+" can be written")
	}
	if !media.ReadsPDF() {
		f.Add("files", Note, "PDF files cannot be read: the program pdftotext is missing", "install the package poppler-utils")
	}
	edited, err := store.EditedDefaults(d.Defaults, d.Dir)
	for _, file := range edited {
		f.Add("files", Note, file+" was edited by you, so new releases do not update it",
			"delete it to get the default back at the next start")
	}
	if err != nil {
		f.Unreadable(err)
	}
}

func (d Doctor) prompt(ctx context.Context, f *Findings) {
	for _, t := range dream.Templates() {
		text, err := os.ReadFile(filepath.Join(d.Dir, t.File))
		if err != nil { // reported when a request needs it
			continue
		}
		if err := t.Check(string(text)); err != nil {
			f.Add("prompt", Note, "the built-in text is used instead of "+t.File, err.Error())
		}
	}
	for _, p := range d.Skills.Problems() {
		f.Add("skills", Note, p.String())
	}
	_, faults := advisor.Read(d.Dir)
	for _, p := range faults {
		f.Add("advisors", Note, p.String())
	}
	for _, p := range d.Messages.Problems() {
		f.Add("messages", Note, p.String())
	}
	for _, p := range (profile.Store{Dir: d.Dir}).Problems() {
		f.Add("profiles", Note, p.String())
	}
	d.requests(ctx, f)
}

// requests examines the request of a new conversation, and the next ones of the 50 most recent conversations. A note
// on several of them is reported once.
func (d Doctor) requests(ctx context.Context, f *Findings) {
	talks, err := d.Conversations(ctx)
	if err != nil {
		f.Unreadable(err)
	}
	talks = talks[:min(len(talks), 50)]
	said := map[string]bool{}
	for _, talk := range append([]string{""}, talks...) {
		p, _, err := d.Preview(ctx, talk)
		add := func(s State, what string, remedy ...string) {
			if said[what] && s != Broken {
				return
			}
			said[what] = true
			if talk != "" {
				what = "in " + talk + ": " + what
			}
			f.Add("prompt", s, what, remedy...)
		}
		var fence *prompt.FenceError
		switch {
		case errors.As(err, &fence):
			add(Broken, err.Error()+"; it is not sent", "write !new there: the next conversation begins without it")
		case err != nil:
			add(Broken, err.Error(), "shorten the files under data/, or use a model with a larger window")
		case talk == "":
			f.Add("prompt", OK, fmt.Sprintf("the prompt of a new conversation takes %d of %d tokens; "+
				"those of %d conversations were examined", p.Report.Total, p.Report.Window, len(talks)))
		}
		for _, p := range p.Report.Problems {
			add(Note, p.String())
		}
		for _, s := range p.Report.Sections {
			if s.State == prompt.Failed {
				add(Note, s.ID+": "+s.Note)
			}
		}
		for _, o := range p.Report.Oversize {
			what := fmt.Sprintf("%s take %d characters, and a prompt has room for %d: the rest is left out",
				o.Contributor, o.Size, o.Max)
			add(Note, what, "shorten them (for tasks, skills and flat_file memories the model is asked to, once a day), "+
				"or raise context.component_size_limits")
		}
	}
}

func (d Doctor) contextTier(ctx context.Context, f *Findings) {
	t, err := d.Tier(ctx)
	if err != nil {
		f.Add("tier", Broken, err.Error(), "the file is left as it is; restore it from a backup, or move it away to start again")
		return
	}
	f.Add("tier", OK, "a new conversation gets "+t.String())
	for _, text := range t.Warnings {
		f.Add("tier", Note, text, "`bot tier` shows how it is decided")
	}
}

// NoVectors is what the operator reads where nothing makes vectors.
const NoVectors = "memories are found by their words only, because there is no embedding model; " +
	"name one under llm.embedding in the configuration"

func (d Doctor) vectors(ctx context.Context, f *Findings) {
	switch {
	case d.Embedding != nil:
		probe(ctx, f, "vectors", d.Embedding.Name(), "its address, key and name are set under llm.embedding in the configuration",
			func(ctx context.Context) (string, error) {
				vectors, err := d.Embedding.Embed(ctx, []string{"Good morning."})
				if err != nil {
					return "", err
				}
				return fmt.Sprintf(" with %d numbers a text", len(vectors[0])), nil
			})
	case !d.Backend.Meaning:
	case encoder.BuiltIn():
		f.Add("vectors", OK, "memories are found by their words and, with the built-in encoder, by their meaning")
	default:
		f.Add("vectors", Note, NoVectors+"; or use a build that includes the encoder")
	}
	if d.Server != nil {
		probe(ctx, f, d.Backend.Name, d.ServerURL, "its address and key are set under memory."+d.Backend.Name+" in the configuration. "+
			"Until then, memories are found by their words",
			func(ctx context.Context) (string, error) { return "", d.Server.Probe(ctx) })
	}
}

func (d Doctor) rerank(ctx context.Context, f *Findings) {
	if !d.Models.Has("rerank") {
		return
	}
	probe(ctx, f, "rerank", "the reranking model", "it is set under llm.roles.rerank in the configuration",
		func(ctx context.Context) (string, error) {
			_, err := d.Models.Rerank(ctx, "Where is the ship?", []string{"The cat sleeps.", "The ship is in the harbour."})
			return "", err
		})
}

// programs checks whether code and commands are confined.
func (d Doctor) programs(ctx context.Context, f *Findings) {
	if !d.Code && !d.Commands {
		return
	}
	level, err := d.Confined(ctx)
	switch {
	case err == nil && d.Commands:
		f.Add("programs", OK, "code and commands are confined by "+level)
	case err == nil:
		f.Add("programs", OK, "code is confined by "+level+"; there are no commands (tools.shell)")
	case d.Commands:
		f.Add("programs", Broken, "neither code nor commands run: "+err.Error(),
			"use such a kernel, or take the rooms out of tools.shell and the commands out of mcp.servers in the configuration")
	default:
		f.Add("programs", Note, "the model cannot compute with code: "+err.Error(), "use such a kernel, or set `tools: {code: false}`")
	}
}

// probe calls ask with a timeout of 20 seconds. It adds the result for the server name.
func probe(ctx context.Context, f *Findings, area, name, where string, ask func(context.Context) (more string, err error)) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := time.Now()
	more, err := ask(ctx)
	if err != nil {
		f.Add(area, Broken, err.Error(), "check that it runs and answers; "+where)
		return
	}
	f.Add(area, OK, fmt.Sprintf("%s answers (%s)%s", name, time.Since(began).Round(time.Millisecond), more))
}
