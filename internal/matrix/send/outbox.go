// Package send sends the messages of the outbox: each once, in the order of its room, and encrypted
// if the room is.
package send

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/render"
	"reverie/internal/matrix/retry"
	"reverie/internal/matrix/room"
	"reverie/internal/media"
	"reverie/internal/pace"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trace"
)

const (
	sendTimeout = time.Minute // of one event, including encryption
	parallel    = 8           // rooms sent to at the same time
	maxEdits    = 40          // of one draft; many edits make a room slow for all clients
	firstDraft  = time.Second // delay of the first draft: a short answer is sent whole
	draftPause  = 1500 * time.Millisecond
	draftGrowth = 40 // new bytes that are worth an edit
)

// Config configures a Sender.
type Config struct {
	Client *mautrix.Client
	// ThreadRelation is what a thread is called in events.
	ThreadRelation event.RelationType
	Rooms          *room.Rooms
	Inbox          *delivery.Inbox
	Outbox         *delivery.Outbox
	DB             *store.DB
	Media          *media.Store
	MaxFile        int64 // maximum bytes of a file
	Log            *slog.Logger
	Now            func() time.Time
	Text           func(ctx context.Context, room, key string, fill ...string) string
	Echo, Restart  time.Duration // wait for the echo of a message; the same after a restart of the homeserver

	SyncNumbers     func() (begun, done int64) // numbers of the last sync that was started, and that was processed
	SyncNow         func()                     // makes the next sync return at once
	Synced, Ending  <-chan struct{}            // closed after the first sync, and when the program ends
	InWake, OutWake chan struct{}              // wake the loops of the inbox and of Run
}

// Sender sends the messages of the outbox and shows drafts.
type Sender struct {
	Config
	*unconfirmed
	drafts drafts
	traced sync.Map // the *trace.Span of each message, until it is sent
}

// New returns a Sender; the caller starts Run. It loads the sends that an earlier run has not seen
// confirmed.
func New(ctx context.Context, cfg Config) (*Sender, error) {
	s := &Sender{Config: cfg, drafts: drafts{all: map[string]*draft{}}, unconfirmed: &unconfirmed{now: cfg.Now, echo: cfg.Echo,
		restart: cfg.Restart, sends: map[string]*unconfirmedSend{}}}
	rows, err := cfg.Outbox.Unconfirmed(ctx, "")
	for _, r := range rows {
		s.unconfirmed.add(r.ID)
	}
	return s, err
}

// drafts are the messages that are being written. mu also guards the drafts themselves.
type drafts struct {
	mu  sync.Mutex
	all map[string]*draft
}

// draft is the newest text of a message that is still being written.
type draft struct {
	id, room, replyTo string
	thread            string
	notice            bool
	text, shown       string
	asNotice          bool // the last draft was sent as m.notice
	due               time.Time
	edits             int
	full              bool // no more edits: too many, or too large for one event
}

// worthShowing reports whether the draft has changed enough for an edit.
func (d *draft) worthShowing() bool {
	return !d.full && d.text != d.shown && (d.notice || d.asNotice || len(d.text) >= len(d.shown)+draftGrowth || len(d.text) < len(d.shown))
}

// Send sets the text of the message m.ID in room, see chat.Transport. A final message is stored in
// the outbox when Send returns; Run sends it in the order of its room.
func (s *Sender) Send(ctx context.Context, room string, m chat.Outgoing) error {
	return s.enqueue(ctx, room, m)
}

// SendFinal is Send and Ack of done, in one transaction with what also stores.
func (s *Sender) SendFinal(ctx context.Context, room string, m chat.Outgoing, done []string,
	also func(context.Context, *sql.Tx) error,
) error {
	err := s.enqueue(ctx, room, m, func(ctx context.Context, tx *sql.Tx) error {
		if err := also(ctx, tx); err != nil {
			return err
		}
		for _, id := range done {
			if err := s.Inbox.MarkDone(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		pace.Wake(s.InWake)
	}
	return err
}

func (s *Sender) enqueue(ctx context.Context, room string, m chat.Outgoing, with ...func(context.Context, *sql.Tx) error) error {
	if m.File == nil && strings.TrimSpace(m.Text) == "" {
		return errors.New("matrix: nothing to say")
	}
	if m.Draft {
		if len(m.Options) == 0 { // a poll cannot be edited
			s.updateDraft(room, m)
		}
		return nil
	}
	s.drafts.mu.Lock()
	delete(s.drafts.all, m.ID)
	s.drafts.mu.Unlock()
	file, err := s.fileRow(m)
	if err != nil {
		return err
	}
	text, whole := text.Clip(strings.TrimSpace(m.Text), maxCaption), ""
	if m.File == nil {
		m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
		if text, whole, err = s.splitLarge(ctx, room, m.Text); err != nil {
			return err
		}
	}
	asks, err := encodePoll(m)
	if err != nil {
		return err
	}
	if _, span := trace.Start(ctx, trace.Send, ""); span != nil {
		s.traced.Store(m.ID, span)
	}
	final := delivery.Final{Room: room, Message: m, Text: text, File: file, Poll: asks, FullText: whole}
	if err := s.Outbox.StoreFinal(ctx, final, with...); err != nil {
		s.endSpan(m.ID, trace.Failure(err))
		return err
	}
	pace.Wake(s.OutWake)
	return nil
}

// endSpan ends the trace of sending a message, if it has one.
func (s *Sender) endSpan(id, failure string) {
	if span, ok := s.traced.LoadAndDelete(id); ok {
		span.(*trace.Span).End(failure)
	}
}

// updateDraft stores the newest text of a draft for Run.
func (s *Sender) updateDraft(room string, m chat.Outgoing) {
	s.drafts.mu.Lock()
	defer s.drafts.mu.Unlock()
	d := s.drafts.all[m.ID]
	if d == nil {
		d = &draft{id: m.ID, room: room, replyTo: m.ReplyTo, thread: m.Thread, notice: m.Notice, due: s.Now().Add(firstDraft)}
		s.drafts.all[m.ID] = d
	}
	before := d.worthShowing()
	d.text, d.notice = m.Text, m.Notice
	if !before && d.worthShowing() {
		pace.Wake(s.OutWake)
	}
}

// DropDrafts drops the drafts of a room.
func (s *Sender) DropDrafts(room string) {
	s.drafts.mu.Lock()
	defer s.drafts.mu.Unlock()
	maps.DeleteFunc(s.drafts.all, func(_ string, d *draft) bool { return d.room == room })
}

// Run sends what is due until ctx ends. It also ends when stopping is closed and nothing is due. It
// waits for the goroutines that it started.
func (s *Sender) Run(ctx context.Context, stopping <-chan struct{}) {
	l := NewRoomLocks()
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	select { // before the first sync the device lists may be outdated
	case <-s.Synced:
	case <-ctx.Done():
		return
	case <-stopping:
		return
	}
	s.SyncRecovered()
	if err := s.endInterruptedDrafts(ctx); err != nil {
		s.Log.Error("matrix: drafts of the last run", "err", err)
	}
	end := stopping
	for {
		next, started := s.dispatch(ctx, &g, l, end != nil)
		if end == nil && !started && l.idle() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-end:
			end = nil
		case <-s.OutWake:
		case <-time.After(min(max(next.Sub(s.Now()), 10*time.Millisecond), time.Minute)):
		}
	}
}

// endInterruptedDrafts closes the drafts of an earlier run that died.
func (s *Sender) endInterruptedDrafts(ctx context.Context) error {
	return s.Outbox.EndDrafts(ctx, func(r delivery.OutboxRow) string {
		s.drafts.mu.Lock()
		alive := s.drafts.all[r.ID] != nil
		s.drafts.mu.Unlock()
		if alive {
			return ""
		}
		s.Log.Info("matrix: a message that was being written is closed", "room", r.Room, "message", r.ID)
		return strings.TrimSpace(r.Text + "\n\n" + s.Text(ctx, r.Room, "matrix.interrupted"))
	})
}

// dispatch starts a send for each room that has something due and is not busy. It returns when the
// next message is due.
func (s *Sender) dispatch(ctx context.Context, g *errgroup.Group, l *RoomLocks, drafts bool) (next time.Time, started bool) {
	now := s.Now()
	settled, ask := s.unconfirmed.dropConfirmed(s.SyncNumbers())
	if ask {
		s.SyncNow()
	}
	next = pace.Earlier(now.Add(time.Minute), settled)
	l.Begin()
	// At most parallel rooms are busy or can begin.
	rows, postponed, err := s.Outbox.Due(ctx, now, retry.LongestWait, parallel+s.unconfirmed.len())
	if err != nil {
		if ctx.Err() == nil {
			s.Log.Error("matrix: outbox", "err", err)
		}
		return now.Add(time.Second), false
	}
	if drafts {
		begun, due := s.dispatchRedactions(ctx, g, l)
		started, next = started || begun, pace.Earlier(next, due)
	}
	if !postponed.IsZero() {
		next = pace.Earlier(next, postponed)
	}
	for _, r := range rows {
		if drafts && s.unconfirmed.has(r.ID) { // at the end no sync can confirm it
			continue
		}
		started = l.TryGo(g, r.Room, s.OutWake, func() { s.deliverRow(ctx, r) }) || started
	}
	if !drafts {
		return next, started
	}
	s.drafts.mu.Lock()
	var due []*draft
	for _, d := range s.drafts.all {
		switch {
		case !d.worthShowing():
		case d.due.After(now):
			next = pace.Earlier(next, d.due)
		default:
			due = append(due, d)
		}
	}
	s.drafts.mu.Unlock()
	for _, d := range due {
		if s.unconfirmed.has(d.id) {
			continue
		}
		started = l.TryGo(g, d.room, s.OutWake, func() { s.showDraft(ctx, d) }) || started
	}
	return next, started
}

// deliverRow sends a final message: as a new event, or as an edit of its draft event.
func (s *Sender) deliverRow(ctx context.Context, r delivery.OutboxRow) {
	sendCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := s.transmit(sendCtx, r)
	if err == nil {
		s.endSpan(r.ID, "")
		return
	}
	if ctx.Err() != nil {
		return // the program ends; the row stays as it is
	}
	v, wait := retry.Classify(err, r.Attempts)
	if v == retry.Never {
		s.Log.Error("matrix: message given up", "room", r.Room, "message", r.ID, "tries", r.Attempts+1, "err", err)
		why := err
		s.endSpan(r.ID, trace.Failure(why))
		if err = s.Outbox.MarkDead(ctx, r, why); err == nil && r.File != "" {
			err = s.Notify(ctx, s.unsentNotice(ctx, r, why))
		}
	} else {
		s.Log.Warn("matrix: message not sent; trying again", "room", r.Room, "message", r.ID,
			"in", wait.Round(time.Millisecond), "err", err)
		unconfirmed := mayBeSent(err)
		err = s.Outbox.Postpone(ctx, r, s.Now().Add(wait), err)
		if unconfirmed {
			s.unconfirmed.add(r.ID)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Error("matrix: outbox", "message", r.ID, "err", err)
		_ = pace.Pause(ctx, s.Ending, retry.FirstWait) // the row is still due: without a pause it would be sent again at once
	}
}

// transmit brings the homeserver to the state of the row. It is repeatable at any point.
func (s *Sender) transmit(ctx context.Context, r delivery.OutboxRow) error {
	if r.Poll != "" {
		return s.transmitPoll(ctx, r)
	}
	content, err := s.content(ctx, r)
	if err != nil {
		return err
	}
	m, err := s.markOf(ctx, r)
	if err != nil {
		return err
	}
	// A draft may have been sent under this transaction ID without a response. Then the event
	// has the draft's text, and the edit below is needed.
	whole := !r.Drafted && r.Revision <= 1
	fresh := r.EventID == ""
	if fresh {
		sent, err := s.send(ctx, r.Room, event.EventMessage, content, r.Txn, m)
		if err != nil {
			return err
		}
		if r.EventID, err = s.Outbox.MarkDelivered(ctx, r, sent.String(), whole); err != nil {
			return err
		}
	}
	if !whole {
		txn := fmt.Sprintf("%s-final-%d", r.Txn, r.Revision)
		if _, err := s.send(ctx, r.Room, event.EventMessage, edit(content, id.EventID(r.EventID), false), txn, m); err != nil {
			return err
		}
	}
	s.Log.Info("matrix: sent", "room", r.Room, "event", r.EventID, "message", r.ID)
	if whole && fresh {
		return nil // MarkDelivered has marked it
	}
	return s.Outbox.MarkSent(ctx, r)
}

// content renders a row. In a group an answer is a reply and mentions the asker, and a message for
// a person mentions them. No other user is ever mentioned, whatever the text contains.
func (s *Sender) content(ctx context.Context, r delivery.OutboxRow) (*event.MessageEventContent, error) {
	m := &event.MessageEventContent{MsgType: event.MsgText, Body: render.PlainBody(r.Text), Mentions: &event.Mentions{}}
	if r.Kind == "notice" {
		m.MsgType = event.MsgNotice
	}
	if html := render.HTML(r.Text); html != "" {
		m.Format, m.FormattedBody = event.FormatHTML, html
	}
	facts, err := s.Rooms.Facts(ctx, id.RoomID(r.Room))
	if err != nil {
		return nil, err
	}
	if r.File != "" {
		if m, err = s.fileContent(ctx, r); err != nil {
			return nil, err
		}
	}
	asker, thread, repliesTo := s.Inbox.Origin(ctx, r.ReplyTo)
	quotes := !facts.DirectPair() || thread != "" // a question in a thread may be answered in the main timeline
	if err := s.setRelation(ctx, m, r, cmp.Or(repliesTo, r.ReplyTo), quotes); err != nil {
		return nil, err
	}
	if m.RelatesTo != nil && strings.HasPrefix(m.Body, ">") { // some clients take it for the reply fallback and hide it
		m.Body = "\n" + m.Body
	}
	if !facts.DirectPair() {
		if asker != "" {
			m.Mentions.Add(id.UserID(asker))
		}
		for user := range strings.FieldsSeq(r.Mention) {
			m.Mentions.Add(id.UserID(user))
		}
	}
	return m, nil
}

// edit returns an m.replace event for target. Clients without edits show its fallback as another
// message, so the fallback has the whole text, unless brief is set or both are too large together.
func edit(content *event.MessageEventContent, target id.EventID, brief bool) *event.MessageEventContent {
	full, c := *content, *content
	full.RelatesTo = nil
	c.NewContent = &full
	c.RelatesTo = (&event.RelatesTo{}).SetReplace(target)
	c.Mentions = &event.Mentions{}
	if brief || 2*(render.JSONSize(c.Body)+render.JSONSize(c.FormattedBody))+64 > render.MaxSize {
		c.Body, c.Format, c.FormattedBody = "* "+text.Clip(c.Body, 200), "", ""
		return &c
	}
	c.Body = "* " + c.Body
	if c.FormattedBody != "" {
		c.FormattedBody = "* " + c.FormattedBody
	}
	return &c
}

// showDraft sends a draft as a new event or as an edit. Drafts may be lost.
func (s *Sender) showDraft(ctx context.Context, d *draft) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	s.drafts.mu.Lock()
	now := *d
	s.drafts.mu.Unlock()
	pause, full, err := s.transmitDraft(ctx, now)
	if err != nil && ctx.Err() == nil {
		s.Log.Debug("matrix: draft not shown", "room", d.room, "message", d.id, "err", err)
	}
	s.drafts.mu.Lock()
	defer s.drafts.mu.Unlock()
	d.due, d.full = s.Now().Add(pause), full
	if err == nil {
		d.shown, d.asNotice = now.text, now.notice
		d.edits++
	}
}

// transmitDraft sends a draft. It returns the pause before its next edit, and whether it must not
// be edited any more.
func (s *Sender) transmitDraft(ctx context.Context, d draft) (pause time.Duration, full bool, err error) {
	row, err := s.Outbox.EnsureDraft(ctx, d.room, chat.Outgoing{ID: d.id, Notice: d.notice, ReplyTo: d.replyTo, Thread: d.thread})
	if err != nil {
		return 5 * time.Second, false, err
	}
	if row.State != "draft" {
		return 0, true, nil // already final, or given up
	}
	if row.Behind {
		return draftPause, false, errors.New("an earlier message is not sent yet")
	}
	if strings.TrimSpace(d.text) == "" {
		return draftPause, false, nil
	}
	row.Text = d.text
	large := render.Size(d.text) > render.MaxSize
	if large {
		row.Text = render.Truncate(d.text, render.MaxSize, "")
	}
	content, err := s.content(ctx, row)
	if err != nil {
		return 5 * time.Second, false, err
	}
	if row.EventID == "" {
		var e id.EventID
		if e, err = s.send(ctx, d.room, event.EventMessage, live(content), row.Txn, draftMark(row)); err == nil {
			_, err = s.Outbox.MarkDelivered(ctx, row, e.String(), false)
		} else if mayBeSent(err) {
			s.unconfirmed.add(d.id)
		}
	} else {
		_, err = s.send(ctx, d.room, event.EventMessage, live(edit(content, id.EventID(row.EventID), true)), "", nil)
	}
	if err == nil {
		err = s.Outbox.UpdateDraft(ctx, d.id, row.Text)
	}
	// Longer texts are edited less often.
	verdict, wait := retry.Classify(err, 1)
	pause = draftPause + draftPause*time.Duration(d.edits)/10 + time.Duration(utf8.RuneCountInString(d.text)/20)*time.Millisecond
	if facts, err := s.Rooms.Facts(ctx, id.RoomID(d.room)); err != nil || facts.Encrypted {
		pause *= 2 // each edit uses an index of the megolm session, which rotates after a hundred
	}
	if err != nil {
		pause = max(pause, wait)
		var h mautrix.HTTPError
		if errors.As(err, &h) && h.IsStatus(http.StatusTooManyRequests) {
			pause *= 2
		}
	}
	return pause, verdict == retry.Never && ctx.Err() == nil || large || d.edits+1 >= maxEdits || tooLarge(err), err
}

// Redact redacts our message id in room, with its files. It does so even while the message is being
// sent. It is durable when it returns, and repeatable. An unknown id is no error, and its draft is
// dropped.
func (s *Sender) Redact(ctx context.Context, room, id string) error {
	s.drafts.mu.Lock()
	delete(s.drafts.all, id)
	s.drafts.mu.Unlock()
	if err := s.Outbox.Remove(ctx, room, id); err != nil {
		return err
	}
	pace.Wake(s.OutWake)
	return nil
}
