// Package advisor puts questions to advisors: personas that an owner describes in files. A model
// answers for each, without tools and without memory, and sees nothing but its persona and the question.
package advisor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/idle"
	"reverie/internal/llm"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/text"
)

const (
	folder   = "advisors"
	fileName = "ADVISOR.md"
	maxFile  = 8_000 // bytes
)

// Advisor is one persona.
type Advisor struct {
	Name        string // that of its folder
	Description string // one line; may be empty
	persona     string
}

// String returns the name with the description.
func (a Advisor) String() string {
	if a.Description == "" {
		return a.Name
	}
	return a.Name + " (" + a.Description + ")"
}

// Panel is the folder of advisors and what they are asked with. It is safe for concurrent use, also while
// people edit the files.
type Panel struct {
	Dir    string // the data folder
	Models *llm.Models
	// Seats are the models among which the advisors of a question are divided; none = the first of chat.
	Seats []string
	// LocalServer returns the address of a model's server if it runs on this machine, else "". Such a server
	// gets one question at a time.
	LocalServer func(model string) string
	Waiting     *idle.Priority // people, who go before questions of background work
	Limit       time.Duration  // for all answers to a question; 0 = 30 s
	Log         *slog.Logger

	mu     sync.Mutex
	logged map[store.Problem]bool
}

// List reads the enabled advisors, sorted by name, and the faults in the folder. A file with a fault is no
// advisor until it is corrected. Each fault is logged once.
func (p *Panel) List() (all []Advisor, faults []store.Problem) {
	entries, err := os.ReadDir(filepath.Join(p.Dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		faults = append(faults, store.Problem{File: folder, Text: "cannot be read: make it a folder that this user can read"})
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // of editors and file managers
			continue
		}
		a, enabled, found := readAdvisor(p.Dir, e.Name())
		if enabled && len(found) == 0 {
			all = append(all, a)
		}
		faults = append(faults, found...)
	}
	p.logOnce(faults)
	return all, faults
}

// Any reports whether there is an advisor.
func (p *Panel) Any() bool {
	all, _ := p.List()
	return len(all) > 0
}

func (p *Panel) logOnce(faults []store.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		if p.Log != nil && !p.logged[f] {
			p.Log.Warn("advisor left out", "file", f.File, "line", f.Line, "why", f.Text)
		}
		if p.logged == nil {
			p.logged = map[store.Problem]bool{}
		}
		p.logged[f] = true
	}
}

// readAdvisor reads the advisor in the folder called name.
func readAdvisor(dir, name string) (a Advisor, enabled bool, faults []store.Problem) {
	rel := path.Join(folder, name, fileName)
	data, unreadable := readFile(filepath.Join(dir, rel))
	fields, body, faults := skill.ReadFields(data, "name", "description", "enabled")
	a = Advisor{name, fields["description"], text.Clean(string(body))}
	why := ""
	switch {
	case unreadable != "":
		why = unreadable
	case len(faults) > 0:
	case !skill.IsName(name):
		why = "the folder must have a name of the characters A-Z, a-z, 0-9, - and _: rename it"
	case fields["name"] != "" && fields["name"] != name:
		why = "name must be the same as that of the folder: change one of them"
	case !slices.Contains([]string{"", "true", "false"}, fields["enabled"]):
		why = "enabled must be true or false"
	case a.persona == "":
		why = "there is no text below the fields: write who the advisor is and what to look at"
	}
	if why != "" {
		faults = append(faults, store.Problem{Text: why})
	}
	for i := range faults {
		faults[i].File = rel
	}
	return a, fields["enabled"] != "false", faults
}

// readFile returns the content of a file, or why it cannot be used.
func readFile(name string) (data []byte, unreadable string) {
	switch at, err := store.Stat(name); {
	case err == nil && !at.Exists():
		return nil, "there is no such file: an advisor is a folder with a file " + fileName + ", in capitals"
	case err == nil && at.Size() > maxFile:
		return nil, fmt.Sprintf("it is longer than %d bytes: shorten it", maxFile)
	case err == nil && at.Regular():
		if data, err = os.ReadFile(name); err == nil {
			return data, ""
		}
	}
	return nil, "it cannot be read: make it a file that this user can read"
}
