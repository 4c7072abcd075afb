package test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/peer"
	"reverie/internal/test/expect"
)

// slowModel is the rehearsal model, with a pause before each piece of an answer.
func slowModel(t *testing.T, pause time.Duration) *model {
	t.Helper()
	m := newModel(t)
	h := rehearsal.Handler(rehearsal.Config{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.calls.Add(1)
		h.ServeHTTP(pausing{w, pause}, r)
	}))
	t.Cleanup(s.Close)
	m.url = s.URL + "/v1"
	return m
}

type pausing struct {
	http.ResponseWriter
	pause time.Duration
}

func (p pausing) Write(b []byte) (int, error) {
	time.Sleep(p.pause)
	return p.ResponseWriter.Write(b)
}

func (p pausing) Flush() { p.ResponseWriter.(http.Flusher).Flush() }

// transcript is what a person sees of the bot's messages: event → its newest text.
type transcript struct {
	you    *peer.Peer
	bodies map[string]string
	live   map[string]bool
}

// follow reads events until done.
func (s *transcript) follow(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.After(40 * time.Second)
	for !done() {
		select {
		case e := <-s.you.Events():
			switch {
			case e.Kind == peer.Undecryptable:
				t.Fatalf("could not decrypt: %v", e.Err)
			case strings.HasPrefix(e.Sender, "@reverie:") && (e.Kind == peer.Message || e.Kind == peer.Edit):
				s.bodies[e.ID], s.live[e.ID] = e.Body, e.Live
			}
		case <-limit:
			t.Fatalf("%s; seen: %q", what, s.bodies)
		}
	}
}

// answered returns how many finished messages answer question.
func (s *transcript) answered(question string) (n int) {
	for id, body := range s.bodies {
		if strings.Contains(body, "“"+question) && !s.live[id] {
			n++
		}
	}
	return n
}

// command runs a subcommand of the bot and returns its output.
func (p *process) command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.bin, append(args, "--config", p.config)...)
	cmd.Env = append(os.Environ(), "E2E_PASSWORD="+p.secret)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("bot %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A backup is taken while the bot runs. The bot answers more, is killed in the middle of an answer, and its data folder is
// lost. Restored, it is a new device that continues: nothing is answered twice, nothing stays unanswered, everything can be
// read, and messages from before the backup, whose keys come from the account's key backup.
// Holds F25.
func TestRestoredFromBackup(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), slowModel(t, 15*time.Millisecond)
	you, other := w.person(t, "you"), w.person(t, "other")
	bot := w.bot(t, "reverie", m, you.UserID())
	self := "@reverie:" + w.home.Name
	direct, group, quiet := directRoom(t, you, self), groupRoom(t, you, other, self), directRoom(t, you, self)
	seen := &transcript{you: you, bodies: map[string]string{}, live: map[string]bool{}}
	rooms := map[string]string{}
	say := func(room, text string) string {
		rooms[text] = room
		if room == group {
			return sent(t)(you.SayTo(t.Context(), room, text, self))
		}
		return sent(t)(you.Say(t.Context(), room, text))
	}
	converse := func(texts ...string) {
		for _, text := range texts {
			say(direct, text)
			say(group, text+" of us")
			seen.follow(t, "no answer to "+text, func() bool { return seen.answered(text+"”") == 1 && seen.answered(text+" of us") == 1 })
		}
	}
	first := say(direct, "apricot")
	seen.follow(t, "no answer to apricot", func() bool { return seen.answered("apricot") == 1 })
	converse("banana")
	say(quiet, "coconut")
	seen.follow(t, "no answer to coconut", func() bool { return seen.answered("coconut") == 1 })
	until(t, "the keys are not backed up", func() bool {
		return value[int](t, bot, `SELECT count(*) FROM crypto_megolm_inbound_session WHERE session IS NOT NULL AND key_backup_version = ''`) == 0
	})
	file := filepath.Join(t.TempDir(), "reverie.tar.gz")
	bot.command(t, "task", "add", "water the plants", "--room", quiet, "--when", "in 8 seconds")
	say(direct, "cherry") // is answered meanwhile
	bot.command(t, "backup", file)
	seen.follow(t, "no answer to cherry", func() bool { return seen.answered("cherry") == 1 })
	converse("damson", "elderberry")
	reminders := func() (n int) {
		for _, body := range seen.bodies {
			n += strings.Count(body, "water the plants")
		}
		return n
	}
	seen.follow(t, "no reminder", func() bool { return reminders() > 0 })
	device := value[string](t, bot, `SELECT device_id FROM crypto_account WHERE account_id = ''`)
	say(group, "fig of us")
	say(direct, "grape"+strings.Repeat(", which takes a while to answer", 6))
	m.asked(t, m.calls.Load()-1)
	pause := time.Duration(rand.IntN(1500)) * time.Millisecond
	t.Logf("killed after %v", pause)
	time.Sleep(pause)
	bot.kill()
	say(quiet, "huckleberry") // nobody is there
	expect.OK(t, os.RemoveAll(bot.data("")))

	bot.command(t, "restore", file)
	if _, err := os.Stat(bot.data("matrix/account.json")); err == nil {
		t.Error("the login of the old device was restored")
	}
	bot.change(t, `DELETE FROM crypto_megolm_inbound_session`) // so that only the account's key backup can help
	bot.start(t, bot.secret)
	seen.follow(t, "not all is answered", func() bool {
		return seen.answered("fig") == 1 && seen.answered("grape") == 1 && seen.answered("huckleberry") == 1
	})
	if now := value[string](t, bot, `SELECT device_id FROM crypto_account WHERE account_id = ''`); now == device {
		t.Errorf("the bot is still the device %s", device)
	}
	var old struct {
		Content struct {
			Session string `json:"session_id"`
		} `json:"content"`
	}
	expect.OK(t, json.Unmarshal(expect.Must(you.Raw(t.Context(), direct, first))(t), &old))
	expect.Equal(t, value[int](t, bot, `SELECT count(*) FROM crypto_megolm_inbound_session WHERE session_id = ? AND session IS NOT NULL`,
		old.Content.Session), 1, "keys of a message from before the backup")
	converse("imbe")

	// The homeserver's events count: each question has one message of the bot.
	shown := map[string]int{}
	for _, room := range []string{direct, group, quiet} {
		for _, raw := range expect.Must(you.RawTimeline(t.Context(), room, 300))(t) {
			var e struct {
				ID      string `json:"event_id"`
				Sender  string `json:"sender"`
				Type    string `json:"type"`
				Content struct {
					Ciphertext any `json:"ciphertext"`
				} `json:"content"`
			}
			expect.OK(t, json.Unmarshal(raw, &e))
			if e.Sender != self || e.Type != "m.room.encrypted" || e.Content.Ciphertext == nil || bytes.Contains(raw, []byte("m.replace")) {
				continue
			}
			for text := range rooms {
				if room == rooms[text] && strings.Contains(seen.bodies[e.ID], "“"+text) {
					shown[text]++
				}
			}
		}
	}
	expect.Equal(t, reminders(), 1, "reminders")
	for text := range rooms {
		expect.Equal(t, shown[text], 1, "messages that answer %q", text)
	}
	// A key may come after its message, which is read then.
	expect.Equal(t, value[int](t, bot, `SELECT count(*) FROM inbox WHERE state IN ('utd', 'failed', 'dead')`), 0, "messages that cannot be read")
	if report := bot.command(t, "doctor", "--json"); !strings.Contains(report, `"cross_signed": true`) {
		t.Errorf("the new device is not signed: %s", report)
	}
}

// change runs a statement in the database of a stopped bot.
func (p *process) change(t *testing.T, statement string) {
	t.Helper()
	db := expect.Must(sql.Open("sqlite", "file:"+p.data("bot.db")))(t)
	_, err := db.ExecContext(t.Context(), statement)
	expect.OK(t, err)
	expect.OK(t, db.Close())
}
