package matrix

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// gate decides who is listened to. It is a pure function of what it is given,
// and of Matrix ids only: names can be chosen by anybody.
type gate struct {
	self    string
	users   []string // exact ids
	servers []string // server names, lower case
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
func newGate(self string, owners, allow []string) (*gate, error) {
	g := &gate{self: self}
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
	if len(owners)+len(allow) == 0 {
		faults = append(faults, errors.New("owners is empty: name at least one person, as in @me:example.org, or nobody can talk to the bot"))
	}
	return g, errors.Join(faults...)
}

// allows tells whether user may invite and talk to the bot.
func (g *gate) allows(user string) bool {
	if user == g.self || !strings.HasPrefix(user, "@") {
		return false
	}
	return slices.Contains(g.users, user) || slices.Contains(g.servers, strings.ToLower(server(user)))
}

// roomFacts is what the gate must know of a room.
type roomFacts struct {
	direct    bool   // somebody said that this is a direct chat
	encrypted bool   // now or ever
	members   int    // joined and invited; 0 = unknown
	name      string // how we are called there
}

// private tells whether a room is a conversation with one person. Two members
// alone do not make it one, and with more than two it never is.
func (r roomFacts) private() bool { return r.direct && r.members > 0 && r.members <= 2 }

// opinion is the gate's answer.
type opinion struct {
	pass    bool
	text    string // what was said, without the mention of us
	private bool
	reason  string // why not; for the log
}

// judge looks at a message of a room. ours tells whether an event is one of
// our own messages.
func (g *gate) judge(evt *event.Event, room roomFacts, ours func(id.EventID) bool) opinion {
	no := func(reason string) opinion { return opinion{reason: reason} }
	if evt.Sender.String() == g.self {
		return no("own message")
	}
	if !g.allows(evt.Sender.String()) {
		return no("sender is not allowed")
	}
	if evt.Unsigned.RedactedBecause != nil {
		return no("redacted")
	}
	msg, ok := evt.Content.Parsed.(*event.MessageEventContent)
	if !ok {
		return no("no message")
	}
	switch {
	case msg.RelatesTo != nil && msg.RelatesTo.Type == event.RelReplace || msg.NewContent != nil: // also one that does not say of what
		return no("edit")
	case msg.MsgType != event.MsgText:
		return no("type " + clip(string(msg.MsgType), 40))
	case room.encrypted && !evt.Mautrix.WasEncrypted:
		return no("plain text in an encrypted room")
	}
	body := msg.Body
	if msg.RelatesTo.GetReplyTo() != "" {
		body = event.TrimReplyFallbackText(body)
	}
	body = clean(body)
	if body == "" {
		return no("empty")
	}
	mentioned := msg.Mentions.Has(id.UserID(g.self)) || mentionsID(body, g.self) || strings.Contains(msg.FormattedBody, "https://matrix.to/#/"+g.self+`"`)
	if !room.private() && !mentioned && !repliesToUs(msg, ours) {
		return no("not addressed to the bot")
	}
	text := body
	if mentioned {
		text = g.stripMention(body, room.name)
	}
	return opinion{pass: true, text: text, private: room.private()}
}

func repliesToUs(msg *event.MessageEventContent, ours func(id.EventID) bool) bool {
	to := msg.RelatesTo.GetNonFallbackReplyTo()
	return to != "" && ours(to)
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
		forms = append(forms, "["+name+"](https://matrix.to/#/"+g.self+")", "@"+name, name)
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

// clean removes what has no place in a text that a model reads: control
// characters, and those that nobody sees or that make text run backwards.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), hidden(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.TrimSpace(s)
}

// clip cuts s to at most n runes.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
