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
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/store"
)

// memories measures import and search at several sizes, all in one scope, the slowest case. The word
// frequencies are those of a natural language.
func memories(ctx context.Context, bot string, sizes []int) ([]figure, error) {
	var all []figure
	for _, n := range sizes {
		f, err := memoriesOf(ctx, bot, n)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	return all, nil
}

// aims are limits of the 99th percentile, in milliseconds.
var aims = map[int]float64{10_000: 10, 20_000: 15}

func memoriesOf(ctx context.Context, bot string, n int) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "config.yaml")
	if err := store.WriteFile(config, []byte("data: ./data\nmemory: {backend: fts5}\nllm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n")); err != nil {
		return nil, err
	}
	lines, questions := filepath.Join(dir, "memories.jsonl"), filepath.Join(dir, "questions.jsonl")
	asked, err := writeMemories(lines, questions, n)
	if err != nil {
		return nil, err
	}
	took, imported, err := timed(ctx, bot, "-c", config, "memory", "import", lines)
	if err != nil {
		return nil, err
	}
	_, searched, err := timed(ctx, bot, "-c", config, "memory", "search", "--batch", questions)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, "data", "bot.db"))
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "data", "bot.db"), reverie.Migrations)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	index := search.Open(db)
	times, err := queryTimes(ctx, index, asked)
	if err != nil {
		return nil, err
	}
	near, err := meaning(ctx, db, index, asked, n)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d memories: ", n)
	importAim := 0.0
	if n == 20_000 {
		importAim = 20
	}
	return append([]figure{
		{name + "import", took, "s", importAim},
		{name + "import, memory", imported, "MB", 0},
		{name + "question, half are faster", times[len(times)/2], "ms", 0},
		{name + "question, 99 of 100 are faster", times[len(times)*99/100], "ms", aims[n]},
		{name + "questions, memory", searched, "MB", 200},
		{name + "bot.db", float64(info.Size()) / 1e6, "MB", 0},
	}, near...), nil
}

// queryTimes queries index and returns the milliseconds of each query, sorted.
func queryTimes(ctx context.Context, index *search.FTS, asked []string) ([]float64, error) {
	var times []float64
	for _, text := range asked {
		begin := time.Now()
		if _, err := index.Search(ctx, memory.Query{Text: text, Scopes: []memory.Scope{memory.Shared}}); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(begin).Microseconds())/1000)
	}
	slices.Sort(times)
	return times, nil
}

// timed runs the bot and returns its seconds and megabytes.
func timed(ctx context.Context, bot string, args ...string) (seconds, megabytes float64, err error) {
	c := exec.CommandContext(ctx, bot, args...)
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
				err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, stderr.String())
			}
			return time.Since(begin).Seconds(), megabytes, err
		case <-time.After(10 * time.Millisecond):
			megabytes = max(megabytes, highWater(c.Process.Pid))
		}
	}
}

// highWater returns the peak memory of a running process in megabytes, or 0 if unknown. The value
// after its end is useless: there a child starts with the peak of its parent.
func highWater(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kB float64
	_, _ = fmt.Sscan(after, &kB)
	return kB / 1000
}

// writeMemories writes n memories in conversations of forty, and returns queries of some of their
// words.
func writeMemories(lines, questions string, n int) (asked []string, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	words := rand.NewZipf(random, 1.1, 4, 40_000)
	file, err := os.Create(lines)
	if err != nil {
		return nil, err
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
			return nil, err
		}
		if i%max(1, n/400) == 0 {
			random.Shuffle(len(text), func(a, b int) { text[a], text[b] = text[b], text[a] })
			asked = append(asked, "When did Anna "+strings.Join(text[:min(len(text), 3+random.IntN(5))], " ")+"?")
		}
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	var q strings.Builder
	for i, text := range asked {
		fmt.Fprintf(&q, `{"id":%d,"query":%q,"scope":"shared"}`+"\n", i, text)
	}
	return asked, store.WriteFile(questions, []byte(q.String()))
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
