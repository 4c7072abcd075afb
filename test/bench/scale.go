package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/store"
)

// scale measures commands on very many memories, and how long a concurrent writer has to wait.
func scale(ctx context.Context, bot string, sizes []int) ([]figure, error) {
	var all []figure
	for _, n := range sizes {
		f, err := scaleOf(ctx, bot, n)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	return all, nil
}

func scaleOf(ctx context.Context, bot string, n int) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config, lines := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "memories.jsonl")
	if err := store.WriteFile(config, []byte("data: ./data\nmemory: {backend: fts5}\nllm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n")); err != nil {
		return nil, err
	}
	if _, err := writeMemories(lines, filepath.Join(dir, "questions.jsonl"), n); err != nil {
		return nil, err
	}
	var imported struct{ Batch string }
	var out []figure
	for _, step := range []struct {
		what    string
		aim     float64 // seconds, of 20,000
		waiting bool
		args    func() []string
	}{
		{"import", 20, true, func() []string { return []string{"import", "--json", lines} }},
		{"the same import again", 0, true, func() []string { return []string{"import", "--json", lines} }},
		{"reindex", 0, false, func() []string { return []string{"reindex", "--json"} }},
		{"undo of the import", 0, true, func() []string { return []string{"undo", "--json", imported.Batch} }},
	} {
		r, err := runBesideWriter(ctx, filepath.Join(dir, "data"), exec.CommandContext(ctx, bot, append([]string{"-c", config, "memory"}, step.args()...)...))
		if err != nil {
			return nil, err
		}
		if imported.Batch == "" {
			if err := json.Unmarshal(r.out, &imported); err != nil {
				return nil, fmt.Errorf("bench: %s: %w", step.what, err)
			}
		}
		name := fmt.Sprintf("%d memories: %s", n, step.what)
		if n != 20_000 {
			step.aim = 0
		}
		out = append(out, figure{name, r.took.Seconds(), "s", step.aim}, figure{name + ", CPU", r.cpu.Seconds(), "s", 0}, figure{name + ", memory", r.megabytes, "MB", 200})
		if step.waiting {
			out = append(out, figure{name + ", longest wait of a writer", float64(r.wait.Milliseconds()), "ms", 60_000})
		}
	}
	return out, nil
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
		r.megabytes = max(r.megabytes, highWater(cmd.Process.Pid))
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
