package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultState says how a default file on disk stands to the one this release
// ships.
type DefaultState string

// The states of a default file.
const (
	Written DefaultState = "written" // it was not there
	Updated DefaultState = "updated" // it was an older release's and untouched
	Current DefaultState = "current" // it is this release's
	Edited  DefaultState = "edited"  // its owner changed it, so it stays
)

// Default is one default file. Path is relative to the data folder, with
// forward slashes.
type Default struct {
	Path  string
	State DefaultState
}

// ledgerName is the file in the data folder that remembers what was last
// written where, in the format of sha256sum.
const ledgerName = ".defaults"

// WriteDefaults brings the default files in dir up to this release: one that is
// missing is written, one its owner never touched follows the release, one that was
// edited stays as it is. The result is in path order. When some files fail the others are still done, and the
// error names each failed one.
func WriteDefaults(defaults fs.FS, dir string) ([]Default, error) {
	return eachDefault(defaults, dir, true)
}

// ListDefaults says what WriteDefaults would find, and writes nothing: Written
// then means that the file is missing, Updated that it would follow the release.
func ListDefaults(defaults fs.FS, dir string) ([]Default, error) {
	return eachDefault(defaults, dir, false)
}

func eachDefault(defaults fs.FS, dir string, write bool) (found []Default, err error) {
	written, err := readLedger(dir)
	if err != nil {
		return nil, err
	}
	var failed []error
	changed := false
	err = fs.WalkDir(defaults, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(defaults, path)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(path))
		state, err := stateOf(file, want, written[path])
		if err == nil && write && (state == Written || state == Updated) {
			err = WriteFile(file, want)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("default file: %w", err))
			return nil
		}
		found = append(found, Default{path, state})
		if h := hash(want); state != Edited && written[path] != h {
			written[path], changed = h, true
		}
		return nil
	})
	if write && changed {
		failed = append(failed, written.write(dir))
	}
	return found, errors.Join(append(failed, err)...)
}

// stateOf compares the file with what is shipped and with the hash of what was
// last written. Without that hash a differing file counts as edited: when in
// doubt it is the owner's.
func stateOf(file string, want []byte, last string) (DefaultState, error) {
	have, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Written, nil
	case err != nil:
		return "", err
	case bytes.Equal(have, want):
		return Current, nil
	case last != "" && hash(have) == last:
		return Updated, nil
	}
	return Edited, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ledger maps a path to the hash of what was last written there.
type ledger map[string]string

func readLedger(dir string) (ledger, error) {
	l := ledger{}
	b, err := os.ReadFile(filepath.Join(dir, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("read defaults: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		// A line that does not parse costs no more than this: its file counts
		// as edited and is left alone.
		sum, path, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "  ")
		if ok && len(sum) == 2*sha256.Size {
			l[path] = sum
		}
	}
	return l, nil
}

func (l ledger) write(dir string) error {
	var b bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(l)) {
		fmt.Fprintf(&b, "%s  %s\n", l[path], path)
	}
	return WriteFile(filepath.Join(dir, ledgerName), b.Bytes())
}
