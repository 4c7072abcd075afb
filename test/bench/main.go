// Bench measures what Reverie promises in figures: how long the prompt takes
// to assemble, how soon the bot is in its rooms after a start, and how much
// memory and disk it wants. `make bench` runs it; --json prints JSON.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/tool"
)

// figure is one measured number beside what it aims at.
type figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Aim   float64 `json:"aim,omitempty"` // stay below; 0 = none
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	bot := flag.String("bot", "bin/bot", "the built bot")
	home := flag.String("homeserver-bin", "bin/homeserver", "the folder of the built homeserver")
	flag.Parse()
	figures, err := measure(context.Background(), *bot, *home)
	if err == nil {
		err = report(os.Stdout, figures, *asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func report(w io.Writer, figures []figure, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(figures)
	}
	for _, f := range figures {
		aim := ""
		if f.Aim > 0 {
			aim = fmt.Sprintf("aim < %g %s", f.Aim, f.Unit)
		}
		fmt.Fprintf(w, "%-52s %10.3f %-6s %s\n", f.What, f.Value, f.Unit, aim)
	}
	return nil
}

func measure(ctx context.Context, bot, home string) ([]figure, error) {
	var all []figure
	for _, layout := range []prompt.Layout{"stable", "classic"} {
		f, err := assembly(ctx, layout)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	f, err := process(ctx, bot, home)
	if err != nil {
		return nil, err
	}
	all = append(all, f...)
	if f, err = delivery(ctx, bot); err != nil {
		return nil, err
	}
	info, err := os.Stat(bot)
	if err != nil {
		return nil, err
	}
	return append(append(all, f...), figure{"binary", float64(info.Size()) / 1e6, "MB", 35}), nil
}

// assembly measures the assembler over 1,000 memories, 50 skills and 50 tasks,
// with warm files, in a conversation of 20 messages.
func assembly(ctx context.Context, layout prompt.Layout) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	a, turn, err := loaded(ctx, dir, layout)
	if err != nil {
		return nil, err
	}
	const n = 2000
	took := make([]float64, n)
	var before, after runtime.MemStats
	for i := range 100 + n {
		if i == 100 {
			runtime.ReadMemStats(&before)
		}
		began := time.Now()
		if _, err := a.Assemble(ctx, turn); err != nil {
			return nil, err
		}
		if i >= 100 {
			took[i-100] = float64(time.Since(began).Nanoseconds()) / 1e6
		}
	}
	runtime.ReadMemStats(&after)
	slices.Sort(took)
	name := func(s string) string { return fmt.Sprintf("assembly, layout %s: %s", layout, s) }
	return []figure{
		{name("p50"), took[n/2], "ms", 0.5},
		{name("p99"), took[n*99/100], "ms", 0},
		{name("allocations"), float64(after.Mallocs-before.Mallocs) / n, "each", 0},
		{name("allocated"), float64(after.TotalAlloc-before.TotalAlloc) / n / 1e3, "kB", 0},
	}, nil
}

func loaded(ctx context.Context, dir string, layout prompt.Layout) (*prompt.Assembler, prompt.Turn, error) {
	fail := func(err error) (*prompt.Assembler, prompt.Turn, error) { return nil, prompt.Turn{}, err }
	const owner = "@you:localhost"
	if _, err := store.WriteDefaults(reverie.Data, dir); err != nil {
		return fail(err)
	}
	var lines bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&lines, "Fact %d: the person likes number %d more than number %d.\n", i, i*7, i*3)
	}
	if err := store.WriteFile(filepath.Join(dir, "MEMORIES.txt"), lines.Bytes()); err != nil {
		return fail(err)
	}
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return fail(err)
	}
	mem, err := memory.Open(memory.Config{Dir: dir, Owner: owner})
	if err != nil {
		return fail(err)
	}
	tasks, skills, past := task.NewStore(db, time.Now), skill.Open(filepath.Join(dir, "skills")), history.NewStore(db)
	for i := range 50 {
		if _, err := tasks.Add(ctx, task.Task{Room: "!r", User: owner, Content: fmt.Sprintf("Do thing number %d", i), Priority: i%10 + 1}); err != nil {
			return fail(err)
		}
		if _, _, err := skills.Add(fmt.Sprintf("skill-%02d", i), "How to do a thing of kind "+fmt.Sprint(i), "Step by step."); err != nil {
			return fail(err)
		}
	}
	tools, err := tool.New(tool.Config{Memory: mem, Tasks: tasks, Skills: skills, Dir: dir, Location: time.UTC})
	if err != nil {
		return fail(err)
	}
	a, err := prompt.New(prompt.Config{Layout: layout, DB: db, Dir: dir, Defaults: reverie.Data, Name: "Reverie", Location: time.UTC,
		SeedLanguage: "en", Memory: mem, Tasks: tasks, Skills: skills, History: past, KnownTools: tools.Names()})
	if err != nil {
		return fail(err)
	}
	turn := prompt.Turn{Room: "!r", User: owner, Scopes: memory.Visible("!r", owner, true), Tools: tools.Names(), Now: time.Now(), Window: 32768, MaxOutput: 2048}
	for i := range 20 {
		m := history.Message{Room: "!r", Role: llm.User, Sender: owner, Text: fmt.Sprintf("Message %d of a conversation.", i), At: time.Now()}
		if i%2 == 1 {
			m.Role, m.Sender = llm.Assistant, ""
		}
		if err := past.Append(ctx, &m); err != nil {
			return fail(err)
		}
		if turn.History, err = past.Load(ctx, "!r"); err != nil {
			return fail(err)
		}
		if i%2 == 1 {
			continue
		}
		p, err := a.Assemble(ctx, turn) // as sent, so that the epoch is a real one
		if err != nil {
			return fail(err)
		}
		if err := a.Commit(ctx, p); err != nil {
			return fail(err)
		}
	}
	turn.History = turn.History[:len(turn.History)-1] // the newest message is a person's
	return a, turn, nil
}

// process measures the built bot against a real homeserver.
func process(ctx context.Context, bot, homeBin string) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	home, err := homeserver.Start(ctx, homeserver.Config{BinDir: homeBin, Dir: filepath.Join(dir, "homeserver")})
	if err != nil {
		return nil, err
	}
	defer func() { _ = home.Stop() }()
	user, err := home.Register(ctx, "reverie", "bench-password")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("data: ./data\nmatrix: {homeserver: %q, user: %q, password: bench-password, owners: [\"@you:localhost\"]}\nllm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n", home.URL, user)
	if err := store.WriteFile(config, []byte(text)); err != nil {
		return nil, err
	}
	const runs = 7
	var starts, memories []float64
	for i := range runs + 1 {
		took, rss, err := oneStart(ctx, bot, config, i == runs)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first start logs in and makes keys
			starts = append(starts, took)
		}
		if rss > 0 {
			memories = append(memories, rss)
		}
	}
	slices.Sort(starts)
	return []figure{
		{"start to first sync, median of 7", starts[runs/2], "ms", 300},
		{"start to first sync, slowest of 7", starts[runs-1], "ms", 0},
		{"idle memory (RSS), 5 s after the start", memories[0], "MB", 40},
	}, nil
}

// firstSync is what the bot logs once its first sync is done.
const firstSync = "first sync"

func oneStart(ctx context.Context, bot, config string, idle bool) (ms, rss float64, err error) {
	cmd := exec.CommandContext(ctx, bot, "run", "--config", config)
	log, err := cmd.StderrPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, log)
		_ = cmd.Wait()
	}()
	var seen strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), firstSync) {
			continue
		}
		ms = float64(time.Since(began).Microseconds()) / 1e3
		if idle {
			time.Sleep(5 * time.Second)
			rss, err = residentMB(cmd.Process.Pid)
		}
		return ms, rss, err
	}
	return 0, 0, errors.New("the bot ended before its first sync:\n" + seen.String())
}

func residentMB(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
			return kb / 1e3, nil
		}
	}
	return 0, errors.New("no VmRSS in /proc")
}
