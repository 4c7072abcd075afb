package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// abilities are the kinds of questions, as they are reported.
var abilities = []string{"extraction", "update", "contradiction", "order", "summary", "multi", "temporal", "preference", "instruction"}

// table collects results of one backend.
type table struct {
	name  string
	rooms [][]*result // in the order of rooms
}

func (t *table) add(room int, r *result) {
	for len(t.rooms) <= room {
		t.rooms = append(t.rooms, nil)
	}
	t.rooms[room] = append(t.rooms[room], r)
}

// share is the mean share of the evidence in the block, and the share of questions with all of it.
func share(all []*result) (some, whole float64) {
	n := 0.0
	for _, r := range all {
		if len(r.present) == 0 {
			continue
		}
		there := 0.0
		for _, p := range r.present {
			if p {
				there++
			}
		}
		some += there / float64(len(r.present))
		if n++; there == float64(len(r.present)) {
			whole++
		}
	}
	return 100 * some / n, 100 * whole / n
}

// silent is the share of questions with an empty block, in percent.
func silent(all []*result) float64 {
	n := 0
	for _, r := range all {
		if r.silent {
			n++
		}
	}
	return 100 * float64(n) / float64(len(all))
}

func where(all []*result, keep func(*result) bool) []*result {
	return slices.DeleteFunc(slices.Clone(all), func(r *result) bool { return !keep(r) })
}

// print prints the table: share of the evidence / share of the questions with all of it.
func (t *table) print() {
	fmt.Printf("\n%s: evidence in the block %% (questions with all of it %%)\n%-22s", t.name, "")
	for _, r := range rooms {
		for _, h := range halves {
			fmt.Printf(" %14s", fmt.Sprintf("%d %s", r.tokens, h))
		}
	}
	fmt.Println()
	row := func(name string, figure func([]*result) string, keep func(*result) bool) {
		fmt.Printf("%-22s", name)
		for _, all := range t.rooms {
			for _, h := range halves {
				if part := where(all, func(r *result) bool { return r.Half == h && keep(r) }); len(part) > 0 {
					fmt.Printf(" %14s", figure(part))
				} else {
					fmt.Printf(" %14s", "-")
				}
			}
		}
		fmt.Println()
	}
	evidence := func(all []*result) string {
		some, whole := share(all)
		return fmt.Sprintf("%.1f (%.0f)", some, whole)
	}
	empty := func(all []*result) string { return fmt.Sprintf("%.1f", silent(all)) }
	answerable := func(r *result) bool { return len(r.facts) > 0 }
	for _, a := range abilities {
		row(a, evidence, func(r *result) bool { return r.Kind == a })
		for _, sub := range t.subs(a) {
			row("  "+sub, evidence, func(r *result) bool { return r.Kind == a && r.Sub == sub })
		}
		if a == "update" {
			row("  newest value", func(all []*result) string { return last(all, 1) }, func(r *result) bool { return r.Kind == a })
		}
	}
	row("all nine", func(all []*result) string {
		sum := 0.0
		for _, a := range abilities {
			some, _ := share(where(all, func(r *result) bool { return r.Kind == a }))
			sum += some
		}
		return fmt.Sprintf("%.1f", sum/float64(len(abilities)))
	}, answerable)
	for _, l := range []string{"en", "de", "fr", "es", "ja"} {
		row("  questions in "+l, evidence, func(r *result) bool { return answerable(r) && r.Language == l })
	}
	fmt.Println("empty block %")
	row("  abstention, far", empty, func(r *result) bool { return r.Kind == "abstention" && r.Sub == "far" })
	row("  abstention, near", empty, func(r *result) bool { return r.Kind == "abstention" && r.Sub == "near" })
	row("  small talk", empty, func(r *result) bool { return r.Kind == "smalltalk" })
	row("  answerable", empty, answerable)
	row("  wishes", empty, func(r *result) bool { return r.Kind == "preference" || r.Kind == "instruction" })
	row("tokens, mean", func(all []*result) string {
		sum := 0
		for _, r := range all {
			sum += r.tokens
		}
		return fmt.Sprint(sum / len(all))
	}, answerable)
	row("search p50/p99, ms", func(all []*result) string {
		var took []time.Duration
		for _, r := range all {
			took = append(took, r.took)
		}
		slices.Sort(took)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		return fmt.Sprintf("%.1f/%.1f", ms(took[len(took)/2]), ms(took[len(took)*99/100]))
	}, func(*result) bool { return true })
}

// last is the share of questions whose fact number i is in the block.
func last(all []*result, i int) string {
	n := 0
	for _, r := range all {
		if r.present[i] {
			n++
		}
	}
	return fmt.Sprintf("%.1f", 100*float64(n)/float64(len(all)))
}

// subs lists the parts of an ability.
func (t *table) subs(ability string) (all []string) {
	for _, r := range t.rooms[0] {
		if r.Kind == ability && r.Sub != "" && !slices.Contains(all, r.Sub) {
			all = append(all, r.Sub)
		}
	}
	slices.Sort(all)
	return all
}

// writeMissed writes a line for each piece of evidence that is not in the block.
func writeMissed(to io.Writer, name string, size room, r *result) {
	for i, f := range r.facts {
		if !r.present[i] {
			fmt.Fprintln(to, strings.Join([]string{name, fmt.Sprint(size.tokens), r.Half, r.Kind, r.Sub, r.Language, r.why[i], fmt.Sprint(r.ranks[i]),
				r.ID, r.Query, f.Ref, f.Text}, "\t"))
		}
	}
}
