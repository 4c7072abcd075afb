package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"reverie/internal/store"
)

// maxSize is the largest memory file that is read; a larger one is a mistake,
// and must not take the memory of the process with it.
const maxSize = 16 << 20

// file is one memory file and what was last read from it.
type file struct {
	scope Scope
	name  string // for people
	path  string
	guard string // lock file against other processes
	log   *slog.Logger

	now func() time.Time // the clock that file times are compared with

	// meddle is called at the two moments when somebody else's edit could get
	// lost. It does nothing but in tests, which make that edit.
	meddle func(moment)

	mu      sync.Mutex
	stamp   store.Stamp
	settled bool    // stamp alone tells whether entries are still right
	data    []byte  // kept only while not settled, to tell the same content
	entries []Entry // never changed once made
}

type moment int

const (
	beforeLook moment = iota
	afterLook
)

// read returns the entries, anew only when the file changed.
func (f *file) read() ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return nil, err
	}
	return f.entries, nil
}

func (f *file) refresh() error {
	stamp, err := store.Stat(f.path)
	if err != nil {
		return fmt.Errorf("memory file %s: %w", f.name, err)
	}
	if stamp == f.stamp && (f.settled || !stamp.Exists()) {
		return nil
	}
	if !stamp.Exists() {
		// Once, because from now on the stamp is that of no file.
		f.log.Warn("memory file is gone; nothing is remembered from it until it is back", "file", f.name, "entries", len(f.entries))
		f.forget()
		return nil
	}
	now := f.now()
	data, err := readAll(f.path)
	if err != nil {
		f.forget() // so that a file that comes back is read, whatever its stamp
		return fmt.Errorf("memory file %s: %w", f.name, err)
	}
	f.keep(stamp, now, data)
	return nil
}

func (f *file) forget() { f.stamp, f.settled, f.data, f.entries = store.Stamp{}, false, nil, nil }

// keep takes data as what the file holds at stamp.
func (f *file) keep(stamp store.Stamp, readAt time.Time, data []byte) {
	if !f.stamp.Exists() || f.data == nil || !bytes.Equal(data, f.data) {
		f.entries = parse(data, f.scope)
	}
	f.stamp, f.settled, f.data = stamp, stamp.Settled(readAt), data
	if f.settled {
		f.data = nil
	}
}

func readAll(path string) ([]byte, error) {
	r, _, data, err := openAll(path)
	if err != nil {
		return nil, err
	}
	return data, r.Close()
}

// openAll reads the file and leaves it open, with the stamp it had before.
func openAll(path string) (*os.File, store.Stamp, []byte, error) {
	stamp, err := store.Stat(path)
	if err != nil {
		return nil, stamp, nil, err
	}
	if stamp.Exists() && !stamp.Regular() { // before opening: a pipe would block
		return nil, stamp, nil, errors.New("it is not a regular file")
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, stamp, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = fmt.Errorf("it is larger than %d MiB: split it or shorten it", maxSize>>20)
	}
	if err != nil {
		return nil, stamp, nil, errors.Join(err, r.Close())
	}
	return r, stamp, data, nil
}

// Append adds text to the file of scope as one line, white space folded, and
// returns it as stored once it is safely on disk. What the file holds otherwise,
// comments and hand edits made at the same time included, stays. If the file
// has the same fact already, apart from case and spacing, added is false and the
// entry is the one that is there. Text that is empty, longer than 2000 runes or
// holds control characters is refused with an error that says what to change.
func (s *Store) Append(ctx context.Context, scope Scope, text string) (entry Entry, added bool, err error) {
	text, err = clean(text)
	if err != nil {
		return Entry{}, false, err
	}
	if err := ctx.Err(); err != nil {
		return Entry{}, false, err
	}
	f, err := s.file(scope)
	if err != nil {
		return Entry{}, false, err
	}
	return f.add(text)
}

// attempts is how often add starts again when somebody changes the file under it.
const attempts = 20

var errChanged = errors.New("the file was changed meanwhile")

func (f *file) add(text string) (Entry, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	unlock, err := store.Guard(f.guard)
	if err != nil {
		return Entry{}, false, fmt.Errorf("memory file %s: %w", f.name, err)
	}
	defer unlock()
	for range attempts {
		entry, added, err := f.tryAdd(text)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return Entry{}, false, fmt.Errorf("memory file %s: %w", f.name, err)
		}
		return entry, added, nil
	}
	return Entry{}, false, fmt.Errorf("memory file %s is being changed by another program all the time; try again later", f.name)
}

// tryAdd reads the file, adds the line and puts the result in its place, unless
// the file changed in between: then it returns errChanged and nothing happened.
func (f *file) tryAdd(text string) (Entry, bool, error) {
	old, stamp, data, err := openAll(f.path)
	if errors.Is(err, os.ErrNotExist) {
		data = f.heading()
	} else if err != nil {
		return Entry{}, false, err
	}
	if old != nil {
		defer old.Close()
	}
	want := fold(text)
	for _, e := range parse(data, f.scope) {
		if fold(e.Text) == want {
			return e, false, nil
		}
	}
	data = withLine(data, toLine(text))
	if len(data) > maxSize {
		return Entry{}, false, fmt.Errorf("it would grow beyond %d MiB: remove lines that are no longer needed", maxSize>>20)
	}
	err = store.ReplaceFile(f.path, data, func() error {
		f.meddle(beforeLook)
		defer f.meddle(afterLook)
		now, err := store.Stat(f.path)
		if err == nil && now != stamp {
			return errChanged
		}
		return err
	})
	if err != nil {
		return Entry{}, false, err
	}
	if err := f.rescue(old, stamp, toLine(text)); err != nil {
		return Entry{}, false, err
	}
	return Entry{Text: text, Scope: f.scope}, true, nil
}

// rescue looks at the replaced file once more. Somebody who wrote to it in the
// moment between our last look and the rename wrote into a file without a name;
// what it holds now is put in place, again with line added.
func (f *file) rescue(old *os.File, stamp store.Stamp, line string) error {
	if old == nil {
		return nil
	}
	now, err := store.StatFile(old)
	if err != nil || now.SameContent(stamp) {
		return nil // the entry is stored; what cannot be seen cannot be rescued
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(old, maxSize))
	if err != nil {
		return nil
	}
	f.log.Info("memory file was edited while it was written; both changes are kept", "file", f.name)
	return store.WriteFile(f.path, withLine(data, line))
}

// heading begins a new file: it is for people, who find it before any manual.
func (f *file) heading() []byte {
	return []byte("# What is remembered here (" + string(f.scope) + "), one fact a line.\n" +
		"# Edit freely: the next answer knows. Lines that start with # are ignored.\n")
}
