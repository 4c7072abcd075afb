package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	"reverie/internal/text"
)

const (
	sendTimeout = time.Minute // for one event, encryption included
	parallel    = 8           // rooms sent to at the same time
	maxEdits    = 40          // of one message while it is being written; rooms with thousands of edits become slow for everybody
	firstDraft  = time.Second // a short answer is sent whole instead of being edited
	draftPause  = 1500 * time.Millisecond
	draftGrowth = 40 // bytes that must be new before a draft is worth an edit
)

// drafts are the messages that are being written. mu guards what they point to, too.
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
	asNotice          bool // as which it is shown
	due               time.Time
	edits             int
	full              bool // no more edits: too many, or too large for one event
}

// worth tells whether showing the draft's text is worth an event.
func (d *draft) worth() bool {
	return !d.full && d.text != d.shown && (d.notice || d.asNotice || len(d.text) >= len(d.shown)+draftGrowth || len(d.text) < len(d.shown))
}

// Send makes the message m.ID in room read m.Text, see chat.Transport. A
// final message is a row in the outbox when Send returns; it is sent by Run, in
// order with the other messages of the room.
func (c *Client) Send(ctx context.Context, room string, m chat.Outgoing) error {
	return c.say(ctx, room, m)
}

// SendFinal is Send and Ack of what is done, in one transaction with what also stores.
func (c *Client) SendFinal(ctx context.Context, room string, m chat.Outgoing, done []string,
	also func(context.Context, *sql.Tx) error,
) error {
	err := c.say(ctx, room, m, func(ctx context.Context, tx *sql.Tx) error {
		if err := also(ctx, tx); err != nil {
			return err
		}
		for _, id := range done {
			if err := c.inbox.Handled(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		retry.Wake(c.inWake)
	}
	return err
}

func (c *Client) say(ctx context.Context, room string, m chat.Outgoing, with ...func(context.Context, *sql.Tx) error) error {
	if m.File == nil && strings.TrimSpace(m.Text) == "" {
		return errors.New("matrix: nothing to say")
	}
	if m.Draft && len(m.Options) > 0 {
		return nil // a poll cannot be edited
	}
	if m.Draft {
		c.sketch(room, m)
		return nil
	}
	c.drafts.mu.Lock()
	delete(c.drafts.all, m.ID)
	c.drafts.mu.Unlock()
	file, err := c.packOut(m)
	if err != nil {
		return err
	}
	text, whole := text.Clip(strings.TrimSpace(m.Text), maxCaption), ""
	if m.File == nil {
		m.Text = strings.ToValidUTF8(m.Text, "\uFFFD")
		if text, whole, err = c.layOut(ctx, room, m.Text); err != nil {
			return err
		}
	}
	asks, err := packPoll(m)
	if err != nil {
		return err
	}
	final := delivery.Final{Room: room, Message: m, Text: text, File: file, Poll: asks, Whole: whole}
	if err := c.outbox.Say(ctx, final, with...); err != nil {
		return err
	}
	retry.Wake(c.outWake)
	return nil
}

// sketch keeps the newest text of a draft for the sender.
func (c *Client) sketch(room string, m chat.Outgoing) {
	c.drafts.mu.Lock()
	defer c.drafts.mu.Unlock()
	d := c.drafts.all[m.ID]
	if d == nil {
		d = &draft{id: m.ID, room: room, replyTo: m.ReplyTo, thread: m.Thread, notice: m.Notice, due: c.cfg.now().Add(firstDraft)}
		c.drafts.all[m.ID] = d
	}
	before := d.worth()
	d.text, d.notice = m.Text, m.Notice
	if !before && d.worth() {
		retry.Wake(c.outWake)
	}
}

func (c *Client) dropDrafts(room string) {
	c.drafts.mu.Lock()
	defer c.drafts.mu.Unlock()
	for id, d := range c.drafts.all {
		if d.room == room {
			delete(c.drafts.all, id)
		}
	}
}

// Ack records that an inbound message needs no more work.
func (c *Client) Ack(ctx context.Context, id string) error {
	err := c.inbox.Handled(ctx, c.cfg.DB, id)
	retry.Wake(c.inWake) // a room may have more messages than are handed over at once
	return err
}

// Cancelled reports whether the inbound message id was redacted before it was answered.
func (c *Client) Cancelled(ctx context.Context, id string) (bool, error) {
	return c.inbox.Withdrawn(ctx, id)
}

// runOutbox sends what is due, until ctx ends, or until stopping is closed and
// nothing is due any more. It waits for what it started.
func (c *Client) runOutbox(ctx context.Context, stopping <-chan struct{}) {
	l := newLanes()
	var g errgroup.Group
	g.SetLimit(parallel)
	defer func() { _ = g.Wait() }()
	select { // before the first sync our list of people's devices may be old
	case <-c.sync.synced:
	case <-ctx.Done():
		return
	case <-stopping:
		return
	}
	c.unconfirmed.extend()
	if err := c.endDrafts(ctx); err != nil {
		c.cfg.Log.Error("matrix: drafts of the last run", "err", err)
	}
	end := stopping
	for {
		next, started := c.dispatch(ctx, &g, l, end != nil)
		if end == nil && !started && l.idle() {
			return
		}
		timer := time.NewTimer(min(max(next.Sub(c.cfg.now()), 10*time.Millisecond), time.Minute))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-end:
			end = nil
		case <-c.outWake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// endDrafts closes the messages that an earlier run was writing when it died.
func (c *Client) endDrafts(ctx context.Context) error {
	return c.outbox.EndDrafts(ctx, func(r delivery.OutboxRow) string {
		c.drafts.mu.Lock()
		alive := c.drafts.all[r.ID] != nil
		c.drafts.mu.Unlock()
		if alive {
			return ""
		}
		c.cfg.Log.Info("matrix: a message that was being written is closed", "room", r.Room, "message", r.ID)
		return strings.TrimSpace(r.Text + "\n\n" + c.cfg.Text(ctx, r.Room, "matrix.interrupted"))
	})
}

// dispatch starts a job for each room that has something due and is not being
// sent to, and returns when the next thing will be due.
func (c *Client) dispatch(ctx context.Context, g *errgroup.Group, l *lanes, drafts bool) (next time.Time, started bool) {
	now := c.cfg.now()
	settled, ask := c.unconfirmed.settle(c.sync.begun.Load(), c.sync.done.Load())
	if ask {
		c.sync.hurry()
	}
	next = earlier(now.Add(time.Minute), settled)
	l.begin()
	heads, err := c.outbox.NextPerRoom(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Log.Error("matrix: outbox", "err", err)
		}
		return now.Add(time.Second), false
	}
	if drafts {
		begun, due := c.dispatchRedactions(ctx, g, l)
		started, next = started || begun, earlier(next, due)
	}
	pending := map[string]bool{}
	for _, r := range heads {
		pending[r.Room] = true
		if r.NextAt.After(now) && !r.NextAt.After(now.Add(retry.LongestWait)) { // or our clock was set back
			next = earlier(next, r.NextAt)
			continue
		}
		if drafts && c.unconfirmed.has(r.ID) { // at the end there is no more sync to ask
			continue
		}
		started = l.work(g, r.Room, c.outWake, func() { c.deliverRow(ctx, r) }) || started
	}
	if !drafts {
		return next, started
	}
	c.drafts.mu.Lock()
	var due []*draft
	for _, d := range c.drafts.all {
		switch {
		case !d.worth() || pending[d.room]:
		case d.due.After(now):
			next = earlier(next, d.due)
		default:
			due = append(due, d)
		}
	}
	c.drafts.mu.Unlock()
	for _, d := range due {
		if c.unconfirmed.has(d.id) {
			continue
		}
		started = l.work(g, d.room, c.outWake, func() { c.showDraft(ctx, d) }) || started
	}
	return next, started
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// deliverRow sends a final message: as a new event, or as an edit of the event
// that carried its drafts.
func (c *Client) deliverRow(ctx context.Context, r delivery.OutboxRow) {
	sendCtx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := c.transmit(sendCtx, r)
	if err == nil {
		return
	}
	if ctx.Err() != nil {
		return // we are stopping; the row stays as it is
	}
	v, wait := retry.Classify(err, r.Attempts)
	if v == retry.Never {
		c.cfg.Log.Error("matrix: message given up", "room", r.Room, "message", r.ID, "tries", r.Attempts+1, "err", err)
		why := err
		if err = c.outbox.MarkDead(ctx, r, why); err == nil && r.File != "" {
			err = c.tell(ctx, c.unsent(ctx, r, why))
		}
	} else {
		c.cfg.Log.Warn("matrix: message not sent; trying again", "room", r.Room, "message", r.ID,
			"in", wait.Round(time.Millisecond), "err", err)
		unconfirmed := mayBeSent(err)
		err = c.outbox.Postpone(ctx, r, c.cfg.now().Add(wait), err)
		if unconfirmed {
			c.unconfirmed.add(r.ID)
		}
	}
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("matrix: outbox", "message", r.ID, "err", err)
		_ = retry.Pause(ctx, c.ending, retry.FirstWait) // the row is still due, and would be sent again at once
	}
}

// transmit brings the server to the state the row asks for. It can be repeated
// at any point.
func (c *Client) transmit(ctx context.Context, r delivery.OutboxRow) error {
	if r.Poll != "" {
		return c.transmitPoll(ctx, r)
	}
	content, err := c.content(ctx, r)
	if err != nil {
		return err
	}
	// A draft may have been sent under this id, without us learning of it. Then
	// the event reads as that draft did, and the edit below is needed.
	whole := !r.Drafted && r.Revision <= 1
	if r.EventID == "" {
		event, err := c.send(ctx, id.RoomID(r.Room), content, r.Txn)
		if err != nil {
			return err
		}
		if r.EventID, err = c.outbox.Delivered(ctx, r, event.String(), whole); err != nil {
			return err
		}
	} else if whole {
		if err := c.outbox.Sent(ctx, r); err != nil {
			return err
		}
	}
	if whole {
		c.cfg.Log.Info("matrix: sent", "room", r.Room, "event", r.EventID, "message", r.ID)
		return nil
	}
	txn := fmt.Sprintf("%s-final-%d", r.Txn, r.Revision)
	if _, err := c.send(ctx, id.RoomID(r.Room), edit(content, id.EventID(r.EventID), false), txn); err != nil {
		return err
	}
	c.cfg.Log.Info("matrix: sent", "room", r.Room, "event", r.EventID, "message", r.ID)
	return c.outbox.Sent(ctx, r)
}

// content renders a row. In a group an answer is a reply and mentions who
// asked, and a message that is for somebody mentions them; nobody else is ever
// mentioned, whatever the text says.
func (c *Client) content(ctx context.Context, r delivery.OutboxRow) (*event.MessageEventContent, error) {
	m := &event.MessageEventContent{MsgType: event.MsgText, Body: render.Body(r.Text), Mentions: &event.Mentions{}}
	if r.Kind == "notice" {
		m.MsgType = event.MsgNotice
	}
	if html := render.HTML(r.Text); html != "" {
		m.Format, m.FormattedBody = event.FormatHTML, html
	}
	facts, err := c.rooms.facts(ctx, id.RoomID(r.Room))
	if err != nil {
		return nil, err
	}
	if r.File != "" {
		if m, err = c.fileContent(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := c.relate(ctx, m, r, facts.Pair()); err != nil {
		return nil, err
	}
	if m.RelatesTo != nil {
		m.Body = render.KeepQuote(m.Body)
	}
	if r.ReplyTo != "" && !facts.Pair() {
		if asker, _ := c.inbox.Origin(ctx, r.ReplyTo); asker != "" {
			m.Mentions.Add(id.UserID(asker))
		}
	}
	if !facts.Pair() {
		for _, user := range strings.Fields(r.Mention) {
			m.Mentions.Add(id.UserID(user))
		}
	}
	return m, nil
}

// edit makes content replace what event said. Clients that know no edits show it
// as another message, so it says all of it there too, unless more edits will come, or
// the text twice is too large for one event.
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

// showDraft sends a draft's first event, or edits it. Drafts may be lost.
func (c *Client) showDraft(ctx context.Context, d *draft) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	c.drafts.mu.Lock()
	now := *d
	c.drafts.mu.Unlock()
	text := now.text
	pause, full, err := c.transmitDraft(ctx, &now, text)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Debug("matrix: draft not shown", "room", d.room, "message", d.id, "err", err)
	}
	c.drafts.mu.Lock()
	defer c.drafts.mu.Unlock()
	d.due = c.cfg.now().Add(pause)
	d.full = full
	if err == nil {
		d.shown, d.asNotice = text, now.notice
		d.edits++
	}
}

// transmitDraft returns how long to leave the draft alone, and whether it is
// to be left alone for good.
func (c *Client) transmitDraft(ctx context.Context, d *draft, text string) (pause time.Duration, full bool, err error) {
	row, err := c.outbox.Draft(ctx, d.room, chat.Outgoing{ID: d.id, Notice: d.notice, ReplyTo: d.replyTo, Thread: d.thread})
	if err != nil {
		return 5 * time.Second, false, err
	}
	if row.State != "draft" {
		return 0, true, nil // final already, or given up
	}
	if strings.TrimSpace(text) == "" {
		return draftPause, false, nil
	}
	row.Text = text
	large := render.Size(text) > render.MaxSize
	if large {
		row.Text = render.Beginning(text, render.MaxSize, "")
	}
	content, err := c.content(ctx, row)
	if err != nil {
		return 5 * time.Second, false, err
	}
	if row.EventID == "" {
		var e id.EventID
		if e, err = c.send(ctx, id.RoomID(d.room), live(content), row.Txn); err == nil {
			_, err = c.outbox.Delivered(ctx, row, e.String(), false)
		} else if mayBeSent(err) {
			c.unconfirmed.add(d.id)
		}
	} else {
		_, err = c.send(ctx, id.RoomID(d.room), live(edit(content, id.EventID(row.EventID), true)), "")
	}
	if err == nil {
		err = c.outbox.DraftShown(ctx, d.id, row.Text)
	}
	// The longer it goes on, the less often it is worth it.
	verdict, wait := retry.Classify(err, 1)
	pause = draftPause + draftPause*time.Duration(d.edits)/10 + time.Duration(utf8.RuneCountInString(text)/20)*time.Millisecond
	if facts, err := c.rooms.facts(ctx, id.RoomID(d.room)); err != nil || facts.Encrypted {
		pause *= 2 // each edit is a step of the room's key, which is changed after a hundred
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
