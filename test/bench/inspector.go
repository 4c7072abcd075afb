package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/store"
)

// inspector measures the pages of `bot web` with 10,000 memories and 10,000 messages.
func inspector(ctx context.Context, bot string) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config, lines := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "memories.jsonl")
	if err := store.WriteFile(config, []byte("data: ./data\nmemory: {backend: fts5}\nllm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n")); err != nil {
		return nil, err
	}
	if _, err := writeMemories(lines, filepath.Join(dir, "questions.jsonl"), 10_000); err != nil {
		return nil, err
	}
	written, err := os.ReadFile(lines)
	if err != nil {
		return nil, err
	}
	written = regexp.MustCompile(`"conversation":"c\d+",`).ReplaceAll(written, nil) // memories, not lines of a conversation
	if err := store.WriteFile(lines, regexp.MustCompile(`"seq":\d+,`).ReplaceAll(written, nil)); err != nil {
		return nil, err
	}
	if _, _, err := timed(ctx, bot, "-c", config, "memory", "import", lines); err != nil {
		return nil, err
	}
	if err := writeMessages(ctx, filepath.Join(dir, "data", "bot.db")); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := exec.CommandContext(ctx, bot, "-c", config, "web")
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() { stop(); _ = c.Wait() }()
	base, code := "", ""
	for r := bufio.NewScanner(out); code == "" && r.Scan(); {
		if found := regexp.MustCompile(`(http://.*)/login#(\w+)`).FindStringSubmatch(r.Text()); found != nil {
			base, code = found[1], found[2]
		}
	}
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	if _, err := client.PostForm(base+"/login", url.Values{"code": {code}}); err != nil || code == "" {
		return nil, errors.Join(err, errors.New("no link, or no login"))
	}
	var figures []figure
	for _, page := range []string{"/", "/rooms", "/rooms/terminal", "/turns/5001", "/memories", "/memories?q=water", "/dreams", "/tasks", "/approvals", "/usage", "/docs/manual.md"} {
		took := make([]float64, 21)
		for i := range took {
			begin := time.Now()
			answer, err := client.Get(base + page)
			if err != nil {
				return nil, err
			}
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK || strings.HasSuffix(answer.Request.URL.Path, "/login") {
				return nil, fmt.Errorf("%s: %s, %w", page, answer.Status, err)
			}
			took[i] = float64(time.Since(begin).Microseconds()) / 1000
		}
		slices.Sort(took)
		figures = append(figures, figure{"inspector, 10,000 memories: " + page, took[len(took)/2], "ms", 100})
	}
	return append(figures, figure{"inspector, memory", highWater(c.Process.Pid), "MB", 0}), nil
}

// writeMessages adds 5,000 turns to the conversation of `bot chat`.
func writeMessages(ctx context.Context, path string) error {
	db, err := store.Open(ctx, path, reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	return store.InTx(ctx, db, func(tx *sql.Tx) error {
		err := store.Exec(ctx, tx, `INSERT INTO room (id, readers) VALUES ('terminal', 'private:owner')`)
		for i := 0; i < 10_000 && err == nil; i++ {
			role := []string{"user", "assistant"}[i%2]
			err = store.Exec(ctx, tx, `INSERT INTO message (room, conversation, role, event_id, sender, text, at, readers) VALUES ('terminal', 1, ?, ?, ?, ?, ?, 'private:owner')`,
				role, fmt.Sprint("$", i), "owner"[:5*(1-i%2)], strings.Repeat("what was said then ", 20), time.Now().Add(time.Duration(i-10_000)*time.Minute).UnixMilli())
		}
		return err
	})
}
