package send

import (
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"reverie/internal/pace"
)

// RoomLocks lets one event be sent to each room at a time. That keeps the order, and a slow room
// does not delay the others.
type RoomLocks struct {
	mu   sync.Mutex
	busy map[string]bool
	used map[string]bool // busy ones, and those that were busy since Begin
}

// NewRoomLocks returns locks that are all free.
func NewRoomLocks() *RoomLocks { return &RoomLocks{busy: map[string]bool{}, used: map[string]bool{}} }

// Begin starts a pass; call it before reading the rows that are due. Until the next Begin each room
// is locked at most once, and not if it is busy now: its rows may be outdated.
func (l *RoomLocks) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = maps.Clone(l.busy)
}

func (l *RoomLocks) unlock(room string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, room)
}

// TryGo runs f for room in g and then signals wake. It returns false without running f if the room
// is locked or g is full.
func (l *RoomLocks) TryGo(g *errgroup.Group, room string, wake chan struct{}, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used[room] {
		return false
	}
	l.used[room] = true
	started := g.TryGo(func() error {
		defer pace.Wake(wake)
		defer l.unlock(room)
		f()
		return nil
	})
	if started {
		l.busy[room] = true
	}
	return started
}

// idle reports whether no room was busy since Begin. If one was, its end starts the next pass.
func (l *RoomLocks) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.used) == 0
}
