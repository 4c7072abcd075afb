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
	"reverie/internal/history"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/media"
	"reverie/internal/text"
)

const (
	chainLength = 6                // messages of a reply chain
	chainTime   = 10 * time.Second // to fetch the whole chain
	chainRunes  = 6_000            // of the whole chain
	replyRunes  = 1_500            // of one message
)

// quoteReplyChain quotes in m the chain of messages that it replies to, oldest first. The bot's newest
// answer is not quoted because the model has it in the history.
func (f *completer) quoteReplyChain(ctx context.Context, m *chat.Message) error {
	if command.Is(m.Text) {
		return nil
	}
	var chain []chat.Quote
	var failed error
	seen := map[string]bool{m.ID: true}
	left := chainRunes
	for at := m.ReplyTo; at != "" && len(chain) < chainLength && !seen[at]; {
		seen[at] = true
		l, err := f.fetchMessageToQuote(ctx, m.Room, at)
		if failed = err; l.newest || err != nil && len(chain) > 0 {
			break
		}
		if err != nil {
			l = link{quote: chat.Quote{ID: at, Text: messageFetchErrorText(err)}}
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

// link is one message of a reply chain. A message without text to show, such as a redacted one,
// has an empty quote.
type link struct {
	quote  chat.Quote
	next   string // the event that it replies to
	newest bool   // the bot's newest answer in the room
}

// fetchMessageToQuote returns one message of a chain: ours from the outbox, others from the homeserver.
func (f *completer) fetchMessageToQuote(ctx context.Context, room, evt string) (link, error) {
	if own, replyTo, newest, err := f.outbox.QuoteOf(ctx, room, evt); own.ID != "" || err != nil {
		own.Sender = f.cli.UserID.String()
		return link{quote: own, next: replyTo, newest: newest}, err
	}
	got, err := f.fetchAndDecryptEvent(ctx, id.RoomID(room), id.EventID(evt))
	if err != nil {
		return link{}, err
	}
	l := link{quote: chat.Quote{ID: evt, Sender: got.Sender.String(), At: time.UnixMilli(got.Timestamp)}}
	msg := gate.ContentOf(got)
	if msg == nil || got.Unsigned.RedactedBecause != nil {
		return l, nil
	}
	l.next, l.quote.Text = msg.RelatesTo.GetNonFallbackReplyTo().String(), f.prefixEmoteSender(ctx, got, msg, gate.TextOf(msg))
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
	errElsewhere = errors.New("the event belongs to another room")
	errPlain     = errors.New("the event is not encrypted, but its room is")
)

// fetchAndDecryptEvent fetches an event from the homeserver, parsed and decrypted, without edits.
// A redacted event has Unsigned.RedactedBecause and no content. It is an error if a message in an
// encrypted room is plain text, which a homeserver can forge, or if the device rule excludes its
// device.
func (f *completer) fetchAndDecryptEvent(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
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

// messageFetchErrorText returns the text that tells the model why a message cannot be shown.
func messageFetchErrorText(err error) string {
	switch {
	case errors.Is(err, mautrix.MNotFound), errors.Is(err, mautrix.MForbidden), errors.Is(err, errElsewhere):
		return "(this message is not there, or not for you to see)"
	case errors.Is(err, context.DeadlineExceeded):
		return "(this message could not be fetched in time)"
	}
	return "(this message cannot be read)"
}

const (
	maxRoot  = 1500 // runes of a quoted thread root
	rootTime = 10 * time.Second
)

// quoteThreadRoot quotes the root of m's thread if m begins the bot's conversation there. If the root
// cannot be read, the quote says so: the model can tell the person.
func (f *completer) quoteThreadRoot(ctx context.Context, m *chat.Message) error {
	if m.Thread == "" {
		return nil
	}
	if m.Branch != "" { // else it is answered in the main timeline, which does not know the thread
		if begun, err := history.NewStore(f.cfg.DB).Exists(ctx, history.NewTimeline(m.Room, m.Branch)); err != nil || begun {
			return err
		}
	}
	l, err := f.fetchMessageToQuote(ctx, m.Room, m.Thread)
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
