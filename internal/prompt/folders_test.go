package prompt

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// aged makes a folder one that was changed long ago.
func aged(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if got := (&folders{dir: dir}).of("x"); got.settled {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the folder's time does not pass")
		}
	}
}

// A file that was missing is not looked for while its folder stays as it is, and is
// there as soon as it is made, also behind a link that led nowhere.
func TestMissingFilesAppear(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "soul")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "LINK.md")); err != nil {
		t.Fatal(err)
	}
	f := newFiles(dir, nil)
	read := func(name string) string { return f.readIn((&folders{dir: dir}).of(name), name).text }
	aged(t, dir)
	for range 2 {
		for _, name := range []string{"SOUL.md", "LINK.md", "prompts/tools/x.txt"} {
			if got := read(name); got != "" {
				t.Fatalf("%s reads %q", name, got)
			}
		}
	}
	here := (&folders{dir: dir}).of("SOUL.md")
	if !here.lacks(f.slot("SOUL.md").last) || here.lacks(f.slot("LINK.md").last) || !(&folders{dir: dir}).of("prompts/tools/x.txt").lacks(f.slot("prompts/tools/x.txt").last) {
		t.Error("what is missing is not known, or a link is taken for missing")
	}
	for name, path := range map[string]string{"SOUL.md": filepath.Join(dir, "SOUL.md"), "LINK.md": elsewhere, "prompts/tools/x.txt": filepath.Join(dir, "prompts", "tools", "x.txt")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("now"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(name); got != "now" {
			t.Errorf("%s reads %q", name, got)
		}
	}
}

// Contributors that hang, more of them than there are askers, cost the others nothing.
func TestManyThatHang(t *testing.T) {
	r := &request{a: &Assembler{deadline: time.Minute}}
	var asked atomic.Int32
	stop, all := make(chan struct{}), make(chan struct{})
	defer close(stop)
	const n = 12
	r.a.asked = make([]atomic.Int32, n)
	queue := make([]int, n)
	for i := range n {
		queue[i] = i
		hang := i < n-1
		r.a.contributors = append(r.a.contributors, contributor{Name: "x", gather: hanging(hang, stop, &asked, n, all)})
	}
	ctx, cancel := newDeadline(t, all)
	defer cancel()
	w := newRound(ctx, r, nil, queue)
	replies := make([]reply, n)
	for i := range replies {
		replies[i].err = errLate
	}
	w.wait(replies)
	if replies[n-1].err != nil || replies[0].err == nil {
		t.Errorf("the last: %v; the first: %v", replies[n-1].err, replies[0].err)
	}
}

// hanging gathers nothing, after stop if it is to hang; all is closed once n were asked.
func hanging(hang bool, stop chan struct{}, asked *atomic.Int32, n int32, all chan struct{}) func(context.Context, *question) (*content, error) {
	return func(context.Context, *question) (*content, error) {
		if asked.Add(1) == n {
			close(all)
		}
		if hang {
			<-stop
		}
		return nil, nil
	}
}

// newDeadline ends a moment after all are asked.
func newDeadline(t *testing.T, all chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-all:
			time.Sleep(50 * time.Millisecond) // for the last one to come back
		case <-time.After(30 * time.Second):
			t.Error("one that hangs keeps the others from being asked")
		}
		cancel()
	}()
	return ctx, cancel
}
