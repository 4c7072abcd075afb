// Package gate decides which messages are for the bot. It has no side effects.
package gate

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

// Gate decides who may talk to the bot. It depends on Matrix IDs only: anybody can choose any name.
type Gate struct {
	self   string
	people []string // patterns of those who may talk
	bots   []string // patterns of bots, who may talk only if people has them individually
}

// CheckPattern checks an entry of the owners or allow lists. Valid entries are @user:server and
// *:server.
func CheckPattern(p string) error {
	local, host, ok := strings.Cut(p, ":")
	switch {
	case !ok || host == "":
		return fmt.Errorf("%q names no server; write @user:server, or *:server for everybody there", p)
	case strings.ContainsAny(host, "*@ "), strings.ContainsFunc(p, unicode.IsSpace):
		return fmt.Errorf("%q is not understood; write @user:server, or *:server for everybody there", p)
	case local == "*":
		return nil
	case len(local) < 2 || local[0] != '@' || strings.Contains(local, "*"):
		return fmt.Errorf("%q is no Matrix ID; write @user:server, or *:server for everybody there", p)
	}
	return nil
}

// New returns the gate of the account self. CheckPattern must accept all list entries. An empty
// allow list means the owners only.
func New(self string, owners, allow []string, bots ...string) *Gate {
	return &Gate{self: self, people: slices.Concat(owners, allow), bots: bots}
}

// Allows reports whether user may invite and talk to the bot.
func (g *Gate) Allows(user string) bool {
	if user == g.self || !strings.HasPrefix(user, "@") {
		return false
	}
	matches := func(pattern string) bool {
		host, all := strings.CutPrefix(pattern, "*:")
		return pattern == user || all && strings.EqualFold(host, Server(user))
	}
	return slices.Contains(g.people, user) || slices.ContainsFunc(g.people, matches) && !slices.ContainsFunc(g.bots, matches)
}

// Room is what is to be known about a room when a message comes.
type Room struct {
	With      string // the person whose direct chat it is; empty = it is not marked as direct
	Exposed   bool   // others than that person may know its messages, now or ever
	Unproven  bool   // nothing proves that the person writes there
	Encrypted bool   // now or ever
	Members   int    // joined and invited; 0 = unknown
	Name      string // the bot's display name there

	Active func(root string) bool // whether the bot takes part in a thread; nil = in none
	Open   bool                   // all messages of allowed senders are for the bot

	Listens bool   // messages for others are stored as context
	Threads string // the setting of this name
}

// DirectPair reports whether a direct chat has one other member. That member need not mention the
// bot. Two members alone do not make a direct chat.
func (r Room) DirectPair() bool { return r.With != "" && r.Members > 0 && r.Members <= 2 }

// Private reports whether user's private memory may be used in a room. It must be their own direct
// chat, never readable by others, and encrypted if the device rule covers them.
func (r Room) Private(user string) bool {
	return r.DirectPair() && r.With == user && !r.Exposed && !r.Unproven
}

// Decision is the gate's decision about a message.
type Decision struct {
	Pass    bool   // the message is for the bot
	Allowed bool   // the sender is allowed and the message is readable, addressed to the bot or not
	Text    string // text of an allowed sender, without the mention of the bot
	Reason  string // why not to pass, for the log
	Context string // text of a group message that is not addressed to the bot, in a room that listens
}

// Check decides about a message of a room. ours reports whether an event is one of our messages.
func (g *Gate) Check(evt *event.Event, room Room, ours func(id.EventID) bool) Decision {
	no := func(reason string) Decision { return Decision{Reason: reason} }
	if evt.Sender.String() == g.self {
		return no("own message")
	}
	allowed := g.Allows(evt.Sender.String())
	if !allowed && room.DirectPair() {
		return no("sender is not allowed")
	}
	if evt.Unsigned.RedactedBecause != nil {
		return no("redacted")
	}
	clear := room.Encrypted && !evt.Mautrix.WasEncrypted
	msg := ContentOf(evt)
	if msg == nil {
		return no("no message")
	}
	switch {
	case msg.RelatesTo != nil && msg.RelatesTo.Type == event.RelReplace || msg.NewContent != nil: // even without a target
		return no("edit")
	case msg.MsgType != event.MsgText && msg.MsgType != event.MsgEmote && !IsFile(msg):
		return no("type " + text.Clip(string(msg.MsgType), 40))
	case clear:
		return no("plain text in an encrypted room")
	}
	body := TextOf(msg)
	if body == "" && !IsFile(msg) {
		return no("empty")
	}
	mentioned, to := g.mentioned(msg, body), msg.RelatesTo.GetNonFallbackReplyTo()
	toUs := mentioned || to != "" && ours(to) || allowed && g.inActiveThread(msg, room.Active)
	if !allowed && toUs { // it is no group context either: others must not reach the model this way
		return no("sender is not allowed")
	}
	o := Decision{Allowed: allowed, Pass: allowed && (room.DirectPair() || room.Open || toUs)}
	switch {
	case allowed && (mentioned || room.Open):
		o.Text = g.stripMention(body, room.Name)
	case allowed:
		o.Text = body
	}
	if !o.Pass {
		o.Reason = "not addressed to the bot"
		if room.Listens && !room.DirectPair() && !command.Is(body) {
			o.Context = body
		}
	}
	return o
}

// ElementThread is what Element names a thread on a homeserver that knows no threads.
const ElementThread event.RelationType = "io.element.thread"

// ContentOf returns the message content of evt, or nil. Its thread, if any, has the specification's name.
func ContentOf(evt *event.Event) *event.MessageEventContent {
	if evt.Type != event.EventMessage {
		return nil
	}
	msg, _ := evt.Content.Parsed.(*event.MessageEventContent)
	if msg != nil && msg.RelatesTo != nil && msg.RelatesTo.Type == ElementThread {
		msg.RelatesTo.Type = event.RelThread
	}
	return msg
}

// MayBeMessage reports whether an unreadable event may be a message.
func MayBeMessage(evt *event.Event) bool {
	return evt.Type == event.EventEncrypted || evt.Type == event.EventMessage
}

// TextOf returns the text of a message without its reply fallback.
func TextOf(msg *event.MessageEventContent) string {
	body := BodyOrCaption(msg)
	if msg.RelatesTo.GetReplyTo() != "" {
		body = event.TrimReplyFallbackText(body)
	}
	return text.Clean(body)
}

// mentioned reports whether a message mentions the bot by m.mentions. Without m.mentions, a link to
// the bot or its full user ID counts. The display name does not, as others may have it, nor does
// quoted text.
func (g *Gate) mentioned(msg *event.MessageEventContent, body string) bool {
	if msg.Mentions != nil {
		return msg.Mentions.Has(id.UserID(g.self))
	}
	own := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return strings.HasPrefix(line, ">") })
	return mentionsID(strings.Join(own, "\n"), g.self) || linksTo(msg.FormattedBody, g.self)
}

// quoted matches quotes in HTML.
var quoted = lazyregexp.New(`(?is)<mx-reply>.*</mx-reply>|<blockquote>.*</blockquote>`)

// linksTo reports whether HTML links to user or contains their ID outside quotes.
func linksTo(html, user string) bool {
	own := quoted().ReplaceAllString(html, "")
	if plain, err := url.PathUnescape(own); err == nil {
		own = plain
	}
	return mentionsID(own, user) || mentionsID(own, "matrix:u/"+strings.TrimPrefix(user, "@"))
}

// mentionsID reports whether text contains a full user ID; @bot:a.org is not in @bot:a.org.uk.
func mentionsID(text, user string) bool {
	return slices.ContainsFunc(strings.Split(text, user)[1:], endsID)
}

// endsID reports whether an ID before s ends there.
func endsID(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case n == 0:
		return true
	case r == '.' || r == ':' || r == '-':
		next, m := utf8.DecodeRuneInString(s[n:])
		return m == 0 || !unicode.IsLetter(next) && !unicode.IsDigit(next)
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// stripMention removes a mention of the bot at the front of a message. It knows the forms of common
// clients. A message that is only a mention is returned unchanged.
func (g *Gate) stripMention(text, name string) string {
	local := strings.TrimPrefix(strings.SplitN(g.self, ":", 2)[0], "@")
	forms := []string{g.self, "@" + local, local}
	if name != "" {
		forms = append(forms, "["+name+"](https://matrix.to/#/"+g.self+")", "@["+name+"]", "@"+name, name)
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for _, f := range forms {
		if f == "" || len(text) < len(f) || !strings.EqualFold(text[:len(f)], f) || !endsID(text[len(f):]) {
			continue
		}
		if rest := strings.TrimLeft(text[len(f):], " \t\n:,;-–—"); rest != "" {
			return rest
		}
		return text
	}
	return text
}

// longestID is the specification's limit of an event ID, in bytes.
const longestID = 255

// ThreadRoot returns the root of a message's thread, or "" without a valid one.
func ThreadRoot(rel *event.RelatesTo) string {
	root := rel.GetThreadParent().String()
	control := func(r rune) bool { return r <= ' ' || r == 0x7f }
	if len(root) > longestID || !strings.HasPrefix(root, "$") || strings.ContainsFunc(root, control) {
		return ""
	}
	return root
}

// inActiveThread reports whether a message is for the bot because of its thread. A message there that
// mentions another user is not.
func (g *Gate) inActiveThread(msg *event.MessageEventContent, active func(root string) bool) bool {
	root := ThreadRoot(msg.RelatesTo)
	if root == "" || active == nil {
		return false
	}
	if msg.Mentions != nil && slices.ContainsFunc(msg.Mentions.UserIDs, func(u id.UserID) bool { return u.String() != g.self }) {
		return false
	}
	return active(root)
}

// FileKinds maps the message types of files to the kinds of files.
var FileKinds = map[event.MessageType]string{
	event.MsgImage: chat.ImageFile, event.MsgFile: chat.OtherFile, event.MsgAudio: chat.AudioFile, event.MsgVideo: chat.VideoFile,
}

// IsFile reports whether a message is a file.
func IsFile(msg *event.MessageEventContent) bool { return FileKinds[msg.MsgType] != "" }

// BodyOrCaption returns the text of a message; of a file its caption.
func BodyOrCaption(msg *event.MessageEventContent) string {
	if IsFile(msg) {
		return msg.GetCaption()
	}
	return msg.Body
}

// Server returns the server of a user or room ID.
func Server(user string) string {
	_, s, _ := strings.Cut(user, ":")
	return s
}
