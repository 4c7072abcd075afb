// Command manners measures whether style and persona hold in long talks: 12 scripted talks of 100
// turns, with 5 personas and 3 windows, and a model that forgets how to speak unless it is reminded;
// see `make manners`. The session, its prompts, compactions and notes are the real ones.
//
// The model is a server for the chat protocol. It knows the style only from the rules that it reads in
// the request, in the program's own words: the system text and the notes. It understands a rule by its
// key words, as a model would, not by the whole sentence. What it does not read, or forgets, it does by
// habit: it rambles, uses two emoji, addresses the person in the other way, answers in the person's
// language, and says the phrase that it was asked to do without.
//
// The drift: a rule that was last said d tokens before the answer is broken with the probability
// 1 - exp(-(d/3000)²), and at least in one answer of a hundred. Instructions lose their hold with the
// length of what follows them, as attention spreads over more and more text; models drifted clearly
// within eight rounds of talk (Li et al. 2024, arXiv:2402.10962). Eight rounds are some 1500 tokens here,
// and there a rule is broken in more than one answer of five. A note that only points back ("as described
// above") brings back the rules above it, but they must be looked up: they count as if said 500 tokens
// before it. The language of the newest message reminds of itself. The same talk has
// the same chances each time it is run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sync/errgroup"

	"reverie/internal/store/storetest"
)

// What must hold, in percent of checks.
const (
	aim       = 95
	reuse     = 98
	noNotes   = 85 // at most this much is kept without notes
	noStyle   = 60 // and without rules of style
	noteLimit = 60 // tokens
)

var windows = []int{4096, 16384, 131072}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := flag.String("talk", "", "only the talk of this name")
	each := flag.Bool("v", false, "print a line for each talk")
	flag.Parse()
	storetest.DoNotWait()
	if err := measure(ctx, *only, *each); err != nil {
		fmt.Fprintln(os.Stderr, "manners:", err)
		os.Exit(1)
	}
}

// measure plays all talks, prints what was kept in their last turns, and fails if that is not enough.
func measure(ctx context.Context, only string, each bool) error {
	var all []run
	for _, persona := range slices.Sorted(maps.Keys(ofPersona)) {
		for i := range talks {
			if only != "" && talks[i].name != only {
				continue
			}
			for _, window := range windows {
				all = append(all, run{talk: &talks[i], persona: persona, window: window, turns: turns})
			}
			if persona != "professional" {
				continue
			}
			for _, without := range []string{"notes", "style"} {
				all = append(all, run{talk: &talks[i], persona: persona, window: windows[2], leaveOut: without, turns: turns})
			}
		}
	}
	results, err := playAll(ctx, all)
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %8s %-8s %7s %8s %8s %8s %8s %8s %8s %8s %8s %6s %9s %6s %8s\n", "persona", "window", "without", "kept %",
		"length", "emoji", "address", "name", "language", "phrase", "turn 100", "reused %", "all %", "summaries", "notes", "longest")
	var faults []string
	for _, without := range []string{"", "notes", "style"} {
		for _, persona := range slices.Sorted(maps.Keys(ofPersona)) {
			for _, window := range windows {
				of := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
					return r.leaveOut != without || r.persona != persona || r.window != window
				})
				if len(of) > 0 {
					fmt.Println(line(persona, window, of))
					faults = append(faults, faultsOf(of)...)
				}
			}
		}
	}
	whole := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.leaveOut != "" })
	fmt.Println(line("all", 0, whole))
	if atTheEnd(whole) < aim {
		faults = append(faults, fmt.Sprintf("%.1f %% are kept in turn %d", atTheEnd(whole), turns))
	}
	if each {
		for _, r := range results {
			fmt.Println(r.talk.name, line(r.persona, r.window, []result{r}))
		}
	}
	for _, f := range faults {
		fmt.Println("  MISSED:", f)
	}
	if len(faults) > 0 {
		return errors.New("style does not hold")
	}
	return nil
}

// playAll plays runs, two at a time.
func playAll(ctx context.Context, all []run) ([]result, error) {
	results := make([]result, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, r := range all {
		g.Go(func() (err error) {
			results[i], err = r.play(ctx)
			return err
		})
	}
	return results, g.Wait()
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// kept returns the percentage of checks that runs kept in their last turns; field "" = all.
func kept(of []result, field string) float64 {
	asked, kept := 0, 0
	for _, r := range of {
		for f := range r.asked {
			if field == "" || f == field {
				asked, kept = asked+r.asked[f], kept+r.kept[f]
			}
		}
	}
	return percent(kept, asked)
}

// mean returns the mean of a figure of runs.
func mean(of []result, figure func(result) float64) (sum float64) {
	for _, r := range of {
		sum += figure(r)
	}
	return sum / float64(len(of))
}

func atTheEnd(of []result) float64 {
	asked, kept := 0, 0
	for _, r := range of {
		asked, kept = asked+r.end[0], kept+r.end[1]
	}
	return percent(kept, asked)
}

func line(persona string, window int, of []result) string {
	s := fmt.Sprintf("%-14s %8d %-8s %7.1f", persona, window, of[0].leaveOut, kept(of, ""))
	for _, f := range fields {
		s += fmt.Sprintf(" %8.1f", kept(of, f))
	}
	longest := 0
	for _, r := range of {
		longest = max(longest, r.longest)
	}
	return s + fmt.Sprintf(" %8.1f %8.2f %6.2f %9.1f %6.1f %8d", atTheEnd(of), 100*mean(of, func(r result) float64 { return r.within }),
		100*mean(of, func(r result) float64 { return r.reused }), mean(of, func(r result) float64 { return float64(r.summaries) }),
		mean(of, func(r result) float64 { return float64(r.notes) }), longest)
}

// faultsOf are the promises that runs of one kind break.
func faultsOf(of []result) (out []string) {
	what := fmt.Sprintf("%s, window %d", of[0].persona, of[0].window)
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			out = append(out, what+": "+fmt.Sprintf(format, args...))
		}
	}
	switch of[0].leaveOut {
	case "notes":
		say(kept(of, "") > noNotes, "%.1f %% are kept without notes: the model does not drift, this shows nothing", kept(of, ""))
		return out
	case "style":
		say(kept(of, "") > noStyle, "%.1f %% are kept without rules of style: this shows nothing", kept(of, ""))
		return out
	}
	say(kept(of, "") < aim, "%.1f %% of the style are kept", kept(of, ""))
	for _, f := range fields {
		say(kept(of, f) < aim-5 && mean(of, func(r result) float64 { return float64(r.asked[f]) }) > 0, "%s: %.1f %% are kept", f, kept(of, f))
	}
	for _, r := range of {
		say(100*r.within < reuse, "%s: %.2f %% of a request are reused", r.talk.name, 100*r.within)
		say(r.longest > noteLimit, "%s: a note of %d tokens", r.talk.name, r.longest)
		for _, f := range r.faults {
			say(true, "%s: %s", r.talk.name, f)
		}
	}
	return out
}
