// Bench measures Reverie's speed and size, each figure beside the plain way to do as much, so that the
// ratio of the two means something on any machine. `make bench` runs it; GROUP=NAME runs one group.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// figure is a measured number, its limit, and the same of the plain way.
type figure struct {
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Limit    float64 `json:"limit,omitempty"`    // on two processors that do nothing else; 0 = none
	Baseline float64 `json:"baseline,omitempty"` // of the plain way, in the same unit; 0 = none was measured
	Ratio    float64 `json:"ratio,omitempty"`    // Value / Baseline
	Plain    string  `json:"plain,omitempty"`    // the plain way
}

// bench measures a group.
type bench struct {
	bot, home string // the built bot; the folder of the built homeserver
	put       func(...figure)
}

type group struct {
	name    string
	measure func(b *bench, ctx context.Context, dir string) error // dir is an empty folder
}

var groups = []group{
	{"text", (*bench).texts},
	{"assembly", (*bench).assemblies},
	{"turn", (*bench).turns},
	{"search", (*bench).search},
	{"messages", (*bench).messages},
	{"memories", (*bench).memories},
	{"dream", (*bench).dreams},
	{"tasks", (*bench).tasks},
	{"commands", (*bench).commands},
	{"start", (*bench).starts},
	{"commit", (*bench).commits},
	{"delivery", (*bench).delivery},
	{"scale", (*bench).scale},
	{"inspector", (*bench).inspector},
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON, after all is measured")
	bot := flag.String("bot", "bin/bot", "the built bot")
	home := flag.String("homeserver-bin", "bin/homeserver", "the folder of the built homeserver")
	profile := flag.String("profile", "", "write a CPU profile of this process to a file")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "bench [flags] [GROUP …]\n\ngroups:")
		for _, g := range groups {
			fmt.Fprint(flag.CommandLine.Output(), " ", g.name)
		}
		fmt.Fprintln(flag.CommandLine.Output(), "\n\nflags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(context.Background(), os.Stdout, &bench{bot: *bot, home: *home}, flag.Args(), *asJSON, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, b *bench, names []string, asJSON bool, profile string) error {
	for _, name := range names {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == name }) {
			return fmt.Errorf("there is no group %q; -h lists them", name)
		}
	}
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	all := []figure{}
	b.put = func(some ...figure) {
		for _, f := range some {
			if f.Baseline > 0 {
				f.Ratio = f.Value / f.Baseline
			}
			if all = append(all, f); !asJSON {
				fmt.Fprintln(w, f.line())
			}
		}
	}
	if !asJSON {
		fmt.Fprintf(w, "%-70s %11s %-4s %9s %11s %8s  %s\n", "", "value", "", "limit", "baseline", "ratio", "the plain way")
	}
	for _, g := range groups {
		if len(names) > 0 && !slices.Contains(names, g.name) {
			continue
		}
		if err := inFolder(func(dir string) error { return g.measure(b, ctx, dir) }); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	if !asJSON {
		return nil
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(all)
}

func (f figure) line() string {
	number := func(format string, x float64) string {
		if x == 0 {
			return "–"
		}
		return fmt.Sprintf(format, x)
	}
	return strings.TrimRight(fmt.Sprintf("%-70s %11.3f %-4s %9s %11s %8s  %s",
		f.What, f.Value, f.Unit, number("%.4g", f.Limit), number("%.3f", f.Baseline), number("%.2f", f.Ratio), f.Plain), " ")
}

// beside does both in turn, n times each, so that other work on the machine slows both. It returns the
// sorted milliseconds of each.
func beside(n int, do, plain func(i int) error) (ours, theirs []float64, err error) {
	for i := range n {
		for _, way := range []struct {
			do   func(int) error
			took *[]float64
		}{{do, &ours}, {plain, &theirs}} {
			if way.do == nil {
				continue
			}
			began := time.Now()
			if err := way.do(i); err != nil {
				return nil, nil, err
			}
			*way.took = append(*way.took, milliseconds(time.Since(began)))
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	return ours, theirs, nil
}

// percentiles returns the median and the 99th percentile of sorted milliseconds, with their limits.
func percentiles(name string, half, most float64, ours []float64, plain string, theirs []float64) []figure {
	of := func(what string, percent int, limit float64) figure {
		f := figure{What: name + ", " + what, Value: ours[len(ours)*percent/100], Unit: "ms", Limit: limit}
		if len(theirs) > 0 {
			f.Plain, f.Baseline = plain, theirs[len(theirs)*percent/100]
		}
		return f
	}
	return []figure{of("p50", 50, half), of("p99", 99, most)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// botIn returns a command of the bot with a new data folder in dir.
func (b *bench) botIn(ctx context.Context, dir string, config string) (func(args ...string) *exec.Cmd, error) {
	file := filepath.Join(dir, "config.yaml")
	return func(args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, b.bot, append([]string{"-c", file}, args...)...)
	}, os.WriteFile(file, []byte("data: ./data\n"+config), 0o600)
}

// inFolder calls do with a temporary folder.
func inFolder(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return do(dir)
}
