package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"reverie/cmd/bot/config"
	"reverie/internal/backup"
	"reverie/internal/dream"
	"reverie/internal/llm"
	"reverie/internal/llm/rehearsal"
	"reverie/internal/matrix/peer"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
)

// TestYear is a year of one person who writes 40 messages a day, in a bubble whose clock leaps from one
// message to the next. It logs what a day costs, in real time. REVERIE_YEAR is the number of days.
func TestYear(t *testing.T) {
	days, _ := strconv.Atoi(os.Getenv("REVERIE_YEAR"))
	if days == 0 {
		t.Skip("it takes up to an hour: make year")
	}
	synctest.Test(t, func(t *testing.T) { newYear(t).live(days) })
}

const (
	perDay    = 40
	perMonth  = 30                    // days
	beside    = 5                     // its last days, on which another bot lives its first day
	modelTime = 15 * time.Millisecond // most real models take longer

	maxSlower = 1.2 // aim: how many times as long as on the first day an answer takes
)

// year is a day that goes on.
type year struct {
	*day
	ann   *human
	room  string
	words []string
	rng   *rand.Rand
	took  []float64 // milliseconds, each answer of this month, without the model
	whole []float64 // … with the model, while that takes its time

	modelTook      atomic.Int64 // nanoseconds of real time in all
	modelTakesTime atomic.Bool  // modelTime for each request
}

// clock is the real time, which a bubble's clock is not.
func clock() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func newWords() (all []string) {
	for _, a := range []string{"ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi"} {
		for _, b := range []string{"lan", "ber", "din", "gos", "mut", "ran", "sel", "tik", "von", "zur"} {
			for _, c := range []string{"", "da", "el", "in", "ock", "um", "y"} {
				all = append(all, a+b+c)
			}
		}
	}
	return all
}

func newYear(t *testing.T) *year {
	y := &year{words: newWords(), rng: rand.New(rand.NewPCG(1, 2))}
	model := judging{rehearsal.Handler(rehearsal.Config{}), y}
	y.day = newDayWith(t, model, llm.ModelConfig{Window: 16384, MaxOutput: 1024}, func(c *config.Config) {
		c.Memory.Backend, c.Harvest.Calls = "fts5", 200
	})
	y.ann = y.person("ann")
	y.ann.replied = make(chan bool, 100)
	y.room = y.day.room(y.ann, peer.Room{Name: "Ann", Direct: true, Encrypted: true, Invite: []string{y.bot}})
	return y
}

// live lives the days. On the last of a month another bot lives its first day beside it and is told the same: what else
// the machine does slows both. The model takes time then.
func (y *year) live(days int) {
	y.began = time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
	var dreams, first, firstWhole []float64
	for n := range days {
		dreams = append(dreams, y.dream(n))
		all, left := []*year{y}, min(perMonth-1-n%perMonth, days-1-n) // left: days of this month
		if left < beside {
			all = append(all, newYear(y.t))
		}
		talk(n, all)
		for _, other := range all[1:] {
			first, firstWhole = append(first, other.took...), append(firstWhole, other.whole...)
			other.end()
		}
		if left == 0 {
			ours, new := median(y.took[max(0, len(y.took)-beside*perDay):]), median(first)
			y.t.Logf("until day %3d: %s; beside a first day %.1f and %.1f ms, %.2f times; with a model of %s %.1f and %.1f ms, %.2f times; "+
				"%.1f times with one of %.0f ms", n+1, y.measure(dreams), ours, new, ours/new, modelTime, median(y.whole), median(firstWhole),
				median(y.whole)/median(firstWhole), maxSlower, max(0, (ours-maxSlower*new)/(maxSlower-1)))
			y.took, y.whole, dreams, first, firstWhole = nil, nil, nil, nil, nil
		}
	}
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }

// cost is what a month took in milliseconds of real time, and what there is at its end.
type cost struct {
	p50, p99, dream, search, backup float64
	database, archive               int64 // bytes
	memories, messages              int
}

func (c cost) String() string {
	return fmt.Sprintf("an answer %.1f ms, p99 %.1f; search %.2f ms; dream %.0f ms; %d messages, %d memories, %.1f MB; backup %.1f MB in %.0f ms",
		c.p50, c.p99, c.search, c.dream, c.messages, c.memories, float64(c.database)/1e6, float64(c.archive)/1e6, c.backup)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// dream dreams in the night before day n, and returns how long it took.
func (y *year) dream(n int) float64 {
	sleepUntil(y.t.Context(), y.began.AddDate(0, 0, n).Add(4*time.Hour))
	began := clock()
	expect.Must(y.parts.dreamer.Dream(y.t.Context(), dream.Options{}))(y.t)
	return milliseconds(clock() - began)
}

// talk has the talks of day n, at the same times, and takes turns with who is first.
func talk(n int, all []*year) {
	var times []time.Duration
	for range perDay {
		times = append(times, 7*time.Hour+time.Duration(all[0].rng.IntN(16*3600))*time.Second)
	}
	slices.Sort(times)
	for _, y := range all {
		y.modelTakesTime.Store(len(all) > 1)
	}
	for i, at := range times {
		sleepUntil(all[0].t.Context(), all[0].began.AddDate(0, 0, n).Add(at))
		name := fmt.Sprintf("q-ann-%d", n*perDay+i)
		text := all[0].says(name)
		for k := range all {
			all[(i+k)%len(all)].ask(name, text)
			time.Sleep(time.Minute) // what it does afterwards does not slow the other
		}
	}
}

func (y *year) ask(name, text string) {
	for len(y.ann.replied) > 0 { // a reminder
		<-y.ann.replied
	}
	began, model := clock(), y.modelTook.Load()
	expect.Must(y.ann.Say(y.t.Context(), y.room, text))(y.t)
	select {
	case <-y.ann.replied:
	case <-time.After(time.Hour):
		y.t.Fatalf("%s: no answer in an hour", name)
	}
	whole := clock() - began
	y.took = append(y.took, milliseconds(whole-time.Duration(y.modelTook.Load()-model)))
	if y.modelTakesTime.Load() {
		y.whole = append(y.whole, milliseconds(whole))
	}
}

// says is a message of Ann: a fact, a question about one, a reminder, or talk.
func (y *year) says(name string) string {
	word := func() string { return y.words[y.rng.IntN(len(y.words))] }
	talk := func(n int) string {
		var all []string
		for range n {
			all = append(all, word())
		}
		return strings.Join(all, " ")
	}
	switch k := y.rng.IntN(20); {
	case k < 2:
		return fmt.Sprintf("My %s is %s %s. %s", word(), word(), word(), name)
	case k < 3:
		return fmt.Sprintf("remember that %s likes %s and %s %s", word(), word(), word(), name)
	case k < 6:
		return fmt.Sprintf("what do you know about %s? (%s)", word(), name)
	case k < 7:
		return fmt.Sprintf("remind me to look after the %s %s tomorrow at 9:00", word(), name)
	default:
		return fmt.Sprintf("%s: the %s of today was %s, and %s", name, word(), talk(4), talk(8+y.rng.IntN(20)))
	}
}

func (y *year) measure(dreams []float64) (c cost) {
	answers := slices.Sorted(slices.Values(y.took))
	c.p50, c.p99, c.dream = answers[len(answers)/2], answers[len(answers)*99/100], median(dreams)
	c.database = y.size(filepath.Join(y.parts.cfg.Data, "bot.db"))
	rows := y.rows()
	c.memories, c.messages = rows["memory"], rows["message"]
	for range 100 {
		began := clock()
		_, err := y.parts.memory.Search(y.t.Context(), memory.Query{Text: "what do you know about " + y.words[y.rng.IntN(len(y.words))] + "?",
			Scopes: memory.Strict.Visible(y.room, y.ann.UserID(), true)})
		expect.OK(y.t, err)
		c.search += milliseconds(clock()-began) / 100
	}
	file := filepath.Join(y.t.TempDir(), "backup")
	began := clock()
	expect.Must(backup.Write(y.t.Context(), file, backupSource(y.parts, "")))(y.t)
	c.backup = milliseconds(clock() - began)
	c.archive = y.size(file)
	return c
}

func (y *year) size(file string) int64 { return expect.Must(os.Stat(file))(y.t).Size() }

// judging is a rehearsal model that also answers what dreams ask: nothing is to be done.
type judging struct {
	http.Handler
	*year
}

var pairRE = regexp.MustCompile(`\\nPair (\d+)`)

func (j judging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := clock()
	defer func() { j.modelTook.Add(int64(clock() - began)) }()
	if wait := unix.NsecToTimespec(modelTime.Nanoseconds()); j.modelTakesTime.Load() {
		_ = unix.Nanosleep(&wait, nil) // time.Sleep sleeps in the bubble's time
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte("of an assistant in order")) {
		j.Handler.ServeHTTP(w, r)
		return
	}
	verdict, verdicts := "neither", []string{}
	if bytes.Contains(body, []byte("whether both say the same")) {
		verdict = "compatible"
	}
	for _, m := range pairRE.FindAllSubmatch(body, -1) {
		verdicts = append(verdicts, fmt.Sprintf(`{"pair": %s, "verdict": %q}`, m[1], verdict))
	}
	streamAnswer(w, "["+strings.Join(verdicts, ", ")+"]")
}
