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
	"strconv"
	"testing"
	"time"
)

const dreamKilled = "REVERIE_TEST_DREAM_IN"

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
	world := facts()
	from := prepare(t, world)
	w := openWorld(t, from, world, perfect)
	before := fingerprint(t, w.d.cfg.DB, false)
	exact := fingerprint(t, w.d.cfg.DB, true)
	began := time.Now()
	w.dream(Options{})
	took := time.Since(began)
	after := fingerprint(t, w.d.cfg.DB, false)
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
		cmd.Env = append(os.Environ(), dreamKilled+"="+dir)
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
		db, _ := openStore(t, dir)
		switch fingerprint(t, db, false) {
		case before:
			unchanged++
		case after:
			done++
		default:
			t.Error("memory is neither as before nor as after")
		}
		_ = db.Close()
	}
	t.Logf("%d kills: %d times as before, %d times as after", kills, unchanged, done)
}

func dreamUntilKilled(t *testing.T, dir string) {
	db, s := openStore(t, dir)
	w := &world{t: t, dir: dir, facts: facts(), of: map[string]*fact{}, now: time.Now().Add(time.Hour), asked: map[string]int{}}
	for i := range w.facts {
		for _, text := range w.facts[i].texts {
			w.of[text] = &w.facts[i]
		}
	}
	w.openDreamer(db, s, perfect)
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
