package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"reverie/internal/matrix/homeserver"
)

// starts measures the built bot against a real homeserver.
func (b *bench) starts(ctx context.Context, dir string) error {
	info, err := os.Stat(b.bot)
	if err != nil {
		return err
	}
	b.put(figure{What: "binary", Value: float64(info.Size()) / 1e6, Unit: "MB", Limit: 48})
	home, err := homeserver.Start(ctx, homeserver.Config{BinDir: b.home, Dir: filepath.Join(dir, "homeserver")})
	if err != nil {
		return err
	}
	defer func() { _ = home.Stop() }()
	user, err := home.Register(ctx, "reverie", "bench-password")
	if err != nil {
		return err
	}
	bot, err := b.botIn(ctx, dir, fmt.Sprintf("matrix: {homeserver: %q, user: %q, password: bench-password, owners: [\"@you:localhost\"]}\nmetrics: {listen: \"127.0.0.1:0\"}\n%s", home.URL, user, rehearsal))
	if err != nil {
		return err
	}
	const runs = 7
	var starts, plain []float64
	for i := range runs + 1 {
		took, _, err := startOnce(bot("run"), 0, nil)
		if err != nil {
			return err
		}
		if i == 0 { // it logged in and made keys
			continue
		}
		_, version, err := beside(1, nil, func(int) error { return bot("version").Run() })
		if err != nil {
			return err
		}
		starts, plain = append(starts, took), append(plain, version...)
	}
	slices.Sort(starts)
	slices.Sort(plain)
	b.put(figure{What: "start to first sync, median of 7", Value: starts[runs/2], Unit: "ms", Limit: 300, Baseline: plain[runs/2], Plain: "bot version"},
		figure{What: "start to first sync, slowest of 7", Value: starts[runs-1], Unit: "ms", Baseline: plain[runs-1], Plain: "bot version"})
	var scrapes []float64
	_, memory, err := startOnce(bot("run"), 5*time.Second, func(log string) (err error) {
		scrapes, _, err = beside(50, func(int) error { return get(ctx, metricsURL.FindString(log)) }, nil)
		return err
	})
	if err != nil {
		return err
	}
	b.put(figure{What: "idle memory (RSS), 5 s after the start", Value: memory["VmRSS"], Unit: "MB", Limit: 40},
		figure{What: "… of it code and constants that were read from the binary", Value: memory["RssFile"], Unit: "MB"},
		figure{What: "metrics, median of 50 requests", Value: scrapes[len(scrapes)/2], Unit: "ms", Limit: 5})
	return nil
}

// rehearsal is the configuration of a model without a server.
const rehearsal = "llm:\n  models: [{name: r, base_url: \"rehearsal:\", model: rehearsal}]\n"

// metricsURL is where the metrics are, as the log says.
var metricsURL = regexp.MustCompile(`http://\S+/metrics`)

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// startOnce starts the bot, waits for its first sync and ends it. After idle it reads the bot's memory, then it
// calls visit with the log so far.
func startOnce(cmd *exec.Cmd, idle time.Duration, visit func(log string) error) (ms float64, memory map[string]float64, err error) {
	log, err := cmd.StderrPipe()
	if err != nil {
		return 0, nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, log)
		_ = cmd.Wait()
	}()
	var seen strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "first sync") {
			ms = milliseconds(time.Since(began))
			time.Sleep(idle)
			if memory = memoryOf(cmd.Process.Pid); visit != nil {
				err = visit(seen.String())
			}
			return ms, memory, err
		}
	}
	return 0, nil, errors.New("the bot ended before its first sync:\n" + seen.String())
}

// memoryOf returns the lines of a running process's status about memory in megabytes. VmHWM is the
// peak; after the end it is useless: there a child starts with the peak of its parent.
func memoryOf(pid int) map[string]float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		var kB float64
		if n, _ := fmt.Sscanf(value, "%f kB", &kB); n == 1 {
			out[name] = kB / 1000
		}
	}
	return out
}

// processorTime returns the seconds that a process has kept a processor busy, from /proc/PID/stat (proc(5)).
func processorTime(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var ticks, of float64
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime, in hundredths of a second
		_, _ = fmt.Sscan(field, &of)
		ticks += of
	}
	return ticks / 100
}
