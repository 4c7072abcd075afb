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
	"path/filepath"
	"regexp"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/store"
)

// inspector measures the pages of `bot web` with 10,000 memories and 10,000 messages. The plain way is the login page,
// which reads nothing.
func (b *bench) inspector(ctx context.Context, dir string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	bot, err := b.botIn(ctx, dir, "memory: {backend: fts5}\nllm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n")
	if err != nil {
		return err
	}
	if err := writeEntries(filepath.Join(dir, "memories.jsonl"), dir); err != nil {
		return err
	}
	if _, _, err := timed(bot("memory", "import", filepath.Join(dir, "memories.jsonl"))); err != nil {
		return err
	}
	if err := writeMessages(ctx, filepath.Join(dir, "data", "bot.db")); err != nil {
		return err
	}
	c := bot("web")
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
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
		return errors.Join(err, errors.New("no link, or no login"))
	}
	get := func(path string) error {
		answer, err := client.Get(base + path)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Request.URL.RequestURI() != path {
			return fmt.Errorf("%s: %s at %s", path, answer.Status, answer.Request.URL)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	for _, path := range []string{"/", "/rooms", "/rooms/terminal", "/turns/5001", "/memories", "/memories?q=water", "/dreams", "/tasks", "/approvals", "/usage", "/docs/manual.md"} {
		ours, theirs, err := beside(21, func(int) error { return get(path) }, func(int) error { return get("/login") })
		if err != nil {
			return err
		}
		b.put(percentiles("inspector, 10,000 memories: "+path, 100, 0, ours, "the login page", theirs)[0])
	}
	b.put(figure{What: "inspector, peak memory", Value: memoryOf(c.Process.Pid)["VmHWM"], Unit: "MB"})
	return nil
}

// writeEntries writes 10,000 memories that are no lines of a conversation.
func writeEntries(path, dir string) error {
	if _, _, err := writeMemories(path, filepath.Join(dir, "questions.jsonl"), 10_000); err != nil {
		return err
	}
	lines, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return store.WriteFile(path, regexp.MustCompile(`"(conversation":"c|seq":)\d+"?,`).ReplaceAll(lines, nil))
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
