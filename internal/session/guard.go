package session

import (
	"context"
	"fmt"

	"reverie/internal/prompt"
)

// Pressure says how full the window is. The guard never makes the window smaller
// because of it: that would only make it fuller.
type Pressure int

// The levels, from the calmest on, and the shares of the window at which they begin.
const (
	Calm      Pressure = iota
	Warning            // 70 %: said in the log and by !status
	Compact            // 85 %: the older part of the conversation should be summed up
	Emergency          // 95 %: the next request may not fit
)

func (p Pressure) String() string {
	return [...]string{"calm", "warning", "compact", "emergency"}[min(max(p, Calm), Emergency)]
}

// shares are where the levels begin, in percent of what the window has for a request.
var shares = [...]int{Warning: 70, Compact: 85, Emergency: 95}

// slack is how far, in percent, a share must have fallen below where a level begins
// until that level is over. It keeps a share that goes up and down a little from
// raising the level with every turn.
const slack = 10

// pressureOf is the level at used of room tokens, after the level was before. Where
// no room is known it is calm.
func pressureOf(used, room int, before Pressure) Pressure {
	if room <= 0 {
		return Calm
	}
	level := Calm
	for l := Warning; l <= Emergency; l++ {
		begins := shares[l]
		if l <= before {
			begins -= slack
		}
		if used*100 >= begins*room {
			level = l
		}
	}
	return level
}

// guard watches how full the window of a room is.
type guard struct {
	level Pressure
	used  int  // tokens of the latest request
	room  int  // what the window has for one; 0 = not known
	full  bool // the conversation is to be compacted before the next message is answered
}

// watch looks at the request just made: by the server's own count if it is one, or else by
// the estimate as it was calibrated. A level that begins is acted on once.
func (s *Session) watch(ctx context.Context, r prompt.Report, counted int) {
	g := &s.guard
	before := g.level
	g.used, g.room = r.Counted(), 0
	if _, ok := density(r.Total, counted); ok {
		g.used = counted
	}
	if r.Window > 0 {
		g.room = r.Window - r.MaxOutput
	}
	g.level = pressureOf(g.used, g.room, before)
	if g.level <= before {
		return
	}
	s.log.Warn("the window fills up", "level", g.level, "used", g.used, "of", g.room)
	act := map[Pressure]func(context.Context) error{Compact: s.relieve.compact, Emergency: s.relieve.emergency}[g.level]
	if act == nil {
		return
	}
	if err := act(ctx); err != nil { // the answer is there all the same
		s.log.Error("nothing was done about it", "level", g.level, "err", err)
	}
}

// relief is what is done when the window fills up. newSession fills it in.
type relief struct {
	compact   func(context.Context) error // while there is still room to do it well; nil = nothing
	emergency func(context.Context) error // the next request may not fit
}

// compactNext has the conversation compacted before the next message is answered: in
// the middle of a turn the model would lose what it is working on.
func (s *Session) compactNext(context.Context) error {
	s.guard.full = true
	return nil
}

// guardLine is how full the window is, for !status; "" = nothing to say.
func (s *Session) guardLine(ctx context.Context) string {
	g := s.guard
	if g.room <= 0 || g.used == 0 {
		return ""
	}
	line := s.text(ctx, "status.window", "percent", fmt.Sprint(min(100*g.used/g.room, 999)))
	switch g.level {
	case Warning:
		line = sentences(line, s.text(ctx, "status.window_warning"))
	case Compact, Emergency:
		line = sentences(line, s.text(ctx, "status.window_full"))
	}
	return line
}
