package dream

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/task"
)

const (
	dreamKilled   = "REVERIE_TEST_DREAM_IN"
	dreamKilledAt = "REVERIE_TEST_DREAM_AT"
)

// TestKilledWhileDreaming: a process that dreams is killed at any moment, and memory is
// as it was before or as it is after, nothing between. What it was reading then is read by the next
// dream, and nothing twice. REVERIE_DREAM_KILLS = how often; else a few times.
// Holds L11.
func TestKilledWhileDreaming(t *testing.T) {
	if dir := os.Getenv(dreamKilled); dir != "" {
		dreamUntilKilled(t, dir)
		return
	}
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("REVERIE_DREAM_KILLS")); err == nil {
		kills = n
	}
	from := prepare(t, facts())
	prepareChores(t, from)
	prepareTalk(t, from)
	w := openWorld(t, from, append(facts(), lockers()...), perfect)
	w.withChores()
	w.withTalk(parrot)
	state := func(w *world) string {
		return fingerprint(t, w.d.cfg.DB, false) + (&choreWorld{world: w}).taskRows()
	}
	before, rowsBefore := state(w), w.rows()
	exact := fingerprint(t, w.d.cfg.DB, true)
	began := time.Now()
	first := w.dream(Options{})
	took := time.Since(began)
	if first.Cost.Read < 3 || first.Harvested.Added != len(lockers()) {
		t.Fatalf("%+v", first)
	}
	after, rows := state(w), w.rows()
	if !strings.Contains(after, `"deleted"`) {
		t.Fatal("it did nothing to tasks")
	}
	if before == after {
		t.Fatal("the dream did nothing")
	}
	if _, err := w.d.Undo(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if fingerprint(t, w.d.cfg.DB, true) != exact {
		t.Error("a dream that is taken back leaves something")
	}
	random := rand.New(rand.NewPCG(3, 5))
	unchanged, done, reading := 0, 0, 0
	for i := range kills {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileDreaming$")
		cmd.Env = append(os.Environ(), dreamKilled+"="+dir, dreamKilledAt+"="+w.now.Format(time.RFC3339Nano))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var other []string
		asked, last := 0, 1+random.IntN(first.Cost.Read) // every third is killed while it reads
		for s := bufio.NewScanner(out); s.Scan(); {
			switch {
			case s.Text() == "asked":
				asked++
			case s.Text() != "begins":
				other = append(other, s.Text())
				continue
			}
			if i%3 == 0 && asked == last {
				time.Sleep(time.Duration(random.IntN(12_000)) * time.Microsecond) // as far as the end of the transaction
				_ = cmd.Process.Kill()
			} else if i%3 > 0 && asked == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(took) * 2)))
				_ = cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
			t.Fatalf("it failed before it was killed: %v\n%s", err, other)
		}
		db, s := openStore(t, dir)
		k := worldOf(t, dir, db, s, w.facts, perfect)
		k.now = w.now
		k.withChores()
		k.withTalk(parrot)
		switch state(k) {
		case before:
			unchanged++
		case after:
			done++
		default:
			t.Errorf("memory is neither as before nor as after: %s\n%s\n%s", k.journal(), cmp.Diff(strings.Split(rows, "\n"), strings.Split(k.rows(), "\n")), cmp.Diff(strings.Split(rowsBefore, "\n"), strings.Split(k.rows(), "\n")))
		}
		if k.readOn() {
			reading++
		}
		_ = db.Close()
	}
	t.Logf("%d kills: %d times as before, %d times as after; %d times before all was read", kills, unchanged, done, reading)
	if reading < kills/6 {
		t.Errorf("only %d of %d kills came before all was read", reading, kills)
	}
}

// journal is what the database says of dreams, for a test that fails.
func (w *world) journal() string {
	var out string
	err := w.d.cfg.DB.QueryRow(`SELECT (SELECT group_concat(state || ' ' || batch || ' ' || reason || ' ' || calls, '; ') FROM dream_run) || ', ' ||
		(SELECT count(*) FROM dream_op) || ' steps, ' || (SELECT count(*) FROM dream_op WHERE undone = 1) || ' refused, chores: ' || coalesce((SELECT group_concat(kind || ' ' || item || ' ' || state, '; ') FROM dream_chore), 'none')`).Scan(&out)
	return fmt.Sprint(out, " ", err)
}

// prepareChores adds two tasks that ask for the same.
func prepareChores(t *testing.T, dir string) {
	t.Helper()
	db, _ := openStore(t, dir)
	for _, query := range []string{
		`INSERT INTO room (id) VALUES ('!r')`,
		`INSERT INTO task (id, room, user, content, priority, status, created, updated) VALUES ('task_twin0001', '!r', 'x', 'Water the plants', 5, 'active', 1, 1), ('task_twin0002', '!r', 'x', 'water the plants!', 5, 'active', 2, 2)`,
	} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// lockers is what people say before the dream.
func lockers() (all []fact) {
	for i := range 60 {
		all = append(all, fact{key: fmt.Sprint("locker ", i), texts: []string{fmt.Sprintf("Locker %d holds the lamp", i)}})
	}
	return all
}

// prepareTalk adds what people said in a room of several, and nobody has read yet.
func prepareTalk(t *testing.T, dir string) {
	t.Helper()
	db, _ := openStore(t, dir)
	h := history.NewStore(db)
	for i, f := range lockers() {
		m := history.Message{Room: "!group", Role: llm.User, EventID: fmt.Sprint("$talk", i), Sender: owner, Text: f.texts[0] + ".", At: time.Now().Add(-time.Hour), Header: "[Fri 2026-11-20 09:00 UTC, me]"}
		m.Label = labelOf(m)
		if err := h.Append(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// withTalk has the dreamer read what was said, a few messages in each request.
func (w *world) withTalk(answer func(prompt string) (string, error)) {
	k := &talk{world: w, read: func(_ context.Context, prompt string) (string, error) { return answer(prompt) }}
	k.listen(func(c *HarvestConfig) { c.Window = func(string) (int, int) { return 800, 512 } })
	k.d.cfg.Budget.Calls += 10
}

// readOn reads what is left to be read, and looks whether everything is known once, as it
// was before for what was read by then. It reports whether something was left.
func (w *world) readOn() (left bool) {
	w.t.Helper()
	count := func() (known, most, unread int) {
		w.t.Helper()
		if err := w.d.cfg.DB.QueryRow(`SELECT count(DISTINCT text), coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM memory WHERE text LIKE 'Locker %' GROUP BY text)), 0),
			(SELECT count(*) FROM harvest AS h JOIN message AS m ON m.id = h.message WHERE h.state = 'new' AND m.room = '!group') FROM memory WHERE text LIKE 'Locker %'`).Scan(&known, &most, &unread); err != nil {
			w.t.Fatal(err)
		}
		return known, most, unread
	}
	all := len(lockers())
	known, most, unread := count()
	if known+unread != all || most > 1 {
		w.t.Errorf("after the kill %d facts are known, one of them %d times, and %d messages are to be read", known, most, unread)
	}
	r := w.dream(Options{Phases: []Phase{Harvest}})
	if known, most, unread := count(); known != all || most != 1 || unread != 0 {
		w.t.Errorf("in the end %d facts are known, one of them %d times, and %d messages are to be read: %+v", known, most, unread, r)
	}
	return unread > 0
}

// withChores has the dreamer put tasks in order, too.
func (w *world) withChores() { w.d.cfg.Tasks = task.NewStore(w.d.cfg.DB, nil) }

func dreamUntilKilled(t *testing.T, dir string) {
	db, s := openStore(t, dir)
	w := worldOf(t, dir, db, s, append(facts(), lockers()...), perfect)
	var err error
	if w.now, err = time.Parse(time.RFC3339Nano, os.Getenv(dreamKilledAt)); err != nil {
		t.Fatal(err)
	}
	w.withChores()
	w.withTalk(func(prompt string) (string, error) {
		fmt.Println("asked")
		return parrot(prompt)
	})
	fmt.Println("begins")
	w.dream(Options{})
}

// fingerprint is what is stored of all entries but those that were read out of a talk; exact: all
// that is stored of them.
func fingerprint(t *testing.T, db *sql.DB, exact bool) string {
	t.Helper()
	columns := "id, scope, text, state, by_id, rev, source, observed_at"
	if exact {
		columns = "*"
	}
	return dump(t, db, `SELECT `+columns+` FROM memory WHERE event = '' ORDER BY id`)
}
