package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/media"
	"reverie/internal/text"
)

const (
	chainLength = 6                // messages back
	chainTime   = 10 * time.Second // for all of them
	chainRunes  = 6_000            // of all of them
	replyRunes  = 1_500            // of one
)

// replyChain puts into m the messages that it replies to, the oldest first, before what
// was heard in the room. The newest answer of ours needs no quote: the model has it.
func (f *completer) replyChain(ctx context.Context, m *chat.Message) error {
	if command.Is(m.Text) {
		return nil
	}
	var chain []chat.Quote
	var failed error
	seen := map[string]bool{m.ID: true}
	left := chainRunes
	for at := m.ReplyTo; at != "" && len(chain) < chainLength && !seen[at]; {
		seen[at] = true
		l, err := f.link(ctx, m.Room, at)
		if failed = err; l.newest || err != nil && len(chain) > 0 {
			break
		}
		if err != nil {
			l = link{quote: chat.Quote{ID: at, Text: whyNot(err)}}
		}
		if l.quote.Text != "" {
			l.quote.Why, l.quote.Text = chat.QuoteReply, text.Clip(l.quote.Text, replyRunes)
			if left -= utf8.RuneCountInString(l.quote.Text); left < 0 {
				break
			}
			chain = append(chain, l.quote)
		}
		at = l.next
	}
	slices.Reverse(chain)
	m.Quotes = append(chain, m.Quotes...)
	return failed
}

// link is a message of a reply chain, and what it replies to. One that says nothing that
// could be shown, as what was taken back, has no text.
type link struct {
	quote  chat.Quote
	next   string
	newest bool // it is our newest answer in the room
}

// link gets a message of a room: ours from the outbox, others from the homeserver.
func (f *completer) link(ctx context.Context, room, evt string) (link, error) {
	if own, replyTo, newest, err := f.outbox.QuoteOf(ctx, room, evt); own.ID != "" || err != nil {
		own.Sender = f.cli.UserID.String()
		return link{quote: own, next: replyTo, newest: newest}, err
	}
	got, err := f.eventOf(ctx, id.RoomID(room), id.EventID(evt))
	if err != nil {
		return link{}, err
	}
	l := link{quote: chat.Quote{ID: evt, Sender: got.Sender.String(), At: time.UnixMilli(got.Timestamp)}}
	msg := gate.MessageOf(got)
	if msg == nil || got.Unsigned.RedactedBecause != nil {
		return l, nil
	}
	l.next, l.quote.Text = msg.RelatesTo.GetNonFallbackReplyTo().String(), f.spoken(ctx, got, msg, gate.Words(msg))
	switch msg.MsgType {
	case event.MsgText, event.MsgNotice, event.MsgEmote:
	default:
		name := ""
		if gate.IsFile(msg) {
			name = media.Name(msg.GetFileName())
		}
		l.quote.Text = strings.Join(strings.Fields("("+strings.TrimPrefix(string(msg.MsgType), "m.")+") "+name+" "+l.quote.Text), " ")
	}
	return l, nil
}

var (
	errElsewhere = errors.New("the event is of another room")
	errPlain     = errors.New("plain text in an encrypted room")
)

// eventOf fetches an event of a room from the homeserver, parsed and decrypted, without edits.
// What was redacted says so in Unsigned and has no content.
// In an encrypted room a message in plain text is an error, because anybody on the way may have
// made it, and so is one from a device that the device rule excludes.
func (f *completer) eventOf(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
	got, err := f.cli.GetEvent(ctx, room, evt)
	if err == nil && (got == nil || got.ID != evt || got.RoomID != "" && got.RoomID != room) {
		err = errElsewhere
	}
	if err != nil {
		return nil, fmt.Errorf("fetch an event: %w", err)
	}
	got.RoomID = room
	if got.Type.Class = event.MessageEventType; got.StateKey != nil {
		got.Type.Class = event.StateEventType
	}
	if got.Unsigned.RedactedBecause != nil {
		return got, nil
	}
	if err := got.Content.ParseRaw(got.Type); err != nil && !errors.Is(err, event.ErrUnsupportedContentType) &&
		!errors.Is(err, event.ErrContentAlreadyParsed) {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	if got.Type != event.EventEncrypted {
		facts, err := f.rooms.Facts(ctx, room)
		if err == nil && facts.Encrypted && got.StateKey == nil {
			err = errPlain
		}
		return got, err
	}
	plain, err := f.devices.Decrypt(ctx, got)
	if err != nil {
		return nil, fmt.Errorf("decrypt an event: %w", err)
	}
	if unsigned, err := f.devices.Unsigned(ctx, plain); err != nil || unsigned && f.devices.MustBeSigned(plain.Sender) {
		return nil, cmp.Or(err, e2ee.ErrUnsigned)
	}
	if plain.RoomID == "" {
		plain.RoomID = room
	}
	return plain, nil
}

// whyNot is why a message cannot be shown, for the model.
func whyNot(err error) string {
	switch {
	case errors.Is(err, mautrix.MNotFound), errors.Is(err, mautrix.MForbidden), errors.Is(err, errElsewhere):
		return "(this message is not there, or not for you to see)"
	case errors.Is(err, context.DeadlineExceeded):
		return "(this message could not be fetched in time)"
	}
	return "(this message cannot be read)"
}
