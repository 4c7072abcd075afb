// Package gate decides whose messages are for the bot. It is pure.
package gate

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/text"
)

// Gate decides who is listened to. It is a pure function of what it is given,
// and of Matrix ids only: names can be chosen by anybody.
type Gate struct {
	self    string
	users   []string // exact ids
	servers []string // server names, lower case
	bots    []string // patterns of programs, who are answered only if users has them
}

// CheckPattern says what is wrong with an entry of the owners or allow lists.
// Good ones are @user:server and *:server.
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
		return fmt.Errorf("%q is no Matrix id; write @user:server, or *:server for everybody there", p)
	}
	return nil
}

// New builds the gate of the account self, from lists whose entries CheckPattern lets pass. An
// empty allow list means the owners only.
func New(self string, owners, allow []string, bots ...string) *Gate {
	g := &Gate{self: self, users: slices.Clone(owners), bots: bots}
	for _, p := range allow {
		if host, all := strings.CutPrefix(p, "*:"); all {
			g.servers = append(g.servers, strings.ToLower(host))
		} else {
			g.users = append(g.users, p)
		}
	}
	return g
}

// Allows tells whether user may invite and talk to the bot.
func (g *Gate) Allows(user string) bool {
	if user == g.self || !strings.HasPrefix(user, "@") {
		return false
	}
	if slices.Contains(g.users, user) || slices.ContainsFunc(g.bots, func(p string) bool { return fits(p, user) }) {
		return slices.Contains(g.users, user)
	}
	return slices.Contains(g.servers, strings.ToLower(Server(user)))
}

// fits tells whether user is meant by a pattern that CheckPattern lets pass.
func fits(pattern, user string) bool {
	if host, all := strings.CutPrefix(pattern, "*:"); all {
		return strings.EqualFold(host, Server(user))
	}
	return pattern == user
}

// Room is what the gate must know of a room.
type Room struct {
	With      string // the person whose direct chat it is; empty = nobody said that it is one
	Exposed   bool   // others than that person may know what is said there, now or ever
	Unproven  bool   // nothing proves that it is that person who writes there
	Encrypted bool   // now or ever
	Members   int    // joined and invited; 0 = unknown
	Name      string // how we are called there

	Active func(root string) bool // whether we take part in a thread; nil = in none
	Open   bool                   // everything that is said there by those who may is for us
}

// Pair tells whether a direct chat has one other person in it, who need not mention us. Two
// members alone do not make it one.
func (r Room) Pair() bool { return r.With != "" && r.Members > 0 && r.Members <= 2 }

// Private tells whether user's private memory may be used in a room: it is their own direct
// chat, nobody else ever could read there, and no other device can write in their name.
func (r Room) Private(user string) bool {
	return r.Pair() && r.With == user && !r.Exposed && !r.Unproven
}

// Opinion is the gate's answer.
type Opinion struct {
	Pass   bool
	May    bool   // who may talk to us said something that we can read, to us or not
	Text   string // what was said by who may, without the mention of us
	Reason string // why not; for the log
	Heard  string // what was said in a room with others, and not to us
}

// Judge looks at a message of a room. ours tells whether an event is one of
// our own messages.
func (g *Gate) Judge(evt *event.Event, room Room, ours func(id.EventID) bool) Opinion {
	no := func(reason string) Opinion { return Opinion{Reason: reason} }
	if evt.Sender.String() == g.self {
		return no("own message")
	}
	allowed := g.Allows(evt.Sender.String())
	if !allowed && room.Pair() {
		return no("sender is not allowed")
	}
	if evt.Unsigned.RedactedBecause != nil {
		return no("redacted")
	}
	clear := room.Encrypted && !evt.Mautrix.WasEncrypted
	msg := MessageOf(evt)
	if msg == nil {
		return no("no message")
	}
	switch {
	case msg.RelatesTo != nil && msg.RelatesTo.Type == event.RelReplace || msg.NewContent != nil: // also one that does not say of what
		return no("edit")
	case msg.MsgType != event.MsgText && msg.MsgType != event.MsgEmote && !IsFile(msg):
		return no("type " + text.Clip(string(msg.MsgType), 40))
	case clear:
		return no("plain text in an encrypted room")
	}
	body := Words(msg)
	if body == "" && !IsFile(msg) {
		return no("empty")
	}
	mentioned, to := g.mentioned(msg, body), msg.RelatesTo.GetNonFallbackReplyTo()
	toUs := mentioned || to != "" && ours(to) || allowed && g.inActiveThread(msg, room.Active)
	if !allowed && toUs { // nor does the model get to read it: who may not talk to us does not do so in other words
		return no("sender is not allowed")
	}
	o := Opinion{May: allowed, Pass: allowed && (room.Pair() || room.Open || toUs)}
	switch {
	case allowed && (mentioned || room.Open):
		o.Text = g.stripMention(body, room.Name)
	case allowed:
		o.Text = body
	}
	if !o.Pass {
		o.Reason = "not addressed to the bot"
		if !room.Pair() && !command.Is(body) {
			o.Heard = body
		}
	}
	return o
}

// messages says which types of events are messages, and reads them. What else is to be answered is a line here.
var messages = map[event.Type]func(*event.Event) *event.MessageEventContent{
	event.EventMessage: parsed,
}

func parsed(evt *event.Event) *event.MessageEventContent {
	msg, _ := evt.Content.Parsed.(*event.MessageEventContent)
	return msg
}

// MessageOf is what evt says; nil if it is no message.
func MessageOf(evt *event.Event) *event.MessageEventContent {
	if read := messages[evt.Type]; read != nil {
		return read(evt)
	}
	return nil
}

// MayBeMessage tells whether an event that cannot be read may be a message.
func MayBeMessage(evt *event.Event) bool {
	return evt.Type == event.EventEncrypted || messages[evt.Type] != nil
}

// Words is what a message says, without the quote that a reply may carry.
func Words(msg *event.MessageEventContent) string {
	body := Said(msg)
	if msg.RelatesTo.GetReplyTo() != "" {
		body = event.TrimReplyFallbackText(body)
	}
	return text.Clean(body)
}

// mentioned tells whether a message is for us by what it says of itself, or, if its
// client says nothing, by a link to us or our full id in it. Our name is no mention, and
// what is quoted is not either: others may have it, and said that before.
func (g *Gate) mentioned(msg *event.MessageEventContent, body string) bool {
	if msg.Mentions != nil {
		return msg.Mentions.Has(id.UserID(g.self))
	}
	own := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return strings.HasPrefix(line, ">") })
	return mentionsID(strings.Join(own, "\n"), g.self) || linksTo(msg.FormattedBody, g.self)
}

// quoted is what HTML quotes.
var quoted = regexp.MustCompile(`(?is)<mx-reply>.*</mx-reply>|<blockquote>.*</blockquote>`)

// linksTo tells whether HTML has a link to user, or their id, beside what it quotes.
func linksTo(html, user string) bool {
	own := quoted.ReplaceAllString(html, "")
	if plain, err := url.PathUnescape(own); err == nil {
		own = plain
	}
	return mentionsID(own, user) || mentionsID(own, "matrix:u/"+strings.TrimPrefix(user, "@"))
}

// mentionsID finds a full Matrix id in text; @bot:a.org is not in @bot:a.org.uk.
func mentionsID(text, user string) bool {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, user)
		if !ok {
			return false
		}
		if endsID(after) {
			return true
		}
		rest = after
	}
}

// endsID tells whether an id that stands before s ends there.
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

// stripMention takes our name off the front of a message, in the forms clients
// write it. A message that is nothing but our name stays as it is.
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

// longestID is in bytes, as the specification has it.
const longestID = 255

// ThreadIn is the thread of a message's relation, by its root; what cannot be one is none.
func ThreadIn(rel *event.RelatesTo) string {
	root := rel.GetThreadParent().String()
	control := func(r rune) bool { return r <= ' ' || r == 0x7f }
	if len(root) > longestID || !strings.HasPrefix(root, "$") || strings.ContainsFunc(root, control) {
		return ""
	}
	return root
}

// inActiveThread reports whether a message is for us because of the thread it stands in.
// Who mentions somebody else there talks to them.
func (g *Gate) inActiveThread(msg *event.MessageEventContent, active func(root string) bool) bool {
	root := ThreadIn(msg.RelatesTo)
	if root == "" || active == nil {
		return false
	}
	if msg.Mentions != nil && slices.ContainsFunc(msg.Mentions.UserIDs, func(u id.UserID) bool { return u.String() != g.self }) {
		return false
	}
	return active(root)
}

// FileKinds are the messages that are files, by type.
var FileKinds = map[event.MessageType]string{
	event.MsgImage: chat.ImageFile, event.MsgFile: chat.OtherFile, event.MsgAudio: chat.AudioFile, event.MsgVideo: chat.VideoFile,
}

// IsFile tells whether a message is a file.
func IsFile(msg *event.MessageEventContent) bool { return FileKinds[msg.MsgType] != "" }

// Said is what was written in a message: of a file, beside it.
func Said(msg *event.MessageEventContent) string {
	if IsFile(msg) {
		return msg.GetCaption()
	}
	return msg.Body
}

// Server is the server of a user or room id.
func Server(user string) string {
	_, s, _ := strings.Cut(user, ":")
	return s
}
