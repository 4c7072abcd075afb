package send

import (
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"reverie/internal/matrix/retry"
)

// Lanes are the rooms being sent to right now: one event at a time in each, so
// that order is kept, and a room that is slow does not hold up another.
type Lanes struct {
	mu   sync.Mutex
	busy map[string]bool
	used map[string]bool // busy ones, and those that were since Begin
}

// NewLanes returns lanes in which nothing is done.
func NewLanes() *Lanes { return &Lanes{busy: map[string]bool{}, used: map[string]bool{}} }

// Begin is called before it is read what is to be done. Until the next time each room is
// entered at most once, and none that is busy now: what was read of it may be done since.
func (l *Lanes) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = maps.Clone(l.busy)
}

func (l *Lanes) enter(room string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used[room] {
		return false
	}
	l.busy[room], l.used[room] = true, true
	return true
}

func (l *Lanes) exit(room string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, room)
}

// Work runs f in g for room and then pokes wake, unless the room cannot be entered or g is
// full. It tells whether f runs.
func (l *Lanes) Work(g *errgroup.Group, room string, wake chan struct{}, f func()) bool {
	if !l.enter(room) {
		return false
	}
	if !g.TryGo(func() error {
		defer retry.Wake(wake)
		defer l.exit(room)
		f()
		return nil
	}) {
		l.exit(room)
		return false
	}
	return true
}

// idle tells whether nothing was being done at Begin or since: what was left out then is
// looked at when that ends.
func (l *Lanes) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.used) == 0
}
