package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/memory"
)

type mergeMemoriesArgs struct {
	IDs  string `json:"ids" doc:"The ids of the memories, with spaces between them."`
	Text string `json:"text" doc:"The one memory that takes their place."`
	Page int    `json:"page" rule:"min=1,max=1000,unset0" doc:"Of the list; 1 if left out."`
}

// mergePage is how many characters of the list one answer shows: the smallest
// windows have to have room for it.
const mergePage = 6000

// tidying is who did it, in the journal: the last change of the person is another one.
const tidying = "tidying"

// mergeMemories lists what may be put together here, or does that.
func (s *Set) mergeMemories(ctx context.Context, scope Scope, a mergeMemoriesArgs) (string, error) {
	access := memory.Access{Actor: scope.User, Scopes: scope.Memory, Integrity: scope.Label.Integrity}
	ids := strings.FieldsFunc(a.IDs, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;\"'`[]", r) })
	switch {
	case len(ids) == 0 && a.Text == "":
		return s.listMemories(ctx, scope, access, max(a.Page, 1))
	case len(ids) == 0:
		return "", faults{"ids: is missing; send the ids of the memories that text is to replace"}
	case a.Text == "":
		return "", faults{"text: is missing; send the memory that is to take their place"}
	}
	merged, err := s.cfg.Memory.Merge(ctx, access, ids, a.Text, tidying)
	var reason *memory.TextError
	switch {
	case errors.As(err, &reason):
		return "", refusal("Nothing was changed: " + reason.Error() + ".")
	case errors.Is(err, memory.ErrForgotten):
		return "", refusal("Nothing was changed: the person had this forgotten. Leave it out.")
	case err != nil:
		return "", err
	}
	done, err := s.cfg.Memory.History(ctx, access, merged.ID)
	if err != nil || len(done) == 0 {
		return "", err
	}
	undo := "!undo " + done[len(done)-1].Batch
	s.log.Info("memories were put together", "room", scope.Room, "memories", len(ids), "now", merged.ID, "undo", undo)
	return fmt.Sprintf("Put together as %s (the person can take it back with `%s`):\n%s", merged.ID, undo, merged.Text), nil
}

// listMemories shows a page of what may be put together, the oldest first.
func (s *Set) listMemories(ctx context.Context, scope Scope, access memory.Access, page int) (string, error) {
	all, err := s.cfg.Memory.Mergeable(ctx, access)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	at, size, belongs := 1, 0, memory.Scope("")
	for _, e := range all {
		line := e.ID + " " + e.Text
		n := utf8.RuneCountInString(line) + 1
		if size += n; size > mergePage && size > n {
			at, size = at+1, n
		}
		if at != page {
			continue
		}
		scope.Shows(e.Integrity)
		if e.Scope != belongs {
			fmt.Fprintf(&b, "Of %s; only these can be put together with each other:\n", s.cfg.Memory.File(e.Scope))
			belongs = e.Scope
		}
		b.WriteString(line + "\n")
	}
	switch {
	case b.Len() == 0 && page > 1:
		return "", refusal(fmt.Sprintf("There is no such page; the last is %d.", at))
	case b.Len() == 0:
		return "There are no memories here that may be put together.", nil
	case page < at:
		fmt.Fprintf(&b, "(page %d of %d; what is put together changes the pages)\n", page, at)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
