package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestJSVerification: the owner verifies the bot by comparing emoji, in the
// room and by messages to the device. Both sides compute the same ones, and
// afterwards the owner's client shows the bot as verified.
func TestJSVerification(t *testing.T) {
	t.Parallel()
	npmInstall(t, "jsclient", "JavaScript client")
	w := newWorld(t)
	m := newModel(t)
	for _, way := range []string{"in the room", "to the device"} {
		t.Run(way, func(t *testing.T) {
			name := strings.ReplaceAll("you "+way, " ", "-")
			you := newJSPeer(t, w.home.URL, w.register(t, name))
			account := "reverie-" + strings.ReplaceAll(way, " ", "-")
			bot := "@" + account + ":" + w.home.Name
			w.bot(t, account, m, you.user) // one of its own: nobody has verified it yet
			room := you.directRoom(t, bot)
			you.ask(t, room, bot, "hello") // both know the other's devices now
			if trust := you.trust(t, bot); trust.Verified {
				t.Fatal("the bot is verified before anybody compared anything")
			}
			args := js{"user": bot, "room": room}
			if way == "to the device" {
				args["device"] = you.trust(t, bot).Devices[0].Device
			}
			jsVerify(t, you, args, room, bot)
			var trust jsTrust
			you.call(t, "trust", js{"user": bot, "verified": true}, &trust)
			if !trust.Verified || len(trust.Devices) != 1 || !trust.Devices[0].Verified {
				t.Errorf("after the comparison = %+v; want the bot and its one device verified", trust)
			}
			// Between the bot's notices about the verification, its answer.
			_, answer := you.ask(t, room, bot, "rehearse: long 5")
			for answer.MsgType == "m.notice" {
				answer = you.hear(t, room, bot)
			}
			if !strings.HasPrefix(answer.Body, "Every word") {
				t.Errorf("after the verification = %q", answer.Body)
			}
		})
	}
}

// TestJSVerificationFromBot: the bot asks, because it was told to, and the
// owner's client accepts.
func TestJSVerificationFromBot(t *testing.T) {
	t.Parallel()
	npmInstall(t, "jsclient", "JavaScript client")
	w := newWorld(t)
	you := newJSPeer(t, w.home.URL, w.register(t, "you"))
	w.bot(t, "reverie", newModel(t), you.user)
	bot := "@reverie:" + w.home.Name
	room := you.directRoom(t, bot)
	you.ask(t, room, bot, "hello")
	you.call(t, "send", js{"room": room, "text": "!verify start"}, nil)
	limit := time.After(jsWait)
	var asked jsEvent
	for asked.Event != "verification_request" {
		select {
		case asked = <-you.events:
		case <-limit:
			t.Fatalf("the bot did not ask within %v\n%s", jsWait, you.stderr)
		}
	}
	if asked.From != bot || asked.Room != room {
		t.Errorf("asked by %s in %q, want %s in %s", asked.From, asked.Room, bot, room)
	}
	you.call(t, "accept", js{"handle": asked.Handle}, nil)
	jsCompare(t, you, asked.Handle, room, bot)
	var trust jsTrust
	you.call(t, "trust", js{"user": bot, "verified": true}, &trust)
	if !trust.Verified {
		t.Errorf("after the comparison = %+v; want the bot verified", trust)
	}
}

// jsVerify goes through one verification that the person begins.
func jsVerify(t *testing.T, you *jsPeer, args js, room, bot string) {
	t.Helper()
	var started struct{ Handle string }
	you.call(t, "verify", args, &started)
	jsCompare(t, you, started.Handle, room, bot)
}

// jsCompare compares what both sides show, and tells both that it is the same.
func jsCompare(t *testing.T, you *jsPeer, handle, room, bot string) {
	t.Helper()
	shown, said := you.follow(t, handle, room, bot, func(e jsEvent) bool { return len(e.Emoji) == 7 })
	// The bot shows what it computed itself; variation selectors are a matter of fonts.
	plain := strings.NewReplacer("\ufe0f", "")
	for len(said) == 0 || !strings.Contains(plain.Replace(said[len(said)-1]), plain.Replace(shown.Emoji[0])) {
		said = append(said, you.hear(t, room, bot).Body)
		if len(said) > 5 {
			t.Fatalf("the bot never showed %v; it said %q", shown.Emoji, said)
		}
	}
	rest := plain.Replace(said[len(said)-1])
	for _, emoji := range shown.Emoji {
		_, after, ok := strings.Cut(rest, plain.Replace(emoji))
		if !ok {
			t.Errorf("the bot shows %q; the client shows %v %v", said[len(said)-1], shown.Emoji, shown.Names)
			break
		}
		rest = after
	}
	you.call(t, "confirm", js{"handle": handle}, nil)
	yes := regexp.MustCompile("!verify yes [a-z2-7]{4}").FindString(rest)
	you.call(t, "send", js{"room": room, "text": yes}, nil)
	you.follow(t, handle, room, bot, func(e jsEvent) bool { return e.Phase == "done" })
}

// follow waits for a step of a verification, and returns with it what bot said
// in room meanwhile.
func (p *jsPeer) follow(t *testing.T, handle, room, bot string, want func(jsEvent) bool) (step jsEvent, said []string) {
	t.Helper()
	limit := time.After(jsWait)
	var seen []string
	for {
		select {
		case e := <-p.events:
			if e.Event == "message" && e.Room == room && e.Sender == bot && !e.Live {
				said = append(said, e.Body)
			}
			if e.Event != "verification" || e.Handle != handle {
				continue
			}
			seen = append(seen, fmt.Sprint(e.Phase, e.Emoji, e.Code, e.Problem))
			if want(e) {
				return e, said
			}
			if e.Phase == "cancelled" || e.Problem != "" {
				t.Fatalf("the verification ended: %s; the bot said %q\n%s", strings.Join(seen, ", "), said, p.stderr)
			}
		case <-p.ended:
			t.Fatalf("the JavaScript client ended:\n%s", p.stderr)
		case <-limit:
			t.Fatalf("the verification did not get on within %v: %s; the bot said %q\n%s", jsWait, strings.Join(seen, ", "), said, p.stderr)
		}
	}
}
