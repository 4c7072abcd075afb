package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Two programs that answer each other never stop. Nobody can tell a program by its id, so
// it is told by what it does: its messages come faster than anybody reads, or say the same
// again and again, or there is no end of them. Then it is no longer answered for a while.
const (
	hastyGap  = 2 * time.Second  // a message that comes sooner after our answer was not written by a person
	alikeGap  = 30 * time.Second // so is one that says what those before it said, if it comes within this
	mostHasty = 8                // such messages in a row are enough
	turnsIn   = 5 * time.Minute
	mostTurns = 20 // answers to one person of a group in that time
	firstHold = 10 * time.Minute
	longHold  = 24 * time.Hour
	calmGap   = time.Minute // who has been silent for so long is no program in a loop
	compared  = 3           // messages whose words are compared
)

// pace is how the messages of one sender in a room and our answers follow each other.
type pace struct {
	last               string // the newest message that was counted
	lastAt, answeredAt time.Time
	hasty              int
	turns              []int64    // when the last messages came, Unix milliseconds
	words              [][]uint16 // marks of their words
	held               string     // the message at which answering was stopped; empty = it is not
	until              time.Time
	holds              int
}

// hears counts a message that came at at, and reports whether it is to be answered, and
// whether answering stops with it. group tells that others are in the room.
func (p *pace) hears(id, text string, at time.Time, group bool) (answer, stops bool) {
	if id == p.last { // once more, after a restart
		return p.held == "", p.held == id
	}
	before := p.lastAt
	p.last, p.lastAt = id, at
	if p.held != "" {
		if at.Before(p.until) && at.Sub(before) < calmGap {
			return false, false
		}
		if at.Sub(before) >= calmGap {
			p.holds = 0
		}
		p.held, p.hasty, p.turns = "", 0, nil
	}
	words := wordMarks(text)
	gap := at.Sub(p.answeredAt)
	switch {
	case p.answeredAt.IsZero(), gap < 0: // it was written while the answer was
	case gap < hastyGap, gap < alikeGap && slices.ContainsFunc(p.words, func(w []uint16) bool { return alike(w, words) }):
		p.hasty++
	default:
		p.hasty = 0
	}
	p.words = append(p.words, words)
	p.words = p.words[max(0, len(p.words)-compared):]
	p.turns = slices.DeleteFunc(append(p.turns, at.UnixMilli()), func(t int64) bool { return t <= at.Add(-turnsIn).UnixMilli() })
	if p.hasty < mostHasty && (!group || len(p.turns) <= mostTurns) {
		return true, false
	}
	p.held, p.until = id, at.Add(min(firstHold<<min(p.holds, 10), longHold))
	p.holds++
	return false, true
}

// wordMarks are short marks of the words of a text: enough to tell whether two texts are
// alike, and nothing that could be read. A text of a word or two has none, for people
// often say the same there.
func wordMarks(text string) []uint16 {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	if len(fields) < 3 {
		return nil
	}
	var marks []uint16
	for _, f := range fields[:min(len(fields), 60)] {
		h := fnv.New32a()
		_, _ = h.Write([]byte(f)) // never fails
		marks = append(marks, uint16(h.Sum32()>>16)^uint16(h.Sum32()))
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}

// alike tells whether two texts have four of five words in common.
func alike(a, b []uint16) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	both := 0
	for _, m := range a {
		if _, ok := slices.BinarySearch(b, m); ok {
			both++
		}
	}
	return 5*both >= 4*(len(a)+len(b)-both)
}

// paced counts what a person wrote, several messages that are answered together as one,
// and reports whether it is to be answered. Where answering stops, the room is told once.
// Owners are people, and a terminal has nobody else.
func (s *Session) paced(ctx context.Context, burst []Inbound) (bool, error) {
	newest := burst[len(burst)-1]
	if s.cfg.Self == "" || s.level(newest) == trust.Owner {
		s.calmLater(`room = ?`, s.room)
		return true, nil
	}
	p, err := s.pace(ctx, newest.Sender)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	at, known := s.arrived[newest.ID]
	s.mu.Unlock()
	if !known {
		at = s.cfg.Now()
	}
	was := p.held
	answer, stops := p.hears(newest.ID, newest.Text, at, !newest.Private)
	s.along = append(s.along, func(ctx context.Context, tx *sql.Tx) error { return s.setPace(ctx, tx, newest.Sender, p) })
	if answer {
		if p.hasty > 0 || len(p.turns) > mostTurns/2 {
			return true, nil // two programs must not have each other answered
		}
		s.calmLater(`room = ? AND sender <> ?`, s.room, newest.Sender)
		return true, nil
	}
	s.log.Warn("a message is not answered: its sender writes as a program does that answers us", "message", newest.ID, "sender", newest.Sender, "until", p.until, "since", was)
	if !stops {
		return false, nil
	}
	if _, err := s.hear(ctx, burst); err != nil { // for !retry
		return false, err
	}
	return false, s.notice(ctx, newest, s.text(ctx, "pace.stopped", "person", newest.Sender, "time", p.until.In(s.cfg.Location).Format("15:04")))
}

// through forgets when messages came.
func (s *Session) through(burst []Inbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range burst {
		delete(s.arrived, in.ID)
	}
}

// hasAnswered notes that sender has an answer now.
func (s *Session) hasAnswered(ctx context.Context, tx *sql.Tx, sender string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE pace SET answered_at = ? WHERE room = ? AND sender = ?`, s.cfg.Now().UnixMilli(), s.room, sender); err != nil {
		return fmt.Errorf("session: note an answer: %w", err)
	}
	return nil
}

// calmDown has those answered again who were not.
func (s *Session) calmDown(ctx context.Context, db store.DBTX, which string, args ...any) error {
	if _, err := db.ExecContext(ctx, `UPDATE pace SET held = '', hasty = 0, holds = 0, turns = '' WHERE (held <> '' OR holds > 0) AND `+which, args...); err != nil {
		return fmt.Errorf("session: answer somebody again: %w", err)
	}
	return nil
}

// calmLater is calmDown with the next transaction of the turn.
func (s *Session) calmLater(which string, args ...any) {
	s.along = append(s.along, func(ctx context.Context, tx *sql.Tx) error { return s.calmDown(ctx, tx, which, args...) })
}

func (s *Session) pace(ctx context.Context, sender string) (*pace, error) {
	p := &pace{}
	var last, answered, until int64
	err := s.cfg.DB.QueryRowContext(ctx, `SELECT last, last_at, answered_at, hasty, turns, words, held, held_until, holds FROM pace WHERE room = ? AND sender = ?`, s.room, sender).
		Scan(&p.last, &last, &answered, &p.hasty, store.JSON(&p.turns), store.JSON(&p.words), &p.held, &until, &p.holds)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session: read the pace of a sender: %w", err)
	}
	p.lastAt, p.answeredAt, p.until = moment(last), moment(answered), moment(until)
	return p, nil
}

func (s *Session) setPace(ctx context.Context, tx *sql.Tx, sender string, p *pace) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO pace (room, sender, last, last_at, hasty, turns, words, held, held_until, holds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (room, sender) DO UPDATE SET last = excluded.last, last_at = excluded.last_at, hasty = excluded.hasty, turns = excluded.turns,
			words = excluded.words, held = excluded.held, held_until = excluded.held_until, holds = excluded.holds`,
		s.room, sender, p.last, millis(p.lastAt), p.hasty, store.JSON(&p.turns), store.JSON(&p.words), p.held, millis(p.until), p.holds)
	if err != nil {
		return fmt.Errorf("session: store the pace of a sender: %w", err)
	}
	return nil
}

// moment is a stored time; 0 is none.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
