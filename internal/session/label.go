package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/trust"
)

// place is where the answer to in is read.
func (s *Session) place(in chat.Head) trust.Place {
	return trust.Place{Room: s.room, Person: in.Sender, Private: in.Private}
}

// level is how far what the sender of in addresses to us is trusted.
func (m *Manager) level(in chat.Head) trust.Integrity {
	return trust.Sender(in.Sender, !in.Unproven, m.cfg.Owners, m.cfg.Rooms.Allowed)
}

// labelOf is the label of a message with all that came with it.
func (s *Session) labelOf(ctx context.Context, in chat.Head, quotes []chat.Quote, files []history.File) (trust.Label, error) {
	l := trust.Label{Integrity: s.level(in), Readers: s.place(in).Readers()}
	if len(files) > 0 {
		l.Integrity = trust.Foreign
	}
	for _, q := range quotes {
		of, err := s.quoteIntegrity(ctx, in, q)
		if err != nil {
			return l, err
		}
		l.Integrity = min(l.Integrity, of)
	}
	return l, nil
}

// quoteIntegrity is of a quote in a message: other people's words were not addressed to us.
func (s *Session) quoteIntegrity(ctx context.Context, in chat.Head, q chat.Quote) (trust.Integrity, error) {
	switch {
	case q.OutgoingID != "" || q.Sender != "" && q.Sender == s.cfg.Rooms.UserID():
		l, _, err := s.cfg.History.LabelOf(ctx, s.room, q.OutgoingID) // what is not there is foreign
		return l.Integrity, err
	case q.Sender == in.Sender && q.Sender != "" && q.Why == chat.QuoteContext: // it may be from before the room was encrypted
		return min(s.level(in), trust.User), nil
	case q.Sender == in.Sender && q.Sender != "":
		return s.level(in), nil
	case q.Sender != "" && s.level(chat.Head{Sender: q.Sender}) >= trust.User:
		return trust.Guest, nil
	}
	return trust.Foreign, nil
}

// readable leaves out the quotes that may not be read where in was written: anybody can reply to an id
// that they know. What the history knows reads as it was edited.
func (s *Session) readable(ctx context.Context, in chat.Message) ([]chat.Quote, error) {
	var out []chat.Quote
	for _, q := range in.Quotes {
		may, err := s.mayQuote(ctx, in.Head, q)
		if err != nil {
			return nil, err
		}
		if !may {
			s.log.Warn("a quote is left out: those who read the room may not read it", "message", in.ID, "quote", q.ID)
			continue
		}
		was, known, err := s.cfg.History.Find(ctx, s.talk, q.ID)
		if err != nil {
			return nil, err
		}
		if known && q.OutgoingID == "" && len(was.Files) == 0 { // as it was edited
			q.Text = was.Text
		}
		out = append(out, q)
	}
	return out, nil
}

// mayQuote reports whether those who read in may read q. Commands and what they say are not in
// the history, and an edit may have new readers: in a room that was a direct chat, only what is
// newer than that may be read.
func (s *Session) mayQuote(ctx context.Context, in chat.Head, q chat.Quote) (bool, error) {
	l, known, err := s.cfg.History.LabelOf(ctx, s.room, cmp.Or(q.OutgoingID, q.ID))
	if err != nil || known && !s.place(in).MayRead(l.Readers) {
		return false, err
	}
	if in.Private || q.Why == chat.QuoteContext {
		return true, nil
	}
	var private bool
	var opened int64
	err = s.cfg.DB.QueryRowContext(ctx, `SELECT private, opened FROM session WHERE room = ?`, s.room).Scan(&private, &opened)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("session: read room: %w", err)
	}
	return !private && (opened == 0 || q.At.Unix() > opened), nil
}

// separate begins a new conversation, without a summary, where others read the room than those
// with whom the current one was held.
func (s *Session) separate(ctx context.Context, now trust.Readers) error {
	if s.readBy == now {
		return nil
	}
	was, err := s.cfg.History.Readers(ctx, s.talk)
	if err != nil {
		return err
	}
	if was != trust.Nobody && was != now {
		s.log.Info("others read this room now: a new conversation begins")
		if err := s.StartNew(ctx); err != nil {
			return err
		}
		s.newest = chat.Head{}
		if err := s.cfg.History.ReadBy(ctx, s.talk, now); err != nil {
			return err
		}
	}
	s.readBy = now
	return nil
}

// separateNow is separate for a change, which answers anew in the room as it is now. Who makes
// it need not be who talks there: a moderator redacts messages, too.
func (s *Session) separateNow(ctx context.Context) error {
	at, err := s.lastPlace(ctx)
	if err != nil {
		return err
	}
	return s.separate(ctx, at.Readers())
}

// untrusted names the texts of a request that are below the line, for people, and a mark that
// changes when more of them come in.
func (t *turn) untrusted(ctx context.Context, past []history.Message, c history.Compaction) (seen []string, mark string) {
	add := func(key string, args ...string) {
		if text := t.text(ctx, key, args...); !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	newest, prefix := int64(0), ""
	for i := range past {
		m := &past[i]
		if m.Role == llm.Assistant || m.Label.Integrity >= trust.User { // what the model says is made from the others
			continue
		}
		newest = m.ID
		switch {
		case m.Role == llm.Tool:
			add("approve.seen.tool")
		case len(m.Files) > 0:
			for _, f := range m.Files {
				add("approve.seen.file", "name", history.OneLine(f.Name, 60))
			}
		case len(m.Quoted) > 0:
			add("approve.seen.quote")
		default:
			add("approve.seen.kept")
		}
	}
	for i := range past {
		if m := &past[i]; m.Tail != "" && m.TailIntegrity < trust.User {
			add("approve.seen.kept")
			if m.TailIntegrity < trust.Guest { // what acts store that are allowed here is no text from elsewhere
				newest = max(newest, m.ID)
			}
		}
	}
	summary := int64(0)
	if c.Text() != "" && c.Integrity < trust.User {
		summary = c.ID
		add("approve.seen.kept")
	}
	for _, r := range t.told {
		if r.Integrity < trust.User && r.Tokens > 0 && r.ID != "summary" {
			add("approve.seen.kept")
			if r.Zone == section.Prefix && r.Integrity < trust.Guest {
				prefix += " " + r.ID
			}
		}
	}
	return seen, fmt.Sprintf("%d %d%s", newest, summary, prefix)
}

// programs is the label of what the program itself says to readers.
func programs(r trust.Readers) trust.Label { return trust.Label{Integrity: trust.Owner, Readers: r} }
