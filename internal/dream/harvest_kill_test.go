package dream

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const harvestKilled = "REVERIE_TEST_HARVEST_IN"

// TestKilledWhileHarvesting: a process that harvests is killed again and again, while it asks, and while it
// stores what it learned. In the end each fact is there once, and each message is read.
// Holds L11.
func TestKilledWhileHarvesting(t *testing.T) {
	if dir := os.Getenv(harvestKilled); dir != "" {
		harvestUntilKilled(t, dir)
		return
	}
	const messages = 240
	dir := t.TempDir()
	r := openRig(t, dir, nil)
	for i := range messages {
		r.say(fmt.Sprintf("$%d", i), fmt.Sprintf("Locker %d holds the lamp.", i))
	}
	random := rand.New(rand.NewPCG(7, 11))
	kills, finished := 0, false
	for run := 0; run < 60 && !finished; run++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileHarvesting$")
		cmd.Env = append(os.Environ(), harvestKilled+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after, delay := 1+random.IntN(3), time.Duration(random.IntN(12_000))*time.Microsecond
		asked := 0
		for s := bufio.NewScanner(out); s.Scan(); {
			if !strings.HasPrefix(s.Text(), "asked") {
				continue
			}
			if asked++; asked == after {
				time.Sleep(delay) // somewhere between the question and the end of the transaction
				_ = cmd.Process.Kill()
				kills++
			}
		}
		finished = cmd.Wait() == nil
	}
	if got := r.states(); got["done"] != messages || len(got) != 1 {
		t.Errorf("%v after %d kills", got, kills)
	}
	count := map[string]int{}
	for _, e := range r.entries() {
		count[e.Text]++
	}
	for i := range messages {
		if f := fmt.Sprintf("Locker %d holds the lamp", i); count[f] != 1 {
			t.Errorf("%q is there %d times", f, count[f])
		}
	}
	if kills < 5 {
		t.Errorf("only %d kills", kills)
	}
	t.Logf("%d kills", kills)
}

func harvestUntilKilled(t *testing.T, dir string) {
	r := openRig(t, dir, nil)
	r.window = 800 // a few messages in each request
	r.answer = func(prompt string) (string, error) {
		fmt.Println("asked")
		return parrot(prompt)
	}
	if _, err := r.All(t.Context()); err != nil {
		t.Fatal(err)
	}
}
