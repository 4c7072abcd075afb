// Package advisor puts questions to advisors: personas that an owner describes in files. A model
// answers for each, without tools and without memory, and sees nothing but its persona and the question.
package advisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
	return strings.TrimSuffix(a.Name+" ("+a.Description+")", " ()")
}

// Read reads the enabled advisors of a data folder, sorted by name, and the faults in their files. A file with
// a fault is no advisor.
func Read(dir string) (all []Advisor, faults []store.Problem) {
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		faults = append(faults, store.Problem{File: folder, Text: "cannot be read: make it a folder that this user can read"})
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // of editors and file managers
			continue
		}
		a, enabled, found := readAdvisor(dir, e.Name())
		if enabled && len(found) == 0 {
			all = append(all, a)
		}
		faults = append(faults, found...)
	}
	return all, faults
}

func readAdvisor(dir, name string) (a Advisor, enabled bool, faults []store.Problem) {
	rel := path.Join(folder, name, fileName)
	at, err := store.Stat(filepath.Join(dir, rel))
	var data []byte
	if err == nil && at.Regular() && at.Size() <= maxFile {
		data, err = os.ReadFile(filepath.Join(dir, rel))
	}
	fields, body, faults := skill.ReadFields(data, "name", "description", "enabled")
	a = Advisor{name, fields["description"], text.Clean(string(body))}
	why := ""
	switch {
	case err != nil:
		why = "it cannot be read: make it readable for this user"
	case !at.Regular():
		why = "there is no such file: an advisor is a folder with a file " + fileName + ", in capitals"
	case at.Size() > maxFile:
		why = fmt.Sprintf("it is longer than %d bytes: shorten it", maxFile)
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
