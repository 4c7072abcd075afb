package tool

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/memory"
	"reverie/internal/text"
)

type appendMemoryArgs struct {
	Entry  string `json:"entry" rule:"required" doc:"One fact, as a sentence that can be understood by itself."`
	About  string `json:"about" doc:"Whom or what it is about." brief:"-"`
	Kind   string `json:"kind" enum:"fact,preference,event" doc:"fact if left out." brief:"-"`
	Source string `json:"source" brief:"-"` // offered to no model; some send it from training
}

// appendMemory stores one fact in the room's scope for new memories. It records the assistant as
// author, and the message. Only `!remember` proves a person's wish, and only such a fact may be
// stored again after it was forgotten.
func (s *Set) appendMemory(ctx context.Context, scope Scope, a appendMemoryArgs) (string, error) {
	if len(scope.Memory) == 0 {
		return "", refusal("Nothing can be remembered in this conversation. Tell the person so.")
	}
	if text.HasSecret(a.Entry) {
		return "", refusal("Not remembered: it holds a password, a key or another secret. " +
			"Tell the person that `!remember` keeps it if they want that.")
	}
	entry, added, err := s.cfg.Memory.Add(ctx, memory.Entry{
		Scope: scope.Memory[0], Text: a.Entry, Subject: subject(a.About, a.Entry), Kind: memory.Kind(a.Kind), Source: memory.Assistant,
		Integrity: scope.Label.Integrity, Event: scope.Event, Quote: scope.Quote, ObservedAt: scope.At,
	}, scope.User)
	if errors.Is(err, memory.ErrForgotten) {
		return "", refusal("Not remembered: the person had this forgotten. Do not try again; " +
			"they can take it up again with `!remember` and the fact.")
	}
	if err != nil {
		return "", err
	}
	// The result repeats the stored line. So the model reports what was stored and not what it
	// sent.
	if !added {
		return "This was known already, nothing was added:\n" + entry.Text, nil
	}
	where := "this room's memory; everybody in this room can make use of it"
	switch {
	case entry.Scope == memory.Shared:
		where = "the shared memory; everybody who may talk to you can make use of it"
	case scope.Private:
		where = "this person's private memory"
	}
	return strings.Join([]string{"Remembered, in " + where + ":", entry.Text}, "\n"), nil
}

// maxSubject is the longest name of a subject, in characters.
const maxSubject = 60

// subject returns the name that the entry is about. It returns "" if the entry does not contain it
// or it is too long.
func subject(about, entry string) string {
	about = strings.Join(strings.Fields(about), " ")
	named := strings.Contains(strings.ToLower(entry), strings.ToLower(about))
	if !named || utf8.RuneCountInString(about) > maxSubject || strings.ContainsFunc(about, unicode.IsControl) {
		return ""
	}
	return about
}
