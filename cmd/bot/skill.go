package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/cmd/bot/config"
	"reverie/internal/skill"
	"reverie/internal/text"
	"reverie/internal/trust"
	"reverie/internal/tty"
)

type skillCommand struct {
	List   *skillListCommand   `arg:"subcommand:list" help:"List the skills."`
	Check  *skillCheckCommand  `arg:"subcommand:check" help:"Say what is wrong with skills, by file and line."`
	Add    *skillAddCommand    `arg:"subcommand:add" help:"Copy a skill in. Its text is foreign until review."`
	Review *skillReviewCommand `arg:"subcommand:review" help:"Show a skill that was added, and ask whether to trust it."`
	Remove *skillRemoveCommand `arg:"subcommand:remove" help:"Delete a skill."`
}

// quietSkills returns the library without a log: these commands print its faults themselves.
func (b *bot) quietSkills() *skill.Library {
	return skill.Open(filepath.Join(b.cfg.Data, "skills"), nil, b.cfg.Skills...)
}

type skillListCommand struct{}

func (skillListCommand) Run(_ context.Context, c console, b *bot) error {
	all, err := b.quietSkills().All()
	if err != nil {
		return err
	}
	type row struct {
		ID         string        `json:"id"`
		Summary    string        `json:"summary"`
		Path       string        `json:"path"`
		Readers    trust.Readers `json:"readers"`
		Integrity  string        `json:"integrity"`
		Unreviewed bool          `json:"unreviewed"`
		Always     bool          `json:"always"`
	}
	var rows []row
	for _, s := range all {
		rows = append(rows, row{s.ID(), s.Summary, s.Path, s.Label.Readers, s.Label.Integrity.String(), s.Unreviewed, s.Always})
	}
	return printList(c, rows, "There are no skills.", func(r row) string {
		mark := ""
		if r.Unreviewed {
			mark = "  (not reviewed)"
		}
		return fmt.Sprintf("%s  %s  %s%s", r.ID, r.Readers, r.Summary, mark)
	})
}

type skillCheckCommand struct {
	What string `arg:"positional" placeholder:"NAME|DIR" help:"A skill as list shows it, or a folder (with a slash); default: all skills."`
}

// Run prints what is wrong; it fails if there are faults.
func (k skillCheckCommand) Run(_ context.Context, c console, b *bot) error {
	found, err := b.quietSkills().Check(k.What)
	if errors.Is(err, skill.ErrUnknown) {
		var source filePath
		err = source.UnmarshalText([]byte(k.What))
		if err == nil {
			found, err = skill.CheckSource(string(source))
		}
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", k.What, err)
	}
	if err := printFindings(c, found); err != nil || !skill.Faulty(found) {
		return err
	}
	return errReported
}

func printFindings(c console, found []skill.Finding) error {
	return printList(c, found, "Nothing is wrong.", func(f skill.Finding) string {
		if f.Warning {
			return "warning: " + f.Problem.String()
		}
		return f.Problem.String()
	})
}

type skillAddCommand struct {
	Source filePath `arg:"positional,required" placeholder:"DIR" help:"A folder with a SKILL.md."`
	For    string   `placeholder:"ID" help:"For @user:server or !room:server only; default: for everybody."`
}

func (a skillAddCommand) Run(_ context.Context, c console, b *bot) error {
	readers := trust.Everybody
	switch {
	case config.IsPerson(a.For):
		readers = trust.PersonReaders(a.For)
	case strings.HasPrefix(a.For, "!"):
		readers = trust.RoomReaders(a.For)
	case a.For != "":
		return usageError{errors.New("--for takes a person, @user:server, or a room, !id:server")}
	}
	s, found, err := b.quietSkills().Import(string(a.Source), readers)
	if c.json && err == nil {
		return printJSON(c.out, map[string]any{"id": s.ID(), "path": s.Path, "findings": append([]skill.Finding{}, found...)})
	}
	if len(found) > 0 {
		_ = printFindings(console{out: c.err, err: c.err}, found) // what follows matters more
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError{fmt.Errorf("not added: %w", err)}
	case err != nil:
		return fmt.Errorf("not added: %w", err)
	}
	_, err = fmt.Fprintf(c.out, "Added: %s. It is foreign text until `bot skill review %s`.\n", s.Path, s.ID())
	return err
}

type skillReviewCommand struct {
	Name string `arg:"positional,required" help:"The skill, as list shows it."`
}

// Run shows all files of a skill and asks whether to trust them. Only the text y does.
func (r skillReviewCommand) Run(_ context.Context, c console, b *bot) error {
	files, trusted, err := b.quietSkills().Review(r.Name)
	if err != nil {
		return fmt.Errorf("skill %s: %w", r.Name, err)
	}
	for _, f := range files {
		switch {
		case f.Folder():
		case !utf8.Valid(f.Data) || strings.ContainsRune(string(f.Data), 0):
			fmt.Fprintf(c.out, "=== %s: not text, %d bytes\n\n", showInvisible(f.Path), len(f.Data))
		default:
			fmt.Fprintf(c.out, "=== %s\n%s\n", showInvisible(f.Path), showInvisible(string(f.Data)))
		}
	}
	if !confirm(c, "Trust all of this as if you had written it?") {
		fmt.Fprintln(c.err, "It stays foreign text.")
		return errReported
	}
	if err := trusted(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "Trusted: %s. If a file of it changes, it is foreign text again.\n", r.Name)
	return err
}

// showInvisible replaces what a reader cannot see, but a model can.
func showInvisible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if text.Clean(string(r)) == "" && !unicode.IsSpace(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// confirm asks a question; every answer but y and yes means no.
func confirm(c console, question string) bool {
	fmt.Fprintf(c.err, "%s [y/N] ", question)
	line, _ := bufio.NewReader(c.in).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

type skillRemoveCommand struct {
	Name string `arg:"positional,required" help:"The skill, as list shows it."`
	Yes  bool   `help:"Do not ask."`
}

// Run deletes a skill. It asks on a terminal and needs --yes elsewhere.
func (r skillRemoveCommand) Run(_ context.Context, c console, b *bot) error {
	if !r.Yes && !tty.IsTerminal(c.in) {
		return usageError{errors.New("nothing was removed: add --yes")}
	}
	if !r.Yes && !confirm(c, "Delete "+r.Name+" with all its files?") {
		fmt.Fprintln(c.err, "Nothing was removed.")
		return errReported
	}
	if err := b.quietSkills().Remove(r.Name); err != nil {
		return fmt.Errorf("skill %s: %w", r.Name, err)
	}
	_, err := fmt.Fprintf(c.out, "Removed: %s\n", r.Name)
	return err
}
