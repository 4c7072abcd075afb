package session

import (
	"context"
	"time"

	"reverie/internal/chat"
	"reverie/internal/trust"
)

// Two bots that answer each other never stop. A bot is recognised by a long run of messages, each soon
// after our answer. It gets no more answers until it was silent for runGap.
const (
	runGap         = time.Minute // silence that ends a run
	maxRunInGroup  = 20          // messages of one run that are answered
	maxRunInDirect = 100         // … in a direct chat, where people talk for longer
)

// loopDetector counts the messages of one sender that follow each other quickly. It is not stored.
type loopDetector struct {
	lastID string    // the last counted message
	lastAt time.Time // when that was, or when it was answered
	run    int
}

// count counts the message id, received at now. It reports whether to answer it if a run has at most
// limit answers, and whether it is the first one over the limit.
func (p *loopDetector) count(id string, now time.Time, limit int) (answer, stops bool) {
	if id != p.lastID { // else a retry
		if now.Sub(p.lastAt) >= runGap {
			p.run = 0
		}
		p.lastID, p.lastAt = id, now
		p.run++
	}
	return p.run <= limit, p.run == limit+1
}

// passesLoopDetector reports whether to answer burst: its sender does not look like a bot in a loop. The
// room is told once when answering stops. Owners and the terminal's user are never taken for bots.
func (s *Session) passesLoopDetector(ctx context.Context, burst []chat.Message) (bool, error) {
	newest := burst[len(burst)-1]
	if s.cfg.Rooms.UserID() == "" || s.senderIntegrity(newest.Head) == trust.Owner {
		return true, nil
	}
	p, limit := s.loopDetectors[newest.Sender], maxRunInDirect
	if p == nil {
		p = &loopDetector{}
		s.loopDetectors[newest.Sender] = p
	}
	if !newest.Private {
		limit = maxRunInGroup
	}
	answer, stops := p.count(newest.ID, s.cfg.Now(), limit)
	if answer {
		return true, nil
	}
	s.log.Warn("message not answered: its sender looks like a bot in a loop",
		"message", newest.ID, "sender", newest.Sender)
	if !stops {
		return false, nil
	}
	if _, err := s.storeBurst(ctx, burst); err != nil { // !retry needs it
		return false, err
	}
	return false, s.sendNotice(ctx, newest.ID, s.text(ctx, "pace.stopped", "person", newest.Sender))
}
