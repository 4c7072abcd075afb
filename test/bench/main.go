// Bench measures Reverie's speed and size: the time to assemble a prompt, the time from start to the
// first sync, and memory and disk use. `make bench` runs it; --json prints JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/prompt"
	"reverie/internal/store"
)

// figure is a measured number and its aim.
type figure struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Aim   float64 `json:"aim,omitempty"` // upper limit; 0 = none
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	bot := flag.String("bot", "bin/bot", "the built bot")
	home := flag.String("homeserver-bin", "bin/homeserver", "the folder of the built homeserver")
	only := flag.Bool("memories", false, "measure memories only")
	dreams := flag.Bool("dreams", false, "measure dreams only")
	prompts := flag.Bool("assembly", false, "measure how prompts are assembled only")
	start := flag.Bool("start", false, "measure start and idle memory of the built bot only")
	programs := flag.Bool("commands", false, "measure how sandboxed commands start only")
	pages := flag.Bool("inspector", false, "measure the pages of the inspector only")
	flag.Parse()
	counts := []int{10_000, 20_000}
	ctx := context.Background()
	first, rest := dreaming, !*dreams && !*prompts
	if *prompts {
		first = assemblies
	}
	if *start {
		first, rest = func(ctx context.Context) ([]figure, error) { return process(ctx, *bot, *home) }, false
	}
	if *programs {
		first, rest = commands, false
	}
	if *pages {
		first, rest = func(ctx context.Context) ([]figure, error) { return inspector(ctx, *bot) }, false
	}
	figures, err := first(ctx)
	if err == nil && rest {
		var more []figure
		more, err = memories(ctx, *bot, counts)
		figures = append(figures, more...)
	}
	if err == nil && rest {
		var more []figure
		more, err = scale(ctx, *bot, counts[1:])
		figures = append(figures, more...)
	}
	if err == nil && rest {
		var more []figure
		more, err = inspector(ctx, *bot)
		figures = append(figures, more...)
	}
	if err == nil && rest && !*only {
		var more []figure
		more, err = measure(ctx, *bot, *home)
		figures = append(figures, more...)
	}
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

// assemblies measures the assembler at each size.
func assemblies(ctx context.Context) ([]figure, error) {
	var all []figure
	for _, layout := range []prompt.Layout{prompt.Stable, prompt.Classic} {
		for _, size := range sizes {
			f, err := assembly(ctx, layout, size)
			if err != nil {
				return nil, err
			}
			all = append(all, f...)
		}
	}
	f, err := recalling(ctx)
	return append(all, f...), err
}

func measure(ctx context.Context, bot, home string) ([]figure, error) {
	var all []figure
	for _, more := range []func(context.Context) ([]figure, error){assemblies, tasks, commands} {
		f, err := more(ctx)
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
	return append(append(all, f...), figure{"binary", float64(info.Size()) / 1e6, "MB", 45}), nil
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
		if i > 0 { // the first start logs in and creates keys
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

// firstSync is the log text after the first sync.
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
