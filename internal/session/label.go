package session

import (
	"cmp"
	"context"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// place returns where the answer to in is read.
func (s *Session) place(in chat.Head) trust.Place {
	return trust.Place{Room: s.room, Person: in.Sender, Private: in.Private}
}

// senderIntegrity returns the integrity of text that the sender of in addresses to us.
func (m *Manager) senderIntegrity(in chat.Head) trust.Integrity {
	return trust.SenderIntegrity(in.Sender, !in.Unproven, m.cfg.Owners, m.cfg.Rooms.Allowed)
}

// messageLabel returns the label of a message with its quotes and files.
func (s *Session) messageLabel(ctx context.Context, in chat.Head, quotes []chat.Quote, files []history.File) (trust.Label, error) {
	l := trust.Label{Integrity: s.senderIntegrity(in), Readers: s.place(in).Readers()}
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

// quoteIntegrity returns the integrity of a quote in a message. Text of others was not addressed to us,
// so it is at most a guest's.
func (s *Session) quoteIntegrity(ctx context.Context, in chat.Head, q chat.Quote) (trust.Integrity, error) {
	switch {
	case q.OutgoingID != "" || q.Sender != "" && q.Sender == s.cfg.Rooms.UserID():
		l, _, err := s.cfg.History.LabelOf(ctx, s.room, q.OutgoingID) // an unknown message is foreign
		return l.Integrity, err
	case q.Sender == in.Sender && q.Sender != "" && q.Why == chat.QuoteContext: // it may predate the room's encryption
		return min(s.senderIntegrity(in), trust.User), nil
	case q.Sender == in.Sender && q.Sender != "":
		return s.senderIntegrity(in), nil
	case q.Sender != "" && s.senderIntegrity(chat.Head{Sender: q.Sender}) >= trust.User:
		return trust.Guest, nil
	}
	return trust.Foreign, nil
}

// readableQuotes returns in's quotes without those that readers of the room may not read: anybody can
// reply to an event ID that they know. A quoted message in the history has its edited text.
func (s *Session) readableQuotes(ctx context.Context, in chat.Message) ([]chat.Quote, error) {
	var out []chat.Quote
	for _, q := range in.Quotes {
		may, err := s.mayQuote(ctx, in.Head, q)
		if err != nil {
			return nil, err
		}
		if !may {
			s.log.Warn("quote dropped: the room's readers may not read it", "message", in.ID, "quote", q.ID)
			continue
		}
		was, known, err := s.cfg.History.Find(ctx, s.talk, q.ID)
		if err != nil {
			return nil, err
		}
		if known && q.OutgoingID == "" && len(was.Files) == 0 { // with edits
			q.Text = was.Text
		}
		out = append(out, q)
	}
	return out, nil
}

// mayQuote reports whether the readers of in may read q. Commands and their answers are not in the
// history and have no label. So in a room that was a direct chat, q must be newer than the direct chat.
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
	err = s.cfg.DB.QueryRowContext(ctx, `SELECT private, public_since FROM session WHERE room = ?`, s.room).Scan(&private, &opened)
	_, err = store.Found(err)
	return err == nil && !private && (opened == 0 || q.At.Unix() > opened), store.Wrap(err, "session: read room")
}

// splitOnNewReaders starts a new conversation if the room's readers have changed. It has no summary, as
// that would show earlier messages to new readers.
func (s *Session) splitOnNewReaders(ctx context.Context, now trust.Readers) error {
	if s.readers == now {
		return nil
	}
	was, err := s.cfg.History.Readers(ctx, s.talk)
	if err != nil {
		return err
	}
	if was != trust.Nobody && was != now {
		s.log.Info("the room's readers changed: starting a new conversation")
		if err := s.StartNew(ctx); err != nil {
			return err
		}
		s.lastHandled = chat.Head{}
		if err := s.cfg.History.SetReaders(ctx, s.talk, now); err != nil {
			return err
		}
	}
	s.readers = now
	return nil
}

// splitOnCurrentReaders is splitOnNewReaders for a change. Its sender may be a moderator who redacts
// messages, so the place is that of the person who wrote last.
func (s *Session) splitOnCurrentReaders(ctx context.Context) error {
	at, err := s.lastPlace(ctx, s.room)
	if err != nil {
		return err
	}
	return s.splitOnNewReaders(ctx, at.Readers())
}

// programLabel returns the label of the program's own text for readers.
func programLabel(r trust.Readers) trust.Label {
	return trust.Label{Integrity: trust.Owner, Readers: r}
}
