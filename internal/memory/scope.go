package memory

import (
	"cmp"
	"errors"
	"slices"

	"reverie/internal/trust"
)

// Scope says who may read an entry. Make one with Private or Room, or use Shared.
type Scope = trust.Readers

// Shared entries are seen by everyone who may talk to the assistant.
const Shared = trust.Everybody

// Private is the scope of messages that user wrote in a direct chat. user is a Matrix id.
func Private(user string) Scope { return trust.PersonReaders(user) }

// Room is the scope of messages in the room id with several people.
func Room(id string) Scope { return trust.RoomReaders(id) }

// Isolation says where new entries go. The zero value is Strict.
type Isolation string

// The isolations.
const (
	Strict Isolation = "strict" // to the room, or to the person in a direct chat
	Common Isolation = "shared" // to everybody; what was private before stays private
)

// Visible lists the scopes that may be read in a conversation. New entries go to the first. private
// means a direct chat with user: only there is that person's private memory included, whatever the
// isolation.
func (i Isolation) Visible(room, user string, private bool) []Scope {
	own := trust.Place{Room: room, Person: user, Private: private}.Readers()
	if i == Common {
		return []Scope{Shared, own}
	}
	return []Scope{own, Shared}
}

// Access says who reads or changes entries, and which ones. The zero Access sees nothing.
type Access struct {
	Actor  string  // a Matrix id, or a part of the program
	Scopes []Scope // from Visible
	All    bool    // every scope, for the operator at the command line
	Owner  bool    // the actor is an owner of the assistant
	// Integrity is that of new texts and answers from the actor.
	Integrity trust.Integrity
}

// Sees reports whether the actor may read memories of s.
func (a Access) Sees(s Scope) bool { return a.All || slices.Contains(a.Scopes, s) }

// Errors that callers tell apart. Their texts are for people.
var (
	ErrNotFound  = errors.New("there is no such memory here")
	ErrForgotten = errors.New("this was to be forgotten, so it is not noted again; `!remember` followed by the text takes it up once more")
	ErrChanged   = errors.New("it was changed since")
	ErrGone      = errors.New("what was forgotten is gone for good and cannot be brought back")
	ErrNothing   = errors.New("there is nothing to undo here")
	ErrNotYours  = errors.New("only the person it belongs to, or an owner, may do that")
)

// sortedUnique sorts all and removes duplicates, in place.
func sortedUnique[T cmp.Ordered](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}
