package matrix

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

const self = "@reverie:example.org"

func message(sender, body string, change ...func(*event.MessageEventContent, *event.Event)) *event.Event {
	content := &event.MessageEventContent{MsgType: event.MsgText, Body: body}
	evt := &event.Event{ID: "$1", RoomID: "!r", Sender: id.UserID(sender), Type: event.EventMessage}
	evt.Mautrix.WasEncrypted = true
	for _, f := range change {
		f(content, evt)
	}
	evt.Content.Parsed = content
	return evt
}

func mentions(users ...id.UserID) func(*event.MessageEventContent, *event.Event) {
	return func(c *event.MessageEventContent, _ *event.Event) { c.Mentions = &event.Mentions{UserIDs: users} }
}

func reply(to id.EventID) func(*event.MessageEventContent, *event.Event) {
	return func(c *event.MessageEventContent, _ *event.Event) { c.RelatesTo = (&event.RelatesTo{}).SetReplyTo(to) }
}

func msgType(t event.MessageType) func(*event.MessageEventContent, *event.Event) {
	return func(c *event.MessageEventContent, _ *event.Event) { c.MsgType = t }
}

func command(name, args string) func(*event.MessageEventContent, *event.Event) {
	return func(c *event.MessageEventContent, _ *event.Event) {
		c.MSC4391BotCommand = &event.MSC4391BotCommandInput{Command: name, Arguments: json.RawMessage(args)}
	}
}

func inTheClear(_ *event.MessageEventContent, e *event.Event) { e.Mautrix.WasEncrypted = false }

func TestGate(t *testing.T) {
	const me, friend, stranger = "@me:example.org", "@friend:else.where", "@x:evil.example"
	g, err := newGate(self, []string{me}, []string{friend, "*:Team.example:8448"})
	if err != nil {
		t.Fatal(err)
	}
	dm := roomFacts{direct: true, encrypted: true, members: 2, name: "Reverie"}
	group := roomFacts{encrypted: true, members: 3, name: "Reverie"}
	with := func(r roomFacts, f func(*roomFacts)) roomFacts { f(&r); return r }
	for _, c := range []struct {
		name    string
		evt     *event.Event
		room    roomFacts
		text    string // what gets through; empty = nothing does
		private bool
	}{
		{"owner in a direct chat", message(me, "hello"), dm, "hello", true},
		{"a command as such", message(me, "config", mentions(self), command("config", `{"words":"threads always"}`)), dm, "!config threads always", true},
		{"a command as such, without words", message(me, "/help", mentions(self), command("help", ``)), group, "!help", false},
		{"a command with words of another kind", message(me, "x", mentions(self), command("config", `{"words":7,"else":"y"}`)), dm, "!config", true},
		{"a command with broken words", message(me, "as it was", mentions(self), command("config", `[`)), dm, "as it was", true},
		{"a command that is none", message(me, "as it was", mentions(self), command("rm -rf", `{}`)), dm, "as it was", true},
		{"a command for two", message(me, "as it was", mentions(self, "@other:bot"), command("config", `{}`)), dm, "as it was", true},
		{"a command for another bot", message(me, "/config", mentions("@other:bot"), command("config", `{}`)), group, "", false},
		{"a stranger's command", message(stranger, "x", mentions(self), command("config", `{}`)), dm, "", false},
		{"allowed by id", message(friend, "hello"), dm, "hello", true},
		{"allowed by server and port", message("@y:team.example:8448", "hello"), dm, "hello", true},
		{"same server name, other port", message("@y:team.example", "hello"), dm, "", false},
		{"stranger", message(stranger, "hello"), dm, "", false},
		{"stranger with the owner's id inside", message("@x:evil.example:@me:example.org", "hello"), dm, "", false},
		{"owner's name on another server", message("@me:evil.example", "hello"), dm, "", false},
		{"stranger who mentions", message(stranger, "hello", mentions(self)), group, "", false},
		{"ourselves", message(self, "hello"), dm, "", false},
		{"notice", message(me, "hello", msgType(event.MsgNotice)), dm, "", false},
		{"emote", message(me, "waves", msgType(event.MsgEmote)), dm, "", false},
		{"picture", message(me, "cat.png", msgType(event.MsgImage)), dm, "", false},
		{"no type", message(me, "hello", msgType("")), dm, "", false},
		{"blank", message(me, " \n\t "), dm, "", false},
		{"no message content", &event.Event{Sender: me, Type: event.EventMessage}, dm, "", false},
		{"redacted", message(me, "hello", func(_ *event.MessageEventContent, e *event.Event) { e.Unsigned.RedactedBecause = &event.Event{} }), dm, "", false},
		{"edit", message(me, "* hello", func(c *event.MessageEventContent, _ *event.Event) { c.SetEdit("$0") }), dm, "", false},
		{"edit without new content", message(me, "* hello", func(c *event.MessageEventContent, _ *event.Event) {
			c.RelatesTo = (&event.RelatesTo{}).SetReplace("$0")
		}), dm, "", false},
		{"plain text in an encrypted room", message(me, "hello", inTheClear), dm, "", false},
		{"plain text in a plain room", message(me, "hello", inTheClear), with(dm, func(r *roomFacts) { r.encrypted = false }), "hello", true},
		{"two members alone are no direct chat", message(me, "hello"), with(dm, func(r *roomFacts) { r.direct = false }), "", false},
		{"direct, but a third is there", message(me, "hello"), with(dm, func(r *roomFacts) { r.members = 3 }), "", false},
		{"direct, but members unknown", message(me, "hello"), with(dm, func(r *roomFacts) { r.members = 0 }), "", false},
		{"third member, mentioned", message(me, "hello", mentions(self)), with(dm, func(r *roomFacts) { r.members = 3 }), "hello", false},

		{"group, not addressed", message(me, "hello all"), group, "", false},
		{"group, somebody else mentioned", message(me, "hello", mentions("@you:example.org")), group, "", false},
		{"group, mentioned by name", message(me, "Reverie: hello", mentions(self)), group, "hello", false},
		{"group, mentioned with at", message(me, "@reverie, hello", mentions(self)), group, "hello", false},
		{"group, mentioned by link", message(me, "[Reverie](https://matrix.to/#/"+self+") hello", mentions(self)), group, "hello", false},
		{"group, mentioned in the middle", message(me, "what does Reverie think?", mentions(self)), group, "what does Reverie think?", false},
		{"group, only the name", message(me, "Reverie", mentions(self)), group, "Reverie", false},
		{"group, name is the start of a word", message(me, "Reveries are nice", mentions(self)), group, "Reveries are nice", false},
		{"group, full id in the text", message(me, self+": hello"), group, "hello", false},
		{"group, full id at the end", message(me, "hello "+self+"."), group, "hello " + self + ".", false},
		{"group, a longer id in the text", message(me, "hello "+self+".uk"), group, "", false},
		{"group, a longer id and then ours", message(me, "hello "+self+".uk and "+self), group, "hello " + self + ".uk and " + self, false},
		{"group, pill in the HTML", message(me, "Reverie hello", func(c *event.MessageEventContent, _ *event.Event) {
			c.FormattedBody = `<a href="https://matrix.to/#/` + self + `">Reverie</a> hello`
		}), group, "hello", false},
		{"group, the bare name is no mention", message(me, "Reverie: hello"), group, "", false},
		{"group, reply to us", message(me, "go on", reply("$ours")), group, "go on", false},
		{"group, reply to somebody", message(me, "go on", reply("$theirs")), group, "", false},
		{"group, thread that only falls back on us", message(me, "go on", func(c *event.MessageEventContent, _ *event.Event) {
			c.RelatesTo = (&event.RelatesTo{}).SetThread("$root", "$ours")
		}), group, "", false},
		{"reply fallback is cut off", message(me, "> <@reverie:example.org> I said\n> more\n\ngo on", reply("$ours")), group, "go on", false},
		{"quote in a message that is no reply stays", message(me, "> <b> quote\n\nand?"), dm, "> <b> quote\n\nand?", true},
		{"control and direction characters", message(me, "a\u202eb\x00c\r\nd"), dm, "abc\nd", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := g.judge(c.evt, c.room, func(e id.EventID) bool { return e == "$ours" })
			if o.pass != (c.text != "") || o.text != c.text || o.private != c.private {
				t.Errorf("got %+v, want text %q private %v", o, c.text, c.private)
			}
			if !o.pass && o.reason == "" {
				t.Error("refused without a reason for the log")
			}
		})
	}
}

func TestGateLists(t *testing.T) {
	for _, c := range []struct {
		name          string
		owners, allow []string
		fault         string
	}{
		{"owners only", []string{"@a:b"}, nil, ""},
		{"allowed only", nil, []string{"*:b"}, ""},
		{"nobody", nil, nil, "owners is empty"},
		{"everybody", []string{"@a:b"}, []string{"*"}, "allow[0]"},
		{"everybody, longer", []string{"@a:b"}, []string{"*:*"}, "allow[0]"},
		{"half a wildcard", []string{"@a:b"}, []string{"@x:b", "@a*:b"}, "allow[1]"},
		{"no at", []string{"a:b"}, nil, "owners[0]"},
		{"no server", []string{"@a"}, nil, "owners[0]"},
		{"a whole server as owner", []string{"*:b"}, nil, "one by one"},
		{"white space", []string{"@a:b "}, nil, "owners[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newGate(self, c.owners, c.allow)
			switch {
			case c.fault == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("got %v, want something about %q", err, c.fault)
			}
		})
	}
	g, err := newGate(self, []string{"@a:b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !g.allows("@a:b") || g.allows("@c:b") || g.allows("") || g.allows(self) {
		t.Error("with an empty allow list only owners may talk")
	}
}

func FuzzStripMention(f *testing.F) {
	f.Add("Reverie: hello", "Reverie")
	f.Add("@reverie:example.org", "")
	f.Add("rëverie Ĳ", "rëverie")
	f.Fuzz(func(t *testing.T, text, name string) {
		g := &gate{self: self}
		text = clean(text)
		out := g.stripMention(text, clean(name))
		if !utf8.ValidString(out) || !strings.HasSuffix(text, out) || text != "" && out == "" {
			t.Errorf("stripMention(%q, %q) = %q", text, name, out)
		}
	})
}
