package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/store"
)

// memories measures commands on 20,000 memories, and how long a concurrent writer has to wait.
func (b *bench) memories(ctx context.Context, dir string) error {
	bot, err := b.botIn(ctx, dir, "memory: {backend: fts5}\n"+rehearsal)
	if err != nil {
		return err
	}
	lines := filepath.Join(dir, "memories.jsonl")
	texts, _, err := writeMemories(lines, filepath.Join(dir, "questions.jsonl"), 20_000)
	if err != nil {
		return err
	}
	plain, inserted, err := openPlain(ctx, dir, texts)
	if err != nil {
		return err
	}
	defer plain.db.Close()
	var imported struct{ Batch string }
	for _, step := range []struct {
		what    string
		limit   float64 // seconds
		waiting bool
		args    func() []string
	}{
		{"import", 20, true, func() []string { return []string{"import", "--json", lines} }},
		{"the same import again", 0, true, func() []string { return []string{"import", "--json", lines} }},
		{"reindex", 2, false, func() []string { return []string{"reindex", "--json"} }},
		{"undo of the import", 5, true, func() []string { return []string{"undo", "--json", imported.Batch} }},
	} {
		r, err := runBesideWriter(ctx, filepath.Join(dir, "data"), bot(append([]string{"memory"}, step.args()...)...))
		if err != nil {
			return err
		}
		if imported.Batch == "" {
			if err := json.Unmarshal(r.out, &imported); err != nil {
				return fmt.Errorf("%s: %w", step.what, err)
			}
		}
		name := "20,000 memories, " + step.what
		b.put(figure{What: name, Value: r.took.Seconds(), Unit: "s", Limit: step.limit, Baseline: inserted.Seconds(), Plain: "inserts into a plain FTS5 table"},
			figure{What: name + ", processor", Value: r.cpu.Seconds(), Unit: "s"}, figure{What: name + ", peak memory", Value: r.megabytes, Unit: "MB", Limit: 200})
		if step.waiting {
			b.put(figure{What: name + ", longest wait of a writer", Value: milliseconds(r.wait), Unit: "ms", Limit: 60_000})
		}
	}
	info, err := os.Stat(filepath.Join(dir, "data", "bot.db"))
	if err == nil {
		b.put(figure{What: "20,000 memories, bot.db after that", Value: float64(info.Size()) / 1e6, Unit: "MB"})
	}
	return err
}

// commandCost is the cost of a command.
type commandCost struct {
	out             []byte
	took, cpu, wait time.Duration
	megabytes       float64
}

// runBesideWriter runs cmd and repeatedly begins a write transaction on the same database meanwhile.
func runBesideWriter(ctx context.Context, data string, cmd *exec.Cmd) (commandCost, error) {
	db, err := store.Open(ctx, filepath.Join(data, "bot.db"), reverie.Migrations)
	if err != nil {
		return commandCost{}, err
	}
	defer db.Close()
	var stderr, stdout strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return commandCost{}, err
	}
	ended := make(chan error, 1)
	// go: it ends with the command
	go func() { ended <- cmd.Wait() }()
	var r commandCost
	for {
		r.megabytes = max(r.megabytes, memoryOf(cmd.Process.Pid)["VmHWM"])
		asked := time.Now()
		tx, err := db.BeginTx(ctx, nil)
		r.wait = max(r.wait, time.Since(asked))
		if err == nil { // on an error the wait was more than a minute, which the figure shows
			_ = tx.Rollback()
		}
		select {
		case failed := <-ended:
			if failed != nil {
				return r, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), failed, stderr.String())
			}
			r.out, r.took = []byte(stdout.String()), time.Since(begin)
			r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			return r, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// timed runs a command and returns its seconds and megabytes.
func timed(c *exec.Cmd) (seconds, megabytes float64, err error) {
	var stderr strings.Builder
	c.Stderr = &stderr
	begin := time.Now()
	if err := c.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	// go: it ends with the command
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, stderr.String())
			}
			return time.Since(begin).Seconds(), megabytes, err
		case <-time.After(10 * time.Millisecond):
			megabytes = max(megabytes, memoryOf(c.Process.Pid)["VmHWM"])
		}
	}
}

// writeMemories writes n memories in conversations of forty, and returns their texts and queries of
// some of their words.
func writeMemories(lines, questions string, n int) (texts, asked []string, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	words := rand.NewZipf(random, 1.1, 4, 40_000)
	file, err := os.Create(lines)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	encoder := json.NewEncoder(out)
	begin := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range n {
		var text []string
		for range 6 + random.IntN(26) {
			if random.IntN(5) < 2 {
				text = append(text, small[random.IntN(len(small))])
			} else {
				text = append(text, pseudoWord(words.Uint64()))
			}
		}
		if err := encoder.Encode(map[string]any{
			"text": strings.Join(text, " "), "scope": "shared", "subject": []string{"Anna", "Ben"}[i%2], "ref": fmt.Sprint("r", i),
			"conversation": fmt.Sprint("c", i/40), "seq": i, "observed_at": begin.Add(time.Duration(i) * 3 * time.Minute).Format(time.RFC3339),
		}); err != nil {
			return nil, nil, err
		}
		texts = append(texts, strings.Join(text, " "))
		if i%max(1, n/400) == 0 {
			random.Shuffle(len(text), func(a, b int) { text[a], text[b] = text[b], text[a] })
			asked = append(asked, "When did Anna "+strings.Join(text[:min(len(text), 3+random.IntN(5))], " ")+"?")
		}
	}
	if err := out.Flush(); err != nil {
		return nil, nil, err
	}
	var q strings.Builder
	for i, text := range asked {
		fmt.Fprintf(&q, `{"id":%d,"query":%q,"scope":"shared"}`+"\n", i, text)
	}
	return texts, asked, store.WriteFile(questions, []byte(q.String()))
}

// small are words that occur in every text.
var small = strings.Fields("the of and to in a is that it was for on are with they at be this have from or had by but what we can when there your how she")

// pseudoWord returns the word of a frequency rank; frequent words are short.
func pseudoWord(rank uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n := rank + 7; n > 0; n /= 70 {
		b.WriteByte(consonants[n%14])
		b.WriteByte(vowels[n/14%5])
	}
	return b.String()
}
