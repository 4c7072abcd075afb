package session

import (
	"context"
	"time"

	"reverie/internal/chat"
	"reverie/internal/trust"
)

// Two programs that answer each other never stop. A program is told by what it does: there is no
// end of its messages, each soon after our answer. Then it is not answered until it was silent.
const (
	calmGap      = time.Minute // who is silent for so long begins a new row
	mostInGroup  = 20          // messages of one row that are answered
	mostInDirect = 100         // … where nobody else is, and a person may talk for long
)

// pace is how the messages of one sender follow each other. It begins anew with the program.
type pace struct {
	newest string    // the message that was counted last
	at     time.Time // when that was, or when it was answered
	row    int
}

// hears counts the message id that came at now, and reports whether it is to be answered when
// most messages of a row are, and whether it is the first that is not.
func (p *pace) hears(id string, now time.Time, most int) (answer, stops bool) {
	if id != p.newest { // else it is tried again
		if now.Sub(p.at) >= calmGap {
			p.row = 0
		}
		p.newest, p.at = id, now
		p.row++
	}
	return p.row <= most, p.row == most+1
}

// paced counts a burst of a person, and reports whether it is to be answered. Where answering stops,
// the room is told once. Owners are people, and a terminal has nobody else.
func (s *Session) paced(ctx context.Context, burst []chat.Message) (bool, error) {
	newest := burst[len(burst)-1]
	if s.cfg.Rooms.UserID() == "" || s.level(newest.Head) == trust.Owner {
		return true, nil
	}
	p, most := s.paces[newest.Sender], mostInDirect
	if p == nil {
		p = &pace{}
		s.paces[newest.Sender] = p
	}
	if !newest.Private {
		most = mostInGroup
	}
	answer, stops := p.hears(newest.ID, s.cfg.Now(), most)
	if answer {
		return true, nil
	}
	s.log.Warn("a message is not answered: its sender writes as a program does that answers us",
		"message", newest.ID, "sender", newest.Sender)
	if !stops {
		return false, nil
	}
	if _, err := s.hear(ctx, burst); err != nil { // for !retry
		return false, err
	}
	return false, s.notice(ctx, newest.ID, s.text(ctx, "pace.stopped", "person", newest.Sender))
}

// hasAnswered notes that sender has an answer now.
func (s *Session) hasAnswered(sender string) {
	if p := s.paces[sender]; p != nil {
		p.at = s.cfg.Now()
	}
}
