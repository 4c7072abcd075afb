package workspace

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestAgainstModel: random writes, edits, copies and deletions in three circles, with a program beside
// them, leave what a map of texts and labels says.
func TestAgainstModel(t *testing.T) {
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	defer db.Close()
	rapid.Check(t, func(r *rapid.T) {
		const quota = 60
		dir := filepath.Join(expect.Must(os.MkdirTemp(t.TempDir(), "x"))(t), "data")
		expect.OK(t, os.Mkdir(dir, 0o700))
		expect.Must(db.Exec(`DELETE FROM work_file`))(t)
		d := desk{Open(Config{Dir: dir, DB: db, Quota: quota}), dir}
		type file struct {
			text string
			of   trust.Integrity
		}
		circles := []trust.Place{ann, bob, group}
		model := []map[string]file{{}, {}, {}}
		paths := []string{"work/a", "work/b.txt", "work/d/a", "work/d/e/c"}
		used := func(in map[string]file, but string) (n int) {
			for path, f := range in {
				if path != but {
					n += len(f.text)
				}
			}
			return n
		}
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			i, path := rapid.IntRange(0, 2).Draw(r, "circle"), rapid.SampledFrom(paths).Draw(r, "path")
			at, in := circles[i], model[i]
			was, there := in[path]
			text := rapid.StringMatching(`[a-c\n]{0,30}`).Draw(r, "text")
			of := trust.Integrity(rapid.IntRange(0, 3).Draw(r, "integrity"))
			fits := used(in, path)+len(text) <= quota
			switch what := rapid.SampledFrom([]string{"write", "edit", "copy", "remove", "program", "unlink"}).Draw(r, "what"); what {
			case "write", "copy":
				var err error
				if what == "write" {
					err = d.write(at, path, text, of)
				} else {
					_, err = d.Copy(t.Context(), at, path, strings.NewReader(text), of)
				}
				if fits != (err == nil) {
					r.Fatalf("%s %s of %d bytes beside %d: %v", what, path, len(text), used(in, path), err)
				}
				if fits {
					in[path] = file{text, of}
				}
			case "edit":
				fits = used(in, path)+len(was.text)+1 <= quota
				err := d.Change(t.Context(), at, path, func(old Old) ([]byte, trust.Integrity, error) {
					if there != (old.Err == nil) || string(old.Text) != was.text || old.Integrity != was.of {
						r.Fatalf("%s was %+v, and the change sees %+v", path, was, old)
					}
					return append(slices.Clone(old.Text), '+'), min(of, old.Integrity), old.Err
				})
				if (there && fits) != (err == nil) {
					r.Fatalf("edit %s: %v", path, err)
				}
				if there && fits {
					in[path] = file{was.text + "+", min(of, was.of)}
				}
			case "remove":
				if err := d.Remove(at, path); there != (err == nil) {
					r.Fatalf("remove %s: %v", path, err)
				}
				delete(in, path)
			case "program":
				name := d.in(at, strings.TrimPrefix(path, "work/"))
				if os.WriteFile(name, []byte("#"), 0o600) == nil { // its folder is there
					in[path] = file{"#", trust.Foreign}
				}
			case "unlink":
				_ = os.Remove(d.in(at, strings.TrimPrefix(path, "work/")))
				delete(in, path)
			}
		}
		for i, at := range circles {
			var want []string
			for path, f := range model[i] {
				want = append(want, path)
				if text, of := d.text(t, at, path); text != f.text || of != f.of {
					r.Fatalf("%s is %q %v, want %+v", path, text, of, f)
				}
			}
			slices.Sort(want)
			if got := d.names(t, at, "work"); got != strings.Join(want, " ") {
				r.Fatalf("%v lists %q, want %q", at, got, want)
			}
		}
	})
}

// TestWriterChild writes for ever; TestKilled kills it.
func TestWriterChild(t *testing.T) {
	dir := os.Getenv("REVERIE_TEST_WORK")
	if dir == "" {
		t.Skip("not started by TestKilled")
	}
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	d := desk{Open(Config{Dir: dir, DB: db}), dir}
	fmt.Println("\nwriting")
	for i := 0; ; i++ {
		expect.OK(t, d.write(ann, "work/d/a", strings.Repeat(fmt.Sprintln(i), 50_000), trust.User))
	}
}

// TestKilled: kill -9 at any moment leaves one whole content, whose label is right or foreign, and the next write
// removes what was left.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	defer db.Close()
	d := desk{Open(Config{Dir: dir, DB: db}), dir}
	d.put(t, ann, "work/d/a", strings.Repeat("old\n", 50_000))
	labelled := 0
	for round := range 15 {
		child := exec.Command(os.Args[0], "-test.run=^TestWriterChild$")
		child.Env = append(os.Environ(), "REVERIE_TEST_WORK="+dir)
		out := expect.Must(child.StdoutPipe())(t)
		expect.OK(t, child.Start())
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "writing"; {
		}
		time.Sleep(time.Duration(round) * 7 * time.Millisecond)
		_ = child.Process.Kill()
		_ = child.Wait()
		data, of, err := d.Read(t.Context(), ann, "work/d/a")
		expect.OK(t, err)
		lines := strings.SplitAfter(string(data), "\n")
		first := lines[0]
		if string(data) != strings.Repeat(first, 50_000) {
			t.Fatalf("round %d: %d bytes that begin with %q are no whole content", round, len(data), first)
		}
		if of == trust.User {
			labelled++
		} else {
			expect.Equal(t, of, trust.Foreign)
		}
	}
	t.Logf("%d of 15 with their label", labelled)
	d.put(t, ann, "work/b", "x")
	entries := expect.Must(os.ReadDir(d.in(ann, "d")))(t)
	expect.False(t, len(entries) != 1, "left: %v", entries)
}
