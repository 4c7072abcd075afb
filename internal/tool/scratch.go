package tool

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
)

// ScratchName is the name of the tool with which sub-sessions share files. It is
// offered to them alone.
const ScratchName = "scratch"

// Scratch is what sub-sessions of one piece of work keep for one another. What it
// returns is for the model, and so are its errors; whose files can be meant follows
// from the scope.
type Scratch interface {
	// Keep stores text under name, behind what is there already or in its place.
	Keep(ctx context.Context, scope Scope, name, text string, behind bool) error
	// Kept shows the newest file of that name, or of that name and writer, as in
	// "sub_ab12cd34/notes.md".
	Kept(ctx context.Context, scope Scope, name string) (string, error)
	// Listed names all files.
	Listed(ctx context.Context, scope Scope) (string, error)
}

type scratchArgs struct {
	Action string `json:"action" enum:"write,append,read,list" doc:"list if left out."`
	Name   string `json:"name" doc:"Such as notes.md; of another's, as list shows it."`
	Text   string `json:"text" doc:"write, append: what to keep."`
}

var (
	ownFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	anyFile = regexp.MustCompile(`^(sub_[a-z0-9]{8}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

func (s *Set) scratch(ctx context.Context, scope Scope, a scratchArgs) (string, error) {
	a.Action = cmp.Or(a.Action, "list")
	if scope.Scratch == nil || scope.Helper == "" {
		const none = "There is no shared folder here."
		if a.Action == "list" {
			return none, nil
		}
		return "", refusal(none)
	}
	var found faults
	writes := a.Action == "write" || a.Action == "append"
	switch {
	case a.Action == "list":
		return scope.Scratch.Listed(ctx, scope)
	case writes && !ownFile.MatchString(a.Name):
		found.add("name: send a plain name of letters, digits, dot, dash and underscore, such as notes.md")
	case !writes && !anyFile.MatchString(a.Name):
		found.add("name: send the name of a file, as action list shows it")
	}
	if writes && a.Text == "" {
		found.add("text: is missing; send what is to be kept")
	}
	if len(found) > 0 {
		return "", found
	}
	if !writes {
		return scope.Scratch.Kept(ctx, scope, a.Name)
	}
	if err := scope.Scratch.Keep(ctx, scope, a.Name, a.Text, a.Action == "append"); err != nil {
		return "", err
	}
	return fmt.Sprintf("Kept as %s/%s.", scope.Helper, a.Name), nil
}
