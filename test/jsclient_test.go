package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/test/expect"
)

// jsWait limits a command of the JavaScript client, and its wait for an answer.
const jsWait = time.Minute

// TestJSClient: matrix-js-sdk with its Rust encryption, which shares no code with the bot, exchanges
// messages with it.
// Holds M23, M50, M51, M52.
func TestJSClient(t *testing.T) {
	t.Parallel()
	npmInstall(t, "jsclient", "JavaScript client")
	w := newWorld(t)
	m := newSlowModel(t, 20*time.Millisecond)
	you := newJSPeer(t, w.home.URL, w.register(t, "you"))
	bot := w.bot(t, "reverie", m, you.user)
	botUser := "@reverie:" + w.home.Name
	room := you.directRoom(t, botUser)

	steps := []struct {
		name string
		run  func(*testing.T)
	}{
		{"both ways", func(t *testing.T) {
			_, answer := you.ask(t, room, botUser, "remember that my sister's name is Jana")
			if !strings.Contains(answer.Body, "Jana") || !strings.Contains(answer.Body, "No language model") {
				t.Errorf("answer = %q; want a confirmation with Jana, and that no language model is connected", answer.Body)
			}
		}},
		{"streamed answer", func(t *testing.T) {
			want := m.answer(t, "rehearse: long 300")
			_, answer := you.ask(t, room, botUser, "rehearse: long 300")
			expect.Equal(t, answer.Body, want, "text after the last edit")
			if answer.edits < 2 {
				t.Errorf("the answer was edited %d times while it was written, want at least 2", answer.edits)
			}
			expect.Equal(t, strings.Count(answer.HTML, "<p>"), strings.Count(want, "\n\n")+1, "paragraphs of the formatted text: %q", answer.HTML)
		}},
		{"hostile answer", func(t *testing.T) { jsHostile(t, you, room, botUser) }},
		{"cross-signed", func(t *testing.T) {
			jsCrossSigned(t, you, botUser)
			// Like clients that exclude insecure devices: no keys for a device that its owner has not
			// signed, and its messages are not decrypted.
			you.call(t, "strict", js{"on": true}, nil)
			you.call(t, "discard", js{"room": room}, nil)
			if _, answer := you.ask(t, room, botUser, "what is my sister's name?"); !strings.Contains(answer.Body, "Jana") {
				t.Errorf("answer to a client that trusts signed devices only = %q", answer.Body)
			}
		}},
		{"kill and restart", func(t *testing.T) {
			bot.kill()
			bot.start(t, "")
			_, answer := you.ask(t, room, botUser, "what do you know about my sister?")
			if !strings.Contains(answer.Body, "Jana") {
				t.Errorf("after the restart = %q; want Jana", answer.Body)
			}
			jsCrossSigned(t, you, botUser)
		}},
		{"rotation", func(t *testing.T) {
			before, _ := you.ask(t, room, botUser, "rehearse: long 6")
			you.call(t, "discard", js{"room": room}, nil)
			after, answer := you.ask(t, room, botUser, "rehearse: long 7")
			if before.Session == "" || before.Session == after.Session {
				t.Errorf("sessions before and after it was discarded: %q, %q; want two", before.Session, after.Session)
			}
			if want := m.answer(t, "rehearse: long 7"); answer.Body != want {
				t.Errorf("answer in the new session = %q, want %q", answer.Body, want)
			}
		}},
		{"thread", func(t *testing.T) {
			root, _ := you.ask(t, room, botUser, "hello")
			you.call(t, "send", js{"room": room, "text": "what is my sister's name?", "thread": root.Event}, nil)
			you.asked++
			expect.Equal(t, you.hear(t, room, botUser).Thread, root.Event, "thread of the answer")
		}},
		{"history", func(t *testing.T) { jsHistory(t, w, you, room, botUser) }},
	}
	for _, s := range steps {
		if !t.Run(s.name, s.run) {
			t.Logf("the JavaScript client's warnings:\n%s", you.stderr)
			return // the rest depends on it
		}
	}
	if unread := you.unread(); len(unread) > 0 {
		t.Errorf("the JavaScript client could not decrypt: %v", unread)
	}
}

// jsHostile: hostile text that a model repeats is harmless in each version of the message, also in the
// fallback for clients without edits.
func jsHostile(t *testing.T, you *jsPeer, room, bot string) {
	hostile := `**bold** <script>alert(1)</script> <img src="https://example.org/x.png" onerror="alert(2)"> ![x](https://example.org/y.png) [here](javascript:alert(3)) `
	_, answer := you.ask(t, room, bot, "remember that "+hostile+strings.Repeat("and so on ", 40)+"**end**")
	if !strings.Contains(answer.Body, "<script>") || !strings.Contains(answer.HTML, "<strong>bold</strong>") || !strings.Contains(answer.HTML, "<strong>end</strong>") {
		t.Errorf("answer = %q\nformatted %q\nwant the words as they were given, and the formatting in the second", answer.Body, answer.HTML)
	}
	if answer.edits == 0 {
		t.Error("the answer was not edited: the fallback of edits went unseen")
	}
	bad := regexp.MustCompile(`(?i)<(script|img|iframe|style)|<[^>]*onerror|javascript:`)
	for i, v := range answer.versions {
		for _, html := range []string{v.HTML, v.FallbackHTML} {
			expect.Equal(t, bad.FindString(html), "", "version %d of the formatted text holds: %s", i, html)
		}
	}
}

// jsCrossSigned: the bot has an identity that has signed its one device.
func jsCrossSigned(t *testing.T, you *jsPeer, bot string) {
	t.Helper()
	trust := you.trust(t, bot)
	if !trust.Identity {
		t.Errorf("%s has no cross-signing identity", bot)
	}
	if len(trust.Devices) != 1 || !trust.Devices[0].SignedByOwner {
		t.Errorf("devices of %s = %+v; want one, signed by its owner", bot, trust.Devices)
	}
	if trust.NeedsApproval {
		t.Errorf("the identity of %s has changed", bot)
	}
}

// jsHistory: with the person's keys, a new device of theirs can read the whole conversation.
func jsHistory(t *testing.T, w *world, you *jsPeer, room, bot string) {
	var exported struct{ Keys string }
	you.call(t, "keys", nil, &exported)
	later := startJSPeer(t)
	later.login(t, js{"homeserver": w.home.URL, "user": you.user, "password": password("you"), "keys": exported.Keys})
	var page struct{ Messages []jsMessage }
	later.call(t, "history", js{"room": room, "limit": 200}, &page)
	said := map[string]int{}
	for _, e := range page.Messages {
		if e.Type != "m.room.message" || !e.Encrypted || e.Reason != "" {
			t.Errorf("%s of %s cannot be read later: type %s, encrypted %v, %s", e.ID, e.Sender, e.Type, e.Encrypted, e.Reason)
		} else if e.Replaces == "" {
			said[e.Sender]++
		}
	}
	if said[you.user] != you.asked || said[bot] != you.asked {
		t.Errorf("messages in the history = %v; want %d of each", said, you.asked)
	}
}

// newSlowModel is the rehearsal model with a pause between two words, so that longer answers arrive as
// edits.
func newSlowModel(t *testing.T, pace time.Duration) *model {
	s := httptest.NewServer(rehearsal.Handler(rehearsal.Config{Pace: pace}))
	t.Cleanup(s.Close)
	return &model{url: s.URL + "/v1"}
}

// answer requests an answer from the model directly.
func (m *model) answer(t *testing.T, text string) string {
	t.Helper()
	begun := []js{{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}, {"role": "user", "content": text}}
	body := expect.Must(json.Marshal(js{"model": rehearsal.ModelName, "messages": begun}))(t)
	resp := expect.Must(http.Post(m.url+"/chat/completions", "application/json", bytes.NewReader(body)))(t)
	defer resp.Body.Close()
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || len(reply.Choices) == 0 {
		t.Fatalf("the model answered %+v, %v", reply, err)
	}
	return reply.Choices[0].Message.Content
}

// js is an object of the JavaScript client's protocol, see jsclient/peer.mjs.
type js map[string]any

// jsMessage is a message as the JavaScript client shows it.
type jsMessage struct {
	Room, Sender, ID, Edit, Type, MsgType, Replaces, Body, HTML, Session, Shield, Reason, Thread string

	FallbackHTML string `json:"fallback_html"`
	ShieldReason string `json:"shield_reason"`
	Encrypted    bool
	Live         bool // still being written

	versions []jsMessage // all versions, oldest first
	edits    int
}

// jsEvent is an event of the JavaScript client: a message, or a step of a verification.
type jsEvent struct {
	Event string
	jsMessage

	Handle, Phase, From, Device, Code, By, Problem string

	Emoji, Names []string
	Decimal      []int
}

type jsTrust struct {
	Identity, Verified bool

	NeedsApproval bool `json:"needs_approval"`
	Devices       []struct {
		Device        string
		SignedByOwner bool `json:"signed_by_owner"`
		Verified      bool
	}
}

// jsSent is a message of the JavaScript client and its megolm session.
type jsSent struct{ Event, Session string }

// jsPeer is a running jsclient/peer.mjs.
type jsPeer struct {
	user, device string
	stderr       *logBuffer
	stdin        io.Writer
	asked        int // messages sent by ask

	mu      sync.Mutex
	calls   int
	replies map[int]chan jsReply
	locked  map[string]string // event ID → why it cannot be decrypted
	events  chan jsEvent
	ended   chan struct{}
}

type jsReply struct {
	ID    int
	OK    json.RawMessage
	Error string
}

// newJSPeer logs in a person with the ID user and an identity of their own.
func newJSPeer(t *testing.T, homeserver, user string) *jsPeer {
	t.Helper()
	p := startJSPeer(t)
	name, _, _ := strings.Cut(strings.TrimPrefix(user, "@"), ":")
	p.login(t, js{"homeserver": homeserver, "user": user, "password": password(name), "identity": true})
	return p
}

func startJSPeer(t *testing.T) *jsPeer {
	t.Helper()
	p := &jsPeer{replies: map[int]chan jsReply{}, locked: map[string]string{}, events: make(chan jsEvent, 1000), ended: make(chan struct{})}
	var stdout io.Reader
	p.stdin, stdout, p.stderr = node(t, filepath.Join("jsclient", "peer.mjs"))
	go func() { defer close(p.ended); p.read(stdout) }()
	return p
}

// node runs a script until the end of the test. The script ends when its input does.
func node(t *testing.T, args ...string) (stdin io.WriteCloser, stdout io.Reader, stderr *logBuffer) {
	t.Helper()
	cmd, stderr := exec.Command("node", args...), &logBuffer{}
	cmd.Stderr = stderr
	stdin = expect.Must(cmd.StdinPipe())(t)
	stdout = expect.Must(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		kill := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
	})
	return stdin, stdout, stderr
}

// read reads the client's output until its end.
func (p *jsPeer) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			jsReply
			jsEvent
		}
		if err := json.Unmarshal(lines.Bytes(), &line.jsReply); err != nil || line.jsReply.ID == 0 {
			if err := json.Unmarshal(lines.Bytes(), &line.jsEvent); err != nil {
				fmt.Fprintf(p.stderr, "not understood: %v: %s\n", err, lines.Bytes())
				continue
			}
			p.note(line.jsEvent)
			p.events <- line.jsEvent
			continue
		}
		p.mu.Lock()
		reply := p.replies[line.jsReply.ID]
		delete(p.replies, line.jsReply.ID)
		p.mu.Unlock()
		if reply != nil {
			reply <- line.jsReply
		}
	}
}

// note records events that could not be decrypted and were not decrypted later.
func (p *jsPeer) note(e jsEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.Event {
	case "undecryptable":
		p.locked[e.ID] = e.Reason
	case "message":
		delete(p.locked, e.ID)
		delete(p.locked, e.Edit)
	}
}

func (p *jsPeer) unread() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.locked)
}

// call runs one command and reads its result, unless into is nil.
func (p *jsPeer) call(t *testing.T, do string, args js, into any) {
	t.Helper()
	reply := make(chan jsReply, 1)
	p.mu.Lock()
	p.calls++
	line := js{"id": p.calls, "do": do}
	p.replies[p.calls] = reply
	p.mu.Unlock()
	maps.Copy(line, args)
	out := expect.Must(json.Marshal(line))(t)
	if _, err := p.stdin.Write(append(out, '\n')); err != nil {
		t.Fatalf("the JavaScript client is gone: %v\n%s", err, p.stderr)
	}
	select {
	case r := <-reply:
		if r.Error != "" {
			t.Fatalf("JavaScript client: %s\n%s", r.Error, p.stderr)
		}
		if into != nil {
			if err := json.Unmarshal(r.OK, into); err != nil {
				t.Fatalf("JavaScript client: %s: %v: %s", do, err, r.OK)
			}
		}
	case <-p.ended:
		t.Fatalf("the JavaScript client ended at %s:\n%s", do, p.stderr)
	case <-time.After(jsWait):
		t.Fatalf("JavaScript client: no result of %s within %v\n%s", do, jsWait, p.stderr)
	}
}

func (p *jsPeer) login(t *testing.T, args js) {
	t.Helper()
	var in struct{ User, Device, Version string }
	p.call(t, "login", args, &in)
	p.user, p.device = in.User, in.Device
	t.Logf("%s on a JavaScript client: %s", in.User, in.Version)
}

func (p *jsPeer) trust(t *testing.T, user string) (trust jsTrust) {
	t.Helper()
	p.call(t, "trust", js{"user": user}, &trust)
	return trust
}

// directRoom creates an encrypted direct room and waits until user has joined.
func (p *jsPeer) directRoom(t *testing.T, user string) string {
	t.Helper()
	var created struct{ Room string }
	p.call(t, "create", js{"name": "Reverie", "invite": []string{user}, "direct": true, "encrypted": true}, &created)
	p.call(t, "joined", js{"room": created.Room, "user": user}, nil)
	return created.Room
}

// ask sends text and returns the finished answer of bot.
func (p *jsPeer) ask(t *testing.T, room, bot, text string) (jsSent, jsMessage) {
	t.Helper()
	var sent jsSent
	p.call(t, "send", js{"room": room, "text": text}, &sent)
	p.asked++
	return sent, p.hear(t, room, bot)
}

// hear returns bot's next finished message. It checks that each version was encrypted and came without
// a warning.
func (p *jsPeer) hear(t *testing.T, room, bot string) jsMessage {
	t.Helper()
	var versions []jsMessage
	limit := time.After(jsWait)
	for {
		select {
		case e := <-p.events:
			if e.Event != "message" || e.Room != room || e.Sender != bot {
				continue
			}
			if !e.Encrypted || e.Shield != "none" {
				t.Errorf("%s came encrypted: %v, shield %s %s; want an encrypted message that a client shows without a warning", e.ID, e.Encrypted, e.Shield, e.ShieldReason)
			}
			if len(versions) > 0 && versions[0].ID != e.ID {
				t.Fatalf("message %s was begun and not finished before %s", versions[0].ID, e.ID)
			}
			versions = append(versions, e.jsMessage)
			if !e.Live {
				e.versions, e.edits = versions, len(versions)-1
				return e.jsMessage
			}
		case <-p.ended:
			t.Fatalf("the JavaScript client ended:\n%s", p.stderr)
		case <-limit:
			t.Fatalf("no finished answer of %s within %v; versions so far: %d; could not decrypt: %v\n%s", bot, jsWait, len(versions), p.unread(), p.stderr)
		}
	}
}

var installing sync.Mutex

// npmInstall installs the lock file of a folder unless it is installed. It skips the test of what
// without node or npm, or without access to the npm registry.
func npmInstall(t *testing.T, folder, what string) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	_, npmErr := exec.LookPath("npm")
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if npmErr != nil || err != nil || !regexp.MustCompile(`^v([2-9]\d|\d{3})\.`).Match(version) {
		missing(t, "npm and node in version 20 or later are missing (this is %q): no %s", version, what)
	}
	if npmInstalled(folder) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000")
	cmd.Dir = folder
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	unreachable := regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|E50[234]`)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded), unreachable.Match(out):
		missing(t, "npm registry not reachable: no %s (%s)", what, unreachable.Find(out))
	default:
		t.Fatalf("npm ci in test/%s: %v\n%s", folder, err, out)
	}
}

// npmInstalled reports whether the installation is complete and matches the lock: npm writes its own
// record last.
func npmInstalled(folder string) bool {
	done, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json"))
	if err != nil {
		return false
	}
	lock, err := os.Stat(filepath.Join(folder, "package-lock.json"))
	return err == nil && !lock.ModTime().After(done.ModTime())
}

// TestJSVerification: the owner verifies the bot by comparing emoji, in the room and by to-device
// events. Both sides compute the same emoji, and then the owner's client shows the bot as verified.
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
			w.bot(t, account, m, you.user) // a new one: it is not verified yet
			room := you.directRoom(t, bot)
			you.ask(t, room, bot, "hello") // both have the other's device list now
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
			// Its answer comes between its notices about the verification.
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

// TestJSVerificationMismatch: different emoji cancel the verification, without trust.
func TestJSVerificationMismatch(t *testing.T) {
	t.Parallel()
	npmInstall(t, "jsclient", "JavaScript client")
	w := newWorld(t)
	you := newJSPeer(t, w.home.URL, w.register(t, "you"))
	w.bot(t, "reverie", newModel(t), you.user)
	bot := "@reverie:" + w.home.Name
	room := you.directRoom(t, bot)
	you.ask(t, room, bot, "hello")
	var started struct{ Handle string }
	you.call(t, "verify", js{"user": bot, "room": room}, &started)
	you.follow(t, started.Handle, room, bot, func(e jsEvent) bool { return len(e.Emoji) == 7 })
	you.call(t, "mismatch", js{"handle": started.Handle}, nil)
	end, _ := you.follow(t, started.Handle, room, bot, func(e jsEvent) bool { return e.Phase == "cancelled" })
	expect.Equal(t, end.Code, "m.mismatched_sas", "the end")
	if trust := you.trust(t, bot); trust.Verified {
		t.Error("the bot is verified although the emoji differed")
	}
}

// jsVerify runs a verification that the person starts.
func jsVerify(t *testing.T, you *jsPeer, args js, room, bot string) {
	t.Helper()
	var started struct{ Handle string }
	you.call(t, "verify", args, &started)
	jsCompare(t, you, started.Handle, room, bot)
}

// jsCompare compares the emoji of both sides and confirms them on both.
func jsCompare(t *testing.T, you *jsPeer, handle, room, bot string) {
	t.Helper()
	shown, said := you.follow(t, handle, room, bot, func(e jsEvent) bool { return len(e.Emoji) == 7 })
	// The bot shows its own computation; variation selectors are a matter of fonts.
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

// follow waits for a step of a verification. It also returns bot's messages in room meanwhile.
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
