package dream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/llm/answer"
	"reverie/internal/profile"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// talk is a world in which people talk, and a dream reads it.
type talk struct {
	*world
	h       *harvest.Harvester
	said    int
	prompts []string // of the harvest
	read    func(ctx context.Context, prompt string) (string, error)
}

func newTalk(t *testing.T, facts []fact, change func(*harvest.Config)) *talk {
	t.Helper()
	k := &talk{world: newWorld(t, facts, perfect), read: func(_ context.Context, p string) (string, error) { return parrotOf(p) }}
	k.listen(change)
	return k
}

// listen gives the dreamer a harvester.
func (k *talk) listen(change func(*harvest.Config)) {
	k.t.Helper()
	c := harvest.Config{LastMessageAt: func(context.Context, string) (time.Time, error) { return time.Time{}, nil },
		WaitIdle: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, ctx.Err() },
		Messages: 20, CallsPerDay: 500, Idle: 15 * time.Minute, Profiles: profile.Store{Location: time.UTC}, Log: slog.New(slog.DiscardHandler),
		DB: k.d.cfg.DB, Store: k.store, Default: fstest.MapFS{harvest.Template.File: {Data: []byte("Find facts.\n{transcript}\n")}}, Window: func(string) (int, int) { return 8192, 512 },
		Level: func(string) trust.Integrity { return trust.Owner }, // it is the owner who speaks
		Now:   func() time.Time { return k.now }, Ask: func(ctx context.Context, _, prompt string) (string, error) {
			k.prompts = append(k.prompts, prompt)
			return k.read(ctx, prompt)
		}}
	if change != nil {
		change(&c)
	}
	k.h = harvest.Open(c)
	k.d.cfg.Harvester = k.h
}

// say stores what somebody said so long ago.
func (k *talk) say(room string, ago time.Duration, text string) {
	k.t.Helper()
	k.said++
	m := history.Message{Room: history.Timeline(room), Role: llm.User, EventID: fmt.Sprint("$", k.said), Sender: owner, Text: text, At: k.now.Add(-ago), Header: "[Fri 2026-11-20 09:00 UTC]"}
	m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.PersonReaders(owner)}
	expect.OK(k.t, history.NewStore(k.d.cfg.DB).Append(k.t.Context(), &m))
}

// unread is how many messages are to be read, and how often they were tried in vain.
func (k *talk) unread() (n, tries int) {
	k.t.Helper()
	expect.OK(k.t, k.d.cfg.DB.QueryRow(`SELECT count(*), coalesce(sum(tries), 0) FROM harvest WHERE state = 'new'`).Scan(&n, &tries))
	return n, tries
}

// numbered are the messages of a request.
var numbered = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: (.*)$`)

// parrotOf takes each whole message for a fact.
func parrotOf(prompt string) (string, error) {
	var facts []string
	for _, m := range numbered.FindAllStringSubmatch(prompt, -1) {
		subject, _, _ := strings.Cut(m[2], " ")
		facts = append(facts, fmt.Sprintf(`{"fact":%q,"kind":"fact","message":%s,"quote":%q,"subject":%q,"valid_from":"","valid_to":""}`,
			m[2], m[1], m[2], subject))
	}
	return "[" + strings.Join(facts, ",") + "]", nil
}

func berlin() []fact {
	return []fact{
		{key: "home", value: "Berlin", old: true, at: 1, texts: []string{"Anna lives in Berlin."}},
		{key: "home", value: "Hamburg", at: 400, texts: []string{"Anna moved to Hamburg."}},
		{key: "tea", at: 3, texts: []string{"Anna likes green tea."}}, {key: "dog", at: 3, texts: []string{"Anna has a dog."}},
	}
}

// TestReadsFirst: what was said is read before the plan, and counts in it, unless somebody talks
// there at the moment: that is left to the next dream, but for one that was asked for.
func TestReadsFirst(t *testing.T) {
	all := berlin()
	k := newTalk(t, []fact{all[0], all[2], all[3]}, nil)
	k.of[all[1].texts[0]] = &all[1]
	k.say("!old", 10*time.Minute, all[1].texts[0])
	k.say("!fresh", 9*time.Minute, "Locker 7 holds the lamp.")
	if r := k.dream(Options{DryRun: true}); r.Harvested != nil || len(k.prompts) != 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "not read yet: 2; a dry run reads none") {
		t.Fatalf("%+v", r)
	}
	if k.dream(Options{Phases: []Phase{Stale}}); len(k.prompts) != 0 {
		t.Fatal("another part reads")
	}
	r := k.dream(Options{})
	if r.Harvested == nil || r.Harvested.Messages != 1 || r.Harvested.Added != 1 || len(r.Superseded) != 1 || r.Superseded[0].Text != "Anna lives in Berlin." || r.Cost.Read != 1 || r.Cost.Calls <= 1 {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{"Read before: 1 messages, with 1 new facts", "1 of them to read", "What it read stays noted"} {
		if !strings.Contains(r.Text(time.UTC), want) {
			t.Errorf("no %q in %s", want, r.Text(time.UTC))
		}
	}
	var calls, harvest int
	if err := k.d.cfg.DB.QueryRow(`SELECT calls, harvest FROM dream_run WHERE id = ?`, r.Run).Scan(&calls, &harvest); err != nil || calls != r.Cost.Calls || harvest != 1 {
		t.Errorf("%d, %d, %v", calls, harvest, err)
	}
	if left, _ := k.unread(); left != 1 {
		t.Errorf("%d messages are left", left)
	}
	if r := k.dream(Options{Now: true}); r.Harvested == nil || r.Harvested.Added != 1 {
		t.Errorf("%+v", r)
	}
	if k.dream(Options{Now: true}); len(k.prompts) != 2 {
		t.Errorf("%d requests", len(k.prompts))
	}
}

// TestReadsHalf: however much was said, half of each part of the budget is left to the plan, and each room
// has its turn; the rest is read later, and nothing is lost.
func TestReadsHalf(t *testing.T) {
	for name, b := range map[string]report.Budget{"calls": {Calls: 9, Tokens: 1 << 20, Time: time.Minute}, "tokens": {Calls: 99, Tokens: 3000, Time: time.Minute}, "time": {Calls: 99, Tokens: 1 << 20, Time: 2 * time.Nanosecond}, "one": {Calls: 1, Tokens: 1 << 20, Time: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, home(""), func(c *harvest.Config) { c.Window = func(string) (int, int) { return 700, 300 } })
			for i := range 70 {
				k.say("!loud", time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
			}
			k.say("!quiet", time.Hour, "Locker 900 holds the rope.")
			k.d.cfg.Budget = b
			k.of, k.facts = map[string]*fact{}, nil
			k.d.cfg.Ask = func(_ context.Context, _, prompt string) (string, error) {
				k.calls++
				return always("neither")(k.world, prompt)
			}
			r := k.dream(Options{})
			reads, most := len(k.prompts), map[string]int{"calls": 4, "tokens": 20, "time": 0, "one": 0}[name]
			if reads != r.Cost.Read || reads > most || name == "calls" && reads != most || name == "tokens" && (reads < 2 || r.Cost.Tokens > b.Tokens) || !strings.Contains(strings.Join(r.Notes, "\n"), "is used up") && !strings.Contains(strings.Join(r.Notes, "\n"), "are used up") {
				t.Errorf("%d requests, %+v", reads, r)
			}
			if name != "time" && (k.calls == 0 || r.Cost.Calls != reads+k.calls) {
				t.Errorf("the plan had %d requests, %+v", k.calls, r.Cost)
			}
			if _, there := k.active()["Locker 900 holds the rope."]; there != (most > 1) {
				t.Errorf("the quiet room was read: %t", there)
			}
			if _, tries := k.unread(); tries != 0 {
				t.Errorf("%d tries are counted", tries)
			}
			k.d.cfg.Budget = report.Budget{Calls: 9999, Tokens: 1 << 30, Time: time.Hour}
			k.dream(Options{})
			if left, _ := k.unread(); left != 0 {
				t.Errorf("%d messages are not read", left)
			}
			seen := map[string]int{}
			for _, p := range k.prompts {
				for _, m := range numbered.FindAllStringSubmatch(p, -1) {
					seen[m[2]]++
				}
			}
			for text, n := range seen {
				expect.Equal(t, n, 1, "times %q is read", text)
			}
			expect.Equal(t, len(seen), 71, "messages were read")
		})
	}
}

// TestReadsNothing: a model that fails while it reads costs nothing but what it would have read: the
// plan goes on, the report says why, and it is read later.
func TestReadsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		err    error
		why    string
		tries  bool
	}{
		"down":    {err: &llm.Error{Kind: llm.Unreachable, Err: errors.New("refused")}, why: "llm: refused"},
		"prose":   {answer: "Anna lives in Kiel.", why: answer.ErrNoList.Error(), tries: true},
		"cut off": {answer: `[{"message":1,"fact":"Locker 1`, why: answer.ErrPartial.Error(), tries: true},
		"panic":   {why: "panic: boo"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, home(""), nil)
			for i := range 5 {
				k.say(fmt.Sprint("!", i), time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
			}
			k.read = func(context.Context, string) (string, error) {
				if name == "panic" {
					panic("boo")
				}
				return c.answer, c.err
			}
			r := k.dream(Options{})
			if len(r.Merged) != 1 || len(r.Superseded) != 1 || r.State != report.Applied || !strings.Contains(strings.Join(r.Notes, "\n"), "not all that was said is read: harvest !0: "+c.why) {
				t.Errorf("%+v", r)
			}
			if left, tries := k.unread(); left != 5 || (tries > 0) != c.tries || len(k.prompts) != failures {
				t.Errorf("%d messages, %d tries, %d requests", left, tries, len(k.prompts))
			}
			k.read = func(_ context.Context, p string) (string, error) { return parrotOf(p) }
			k.h.Wake("!1")
			if rooms, err := k.h.Due(t.Context()); err != nil || slices.Contains(rooms, "!0") || slices.Contains(rooms, "!1") || !slices.Contains(rooms, "!2") {
				t.Errorf("to be read by day, while what failed rests: %q, %v", rooms, err)
			}
			k.read = func(_ context.Context, p string) (string, error) {
				if strings.Contains(p, "Locker 0") || strings.Contains(p, "Locker 1") {
					return "no", nil
				}
				return parrotOf(p)
			}
			if r := k.dream(Options{}); r.Harvested.Messages != 3 || r.Harvested.Added != 3 {
				t.Errorf("what failed keeps others from being read: %+v", r)
			}
			k.read = func(_ context.Context, p string) (string, error) { return parrotOf(p) }
			if r := k.dream(Options{}); r.Harvested.Messages != 2 || r.Harvested.Added != 2 {
				t.Errorf("%+v", r)
			}
			k.say("!0", time.Hour, "Locker 8 holds the rope.")
			if rooms, err := k.h.Due(t.Context()); err != nil || !slices.Equal(rooms, []string{"!0"}) {
				t.Errorf("what was read rests no more: %q, %v", rooms, err)
			}
		})
	}
}

// TestReadsTooSlowly: a model that does not answer is waited for no longer than a dream waits, and is
// not asked on; who writes ends it at once. Neither counts against what was said.
func TestReadsTooSlowly(t *testing.T) {
	dir := prepare(t, home(""))
	synctest.Test(t, func(t *testing.T) {
		k := &talk{world: openWorld(t, dir, home(""), perfect)}
		k.listen(nil)
		for i := range 3 {
			k.say(fmt.Sprint("!", i), time.Hour, fmt.Sprintf("Locker %d holds the lamp.", i))
		}
		leave := func() {}
		k.read = func(ctx context.Context, _ string) (string, error) {
			leave()
			<-ctx.Done()
			return "", ctx.Err()
		}
		r := k.dream(Options{Now: true}) // the clock stands before the memories
		if len(r.Superseded) != 1 || len(k.prompts) != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), "no answer within 2m0s") {
			t.Errorf("%d requests, %+v", len(k.prompts), r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		leave = cancel
		r, err := k.d.Dream(ctx, Options{Now: true})
		if err == nil || r.State != report.Failed || r.Reason != errYielded || r.Harvested == nil || len(r.Notes) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		day, night := context.WithCancel(t.Context()) // what is read by day at that moment is waited for, but no longer than nobody writes
		defer night()
		go k.h.Read(day, []string{"!0"}, func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, 1)
		synctest.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r, err := k.d.Dream(ctx, Options{Now: true}); err == nil || r.Reason != errYielded || r.Cost.Calls != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if left, tries := k.unread(); left != 3 || tries != 0 {
			t.Errorf("%d messages, %d tries", left, tries)
		}
		expect.Equal(t, len(expect.Must(k.h.Due(t.Context()))(t)), 3)
		k.d.cfg.DB.Close()
	})
}
