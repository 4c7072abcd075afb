package prompt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden plays each turn script of testdata in the layouts that it has a
// want.LAYOUT for, and compares every request with the one that stands there.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, layout := range Layouts() {
			want := "want." + string(layout)
			if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return f.Name == want }) {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+string(layout), func(t *testing.T) {
				got := play(t, layout, archive)
				if again := play(t, layout, archive); again != got {
					t.Errorf("the same script gave other bytes (-first +second):\n%s", cmp.Diff(got, again))
				}
				want := entry(archive, want)
				if *update {
					want.Data = []byte(got)
					return
				}
				if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("requests differ (-want +got); if that is meant, run go test -update:\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// entry finds a file of an archive, or adds it.
func entry(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name})
	return &a.Files[len(a.Files)-1]
}

// play runs the archive's script and returns what was sent.
func play(t *testing.T, layout Layout, a *txtar.Archive) string {
	w := newWorld(t, layout)
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "data/"); ok {
			w.file(name, string(f.Data))
		}
	}
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(string(entry(a, "script").Data)), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		step(w, a, verb, rest, &out)
	}
	return out.String()
}

// step runs one line of a script.
func step(w *world, a *txtar.Archive, verb, rest string, out *strings.Builder) {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		w.must(err)
		return n
	}
	switch verb {
	case "", "#":
	case "at": // local time
		at, err := time.ParseInLocation("2006-01-02 15:04", rest, w.zone)
		w.must(err)
		w.now = at
	case "user":
		w.says(rest)
	case "reply":
		w.answers(rest)
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		w.callsTool(name, args)
	case "result":
		w.result(rest)
	case "fails":
		w.fails(rest)
	case "compacted": // all but the newest N messages
		w.compacts(number(rest))
	case "remember":
		w.remembers(rest)
	case "task":
		priority, text, _ := strings.Cut(rest, " ")
		w.addTask(number(priority), text)
	case "done":
		_, err := w.tasks.Complete(w.t.Context(), w.caller(), rest, "it is done")
		w.must(err)
	case "write": // FILE as the archive's ENTRY
		name, from, _ := strings.Cut(rest, " ")
		w.file(name, string(entry(a, from).Data))
	case "remove":
		w.must(os.Remove(filepath.Join(w.dir, rest)))
	case "tools":
		w.tools = strings.Split(rest, ",")
	case "maxOutput":
		w.maxOutput = number(rest)
	case "preview": // LAYOUT
		t := w.turn()
		if t.Preview = true; rest != "full" {
			t.Layout = Layout(rest)
		}
		p, err := w.assembler.Assemble(w.t.Context(), t)
		w.must(err)
		show(out, rest, "", flat(p.Messages()), p.Report)
	case "mode": // NAME TIER
		mode, tier, _ := strings.Cut(rest, " ")
		w.mode, w.tier = mode, number(tier)
	case "tier":
		w.tier = number(rest)
	case "goal":
		w.goal = []string{rest}
	case "steps":
		if w.steps = nil; rest != "" {
			w.steps = strings.Split(rest, "; ")
		}
	case "pin":
		w.pin = rest
	case "summary":
		w.summary = rest
	case "think":
		w.thinking = rest
	case "model":
		w.model = rest
	case "instructions":
		w.instruct(rest)
	case "window":
		w.window = number(rest)
	case "new":
		w.startsNew()
	case "retry":
		w.retries()
	case "restart":
		w.restart()
	case "send":
		before := flat(w.last)
		p := w.send()
		show(out, rest, before, flat(w.last), p.Report)
	case "report":
		out.WriteString("##### report\n" + w.assemble().Report.String() + "\n\n")
	default:
		w.t.Fatalf("unknown step %q", verb)
	}
}

// show writes a request; what it begins with in common with the one before is
// left out if that is all of the one before.
func show(out *strings.Builder, name, before, now string, r Report) {
	fmt.Fprintf(out, "##### request: %s", name)
	if r.Epoch.New {
		fmt.Fprintf(out, " (new epoch: %s)", r.Epoch.Reason)
	}
	out.WriteString("\n")
	if rest, ok := strings.CutPrefix(now, before); ok && before != "" {
		now = "(all of the last request, and then)" + rest
	}
	out.WriteString(now + "\n\n")
}
