package matrix

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
	"reverie/internal/text"
)

// gate decides who is listened to. It is a pure function of what it is given,
// and of Matrix ids only: names can be chosen by anybody.
type gate struct {
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

// newGate builds the gate of the account self. An empty allow list means the
// owners only; no owners and nobody allowed is refused, because such a bot
// would be silent without a word.
func newGate(self string, owners, allow []string, bots ...string) (*gate, error) {
	g := &gate{self: self, bots: bots}
	var faults []error
	for i, o := range owners {
		if err := CheckPattern(o); err != nil || strings.HasPrefix(o, "*") {
			if err == nil {
				err = fmt.Errorf("%q is not one person; owners are named one by one", o)
			}
			faults = append(faults, fmt.Errorf("owners[%d]: %w", i, err))
			continue
		}
		g.users = append(g.users, o)
	}
	for i, p := range allow {
		if err := CheckPattern(p); err != nil {
			faults = append(faults, fmt.Errorf("allow[%d]: %w", i, err))
			continue
		}
		if host, all := strings.CutPrefix(p, "*:"); all {
			g.servers = append(g.servers, strings.ToLower(host))
		} else {
			g.users = append(g.users, p)
		}
	}
	for i, p := range bots {
		if err := CheckPattern(p); err != nil {
			faults = append(faults, fmt.Errorf("bots[%d]: %w", i, err))
		}
	}
	if len(owners)+len(allow) == 0 {
		faults = append(faults, errors.New("owners is empty: name at least one person, as in @me:example.org, "+
			"or nobody can talk to the bot"))
	}
	return g, errors.Join(faults...)
}

// allows tells whether user may invite and talk to the bot.
func (g *gate) allows(user string) bool {
	if user == g.self || !strings.HasPrefix(user, "@") {
		return false
	}
	if slices.Contains(g.users, user) || slices.ContainsFunc(g.bots, func(p string) bool { return fits(p, user) }) {
		return slices.Contains(g.users, user)
	}
	return slices.Contains(g.servers, strings.ToLower(server(user)))
}

// fits tells whether user is meant by a pattern that CheckPattern lets pass.
func fits(pattern, user string) bool {
	if host, all := strings.CutPrefix(pattern, "*:"); all {
		return strings.EqualFold(host, server(user))
	}
	return pattern == user
}

// roomFacts is what the gate must know of a room.
type roomFacts struct {
	with      string // the person whose direct chat it is; empty = nobody said that it is one
	exposed   bool   // others than that person may know what is said there, now or ever
	unproven  bool   // nothing proves that it is that person who writes there
	encrypted bool   // now or ever
	members   int    // joined and invited; 0 = unknown
	name      string // how we are called there

	active func(root string) bool // whether we take part in a thread; nil = in none
	open   bool                   // everything that is said there by those who may is for us
}

// pair tells whether a direct chat has one other person in it, who need not mention us. Two
// members alone do not make it one.
func (r roomFacts) pair() bool { return r.with != "" && r.members > 0 && r.members <= 2 }

// private tells whether user's private memory may be used in a room: it is their own direct
// chat, nobody else ever could read there, and no other device can write in their name.
func (r roomFacts) private(user string) bool {
	return r.pair() && r.with == user && !r.exposed && !r.unproven
}

// opinion is the gate's answer.
type opinion struct {
	pass   bool
	may    bool   // who may talk to us said something that we can read, to us or not
	text   string // what was said by who may, without the mention of us
	emote  bool   // it is what its sender does
	reason string // why not; for the log
	heard  string // what was said in a room with others, and not to us
}

// judge looks at a message of a room. ours tells whether an event is one of
// our own messages.
func (g *gate) judge(evt *event.Event, room roomFacts, ours func(id.EventID) bool) opinion {
	no := func(reason string) opinion { return opinion{reason: reason} }
	if evt.Sender.String() == g.self {
		return no(ownMessage)
	}
	allowed := g.allows(evt.Sender.String())
	if !allowed && room.pair() {
		return no("sender is not allowed")
	}
	if evt.Unsigned.RedactedBecause != nil {
		return no("redacted")
	}
	clear := room.encrypted && !evt.Mautrix.WasEncrypted
	msg, ok := evt.Content.Parsed.(*event.MessageEventContent)
	if !ok {
		return no("no message")
	}
	switch {
	case msg.RelatesTo != nil && msg.RelatesTo.Type == event.RelReplace || msg.NewContent != nil: // also one that does not say of what
		return no("edit")
	case msg.MsgType != event.MsgText && msg.MsgType != event.MsgEmote && !isFile(msg):
		return no("type " + text.Clip(string(msg.MsgType), 40))
	case clear:
		return no("plain text in an encrypted room")
	}
	body := words(msg)
	if body == "" && !isFile(msg) {
		return no("empty")
	}
	mentioned, to := g.mentioned(msg, body), msg.RelatesTo.GetNonFallbackReplyTo()
	toUs := mentioned || to != "" && ours(to) || allowed && g.inActiveThread(msg, room.active)
	if !allowed && toUs { // nor does the model get to read it: who may not talk to us does not do so in other words
		return no("sender is not allowed")
	}
	o := opinion{may: allowed, pass: allowed && (room.pair() || room.open || toUs), emote: msg.MsgType == event.MsgEmote}
	switch {
	case allowed && (mentioned || room.open):
		o.text = g.stripMention(body, room.name)
	case allowed:
		o.text = body
	}
	if !o.pass {
		o.reason = "not addressed to the bot"
		if !room.pair() && !session.Commands(body) {
			o.heard = body
		}
	}
	return o
}

// ownMessage is why a message of ours is none for us.
const ownMessage = "own message"

// words is what a message says, without the quote that a reply may carry.
func words(msg *event.MessageEventContent) string {
	body := said(msg)
	if msg.RelatesTo.GetReplyTo() != "" {
		body = event.TrimReplyFallbackText(body)
	}
	return text.Clean(body)
}

// mentioned tells whether a message is for us by what it says of itself, or, if its
// client says nothing, by a link to us or our full id in it. Our name is no mention, and
// what is quoted is not either: others may have it, and said that before.
func (g *gate) mentioned(msg *event.MessageEventContent, body string) bool {
	if msg.Mentions != nil {
		return msg.Mentions.Has(id.UserID(g.self))
	}
	own := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return strings.HasPrefix(line, ">") })
	return mentionsID(strings.Join(own, "\n"), g.self) || linksTo(msg.FormattedBody, g.self)
}

var (
	quoteTag = regexp.MustCompile(`(?i)<(/?)(?:blockquote|mx-reply)\b[^>]*>`)
	linkTag  = regexp.MustCompile(`(?i)<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)`)
)

// linksTo tells whether HTML has a link to user beside what it quotes.
func linksTo(html, user string) bool {
	var own strings.Builder
	depth, from := 0, 0
	for _, m := range quoteTag.FindAllStringSubmatchIndex(html, -1) {
		if depth == 0 {
			own.WriteString(html[from:m[0]])
		}
		if m[2] == m[3] {
			depth++
		} else {
			depth = max(0, depth-1)
		}
		from = m[1]
	}
	if depth == 0 {
		own.WriteString(html[from:])
	}
	for _, m := range linkTag.FindAllStringSubmatch(own.String(), -1) {
		to, err := url.PathUnescape(strings.ReplaceAll(m[1], "&amp;", "&"))
		if err != nil {
			continue
		}
		to, _, _ = strings.Cut(to, "?")
		if slices.Contains([]string{"https://matrix.to/#/" + user, "http://matrix.to/#/" + user,
			"matrix:u/" + strings.TrimPrefix(user, "@")}, to) {
			return true
		}
	}
	return false
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
func (g *gate) stripMention(text, name string) string {
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

// Allowed tells whether user may talk to us.
func (c *Client) Allowed(user string) bool { return c.gate.allows(user) }

// Allowed returns whether a person may talk to the account self, as its owners, allow and
// bots lists say. A fault in the lists is an error that names it.
func Allowed(self string, owners, allow, bots []string) (func(user string) bool, error) {
	g, err := newGate(self, owners, allow, bots...)
	if err != nil {
		return nil, err
	}
	return g.allows, nil
}
