package matrix

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/history"
	"reverie/internal/session"
	"reverie/internal/settings"
	"reverie/internal/text"
)

const (
	maxRoot   = 1500 // runes of a thread's root that are quoted
	rootTime  = 10 * time.Second
	longestID = 255 // bytes of an id, as the specification has it
)

// threadIn is the thread of a message's relation, by its root; what cannot be one is none.
func threadIn(rel *event.RelatesTo) string {
	root := rel.GetThreadParent().String()
	control := func(r rune) bool { return r <= ' ' || r == 0x7f }
	if len(root) > longestID || !strings.HasPrefix(root, "$") || strings.ContainsFunc(root, control) {
		return ""
	}
	return root
}

// branchOf is the thread that m is answered in, as the room has it set.
func (c *Client) branchOf(ctx context.Context, m chat.Inbound) (string, error) {
	setting, err := settings.Store{DB: c.cfg.DB}.Get(ctx, m.Room, settings.Threads)
	return session.Branch(setting, m), err
}

// inActiveThread reports whether a message is for us because of the thread it stands in.
// Who mentions somebody else there talks to them.
func (g *gate) inActiveThread(msg *event.MessageEventContent, active func(root string) bool) bool {
	root := threadIn(msg.RelatesTo)
	if root == "" || active == nil {
		return false
	}
	if msg.Mentions != nil && slices.ContainsFunc(msg.Mentions.UserIDs, func(u id.UserID) bool { return u.String() != g.self }) {
		return false
	}
	return active(root)
}

// relate puts content where it belongs: into its thread, where clients that know no threads
// show it as a reply to the question or to our newest message there, or below what it answers.
func (c *Client) relate(ctx context.Context, m *event.MessageEventContent, r delivery.OutboxRow, private bool) error {
	if r.Thread != "" {
		newest, err := c.outbox.NewestIn(ctx, r.Room, r.Thread)
		if err != nil {
			return err
		}
		m.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(r.Thread), id.EventID(cmp.Or(r.ReplyTo, newest, r.Thread)))
		return nil
	}
	if r.ReplyTo == "" {
		return nil
	}
	// What was asked in a thread may be answered outside.
	if _, thread := c.inbox.Origin(ctx, r.ReplyTo); !private || thread != "" {
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(r.ReplyTo))
	}
	return nil
}

// fetchRoot quotes the root of the thread that m begins for us. What cannot be read is said
// in its place: the model then knows that something is missing, and the person hears of it.
func (c *Client) fetchRoot(ctx context.Context, m *chat.Inbound) error {
	if m.Thread == "" {
		return nil
	}
	if m.Branch != "" { // else it is answered outside, where the thread is not known
		if begun, err := history.NewStore(c.cfg.DB).Begun(ctx, history.TalkOf(m.Room, m.Branch)); err != nil || begun {
			return err
		}
	}
	l, err := c.link(ctx, m.Room, m.Thread)
	root := l.quote
	switch {
	case err != nil:
		root = chat.Quote{Text: "[it could not be read]"}
	case root.Text == "":
		root.Text = "[it was taken back, or has no words]"
	}
	root.ID, root.Why, root.Text = m.Thread, chat.QuoteThread, text.Clip(root.Text, maxRoot)
	m.Quotes = append([]chat.Quote{root}, m.Quotes...)
	return err
}
