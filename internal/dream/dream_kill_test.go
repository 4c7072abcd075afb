package dream

import (
	"bufio"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/skill"
	"reverie/internal/task"
)

const (
	dreamKilled   = "REVERIE_TEST_DREAM_IN"
	dreamKilledAt = "REVERIE_TEST_DREAM_AT"
)

// TestKilledWhileDreaming: a process that dreams is killed at any moment, and memory is
// as it was before or as it is after, nothing between. REVERIE_DREAM_KILLS = how often;
// else a few times.
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
	w := openWorld(t, from, facts(), perfect)
	w.withChores()
	state := func(w *world) string {
		return fingerprint(t, w.d.cfg.DB, false) + (&choreWorld{world: w}).taskRows() + tree(t, filepath.Join(w.dir, "skills"), true)
	}
	before, first := state(w), w.rows()
	exact := fingerprint(t, w.d.cfg.DB, true)
	began := time.Now()
	w.dream(Options{})
	took := time.Since(began)
	after, rows := state(w), w.rows()
	if !strings.Contains(after, `"deleted"`) || !strings.Contains(after, ".archive/hum.md") {
		t.Fatal("it did nothing to tasks and skills")
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
	unchanged, done := 0, 0
	for range kills {
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
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "begins" {
				time.Sleep(time.Duration(random.Int64N(int64(took) * 5 / 4)))
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		db, s := openStore(t, dir)
		k := &world{t: t, dir: dir, store: s, now: w.now.Add(24 * time.Hour)}
		k.openDreamer(db, s, perfect)
		k.withChores()
		if err := k.d.Settle(t.Context()); err != nil { // as when the program begins
			t.Fatal(err)
		}
		switch state(k) {
		case before:
			unchanged++
		case after:
			done++
		default:
			t.Errorf("memory is neither as before nor as after: %s\n%s\n%s", k.journal(), cmp.Diff(strings.Split(rows, "\n"), strings.Split(k.rows(), "\n")), cmp.Diff(strings.Split(first, "\n"), strings.Split(k.rows(), "\n")))
		}
		_ = db.Close()
	}
	t.Logf("%d kills: %d times as before, %d times as after", kills, unchanged, done)
}

// journal is what the database says of dreams, for a test that fails.
func (w *world) journal() string {
	var out string
	err := w.d.cfg.DB.QueryRow(`SELECT (SELECT group_concat(state || ' ' || batch || ' ' || reason || ' ' || calls, '; ') FROM dream_run) || ', ' ||
		(SELECT count(*) FROM dream_op) || ' steps, ' || (SELECT count(*) FROM dream_op WHERE undone = 1) || ' refused, chores: ' || coalesce((SELECT group_concat(kind || ' ' || item || ' ' || state, '; ') FROM dream_chore), 'none')`).Scan(&out)
	return fmt.Sprint(out, " ", err)
}

// prepareChores adds two tasks that ask for the same, and skills that nobody uses.
func prepareChores(t *testing.T, dir string) {
	t.Helper()
	db, _ := openStore(t, dir)
	old := time.Now().AddDate(0, 0, -200)
	for _, query := range []string{
		`INSERT INTO room (id) VALUES ('!r')`,
		`INSERT INTO task (id, room, user, content, priority, status, created, updated) VALUES ('task_twin0001', '!r', 'x', 'Water the plants', 5, 'active', 1, 1), ('task_twin0002', '!r', 'x', 'water the plants!', 5, 'active', 2, 2)`,
		fmt.Sprintf(`INSERT INTO message (room, conversation, role, event_id, sender, text, at) VALUES ('!r', 1, 'user', '$0', 'x', 'hello', %d)`, old.UnixMilli()),
	} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	for day := range 12 {
		if _, err := db.Exec(`INSERT INTO message (room, conversation, role, event_id, sender, text, at) VALUES ('!r', 1, 'user', ?, 'x', 'hello', ?)`,
			fmt.Sprint("$d", day), time.Now().AddDate(0, 0, -10-day).UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "skills"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dust.md", "fold.md", "hum.md"} {
		path := filepath.Join(dir, "skills", name)
		if err := os.WriteFile(path, []byte("How to "+name+"\n\nSlowly.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// withChores has the dreamer put tasks and skills in order, too, all at one time.
func (w *world) withChores() {
	dir := filepath.Join(w.dir, "skills")
	entries, _ := os.ReadDir(dir)
	old := time.Now().AddDate(0, 0, -200)
	for _, e := range entries {
		_ = os.Chtimes(filepath.Join(dir, e.Name()), old, old) // copying made them new
	}
	w.d.cfg.Tasks, w.d.cfg.Skills = task.NewStore(w.d.cfg.DB, nil), skill.Open(dir)
}

func dreamUntilKilled(t *testing.T, dir string) {
	db, s := openStore(t, dir)
	w := &world{t: t, dir: dir, facts: facts(), of: map[string]*fact{}, now: time.Now().Add(time.Hour), asked: map[string]int{}}
	for i := range w.facts {
		for _, text := range w.facts[i].texts {
			w.of[text] = &w.facts[i]
		}
	}
	var err error
	if w.now, err = time.Parse(time.RFC3339Nano, os.Getenv(dreamKilledAt)); err != nil {
		t.Fatal(err)
	}
	w.openDreamer(db, s, perfect)
	w.withChores()
	fmt.Println("begins")
	w.dream(Options{})
}

// fingerprint is a hash of all entries; exact: of all that is stored of them.
func fingerprint(t *testing.T, db *sql.DB, exact bool) string {
	t.Helper()
	columns := "id, scope, text, state, by_id, face, rev, source, observed_at"
	if exact {
		columns = "*"
	}
	rows, err := db.Query(`SELECT ` + columns + ` FROM memory ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%#v\n", values)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
