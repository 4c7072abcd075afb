package session

import (
	"context"
	"fmt"

	"reverie/internal/prompt"
)

// Shares of the window, in percent of what it has for a request.
const (
	filling = 70 // !status says so
	full    = 85 // the older part of the conversation is summarised with the next message
	slack   = 10 // so far below full a share must fall before it is acted on again
)

// guard watches how full the window of a room is. It never makes the window smaller:
// that would only make it fuller.
type guard struct {
	used  int  // tokens of the latest request
	room  int  // what the window has for one; 0 = not known
	acted bool // it is full, and that was acted on
	full  bool // the conversation is to be compacted before the next message is answered
}

// share is how full the window is, in percent; 0 = not known.
func (g *guard) share() int {
	if g.room <= 0 {
		return 0
	}
	return 100 * g.used / g.room
}

// watch looks at the request just made: by the server's own count if it is one, or else by
// the estimate as it was calibrated. In the middle of a turn the model would lose what it is
// working on, so the conversation is compacted with the next message.
func (s *Session) watch(r prompt.Report, counted int) {
	g := &s.guard
	g.used, g.room = r.Counted(), 0
	if _, ok := density(r.Total, counted); ok {
		g.used = counted
	}
	if r.Window > 0 {
		g.room = r.Window - r.MaxOutput
	}
	switch share := g.share(); {
	case share < full-slack:
		g.acted = false
	case share >= full && !g.acted:
		g.acted, g.full = true, true
		s.log.Warn("the window is nearly full", "used", g.used, "of", g.room)
	}
}

// guardLine is how full the window is, for !status; "" = nothing to say.
func (s *Session) guardLine(ctx context.Context) string {
	share := s.guard.share()
	if share == 0 {
		return ""
	}
	line := s.text(ctx, "status.window", "percent", fmt.Sprint(min(share, 999)))
	switch {
	case share >= full:
		return sentences(line, s.text(ctx, "status.window_full"))
	case share >= filling:
		return sentences(line, s.text(ctx, "status.window_warning"))
	}
	return line
}
