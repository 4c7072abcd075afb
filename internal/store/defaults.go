package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ledgerName is the file in the data folder with the hashes of written default files. Its format is
// that of sha256sum.
const ledgerName = ".defaults"

// WriteDefaults updates the default files in dir to this release. A missing file is written, and an
// unmodified one is updated. A file that its owner edited is kept, and returned by its path in dir.
// If some files fail the others are still written, and the error names each failed one.
func WriteDefaults(defaults fs.FS, dir string) (edited []string, err error) {
	return compareDefaults(defaults, dir, true)
}

// EditedDefaults returns the default files that their owner edited. It writes nothing.
func EditedDefaults(defaults fs.FS, dir string) ([]string, error) {
	return compareDefaults(defaults, dir, false)
}

func compareDefaults(defaults fs.FS, dir string, write bool) (edited []string, err error) {
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
		have, err := os.ReadFile(file)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing || err == nil && !bytes.Equal(have, want) && written[path] == hash(have):
			if err = nil; write {
				err = WriteFile(file, want)
			}
		case err == nil && !bytes.Equal(have, want): // a file without a recorded hash counts as edited
			edited = append(edited, path)
			return nil
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("default file: %w", err))
		} else if h := hash(want); written[path] != h {
			written[path], changed = h, true
		}
		return nil
	})
	if write && changed {
		failed = append(failed, written.write(dir))
	}
	return edited, errors.Join(append(failed, err)...)
}

func hash(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// ledger maps a path to the hash of the content last written there.
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
		// The file of an invalid line counts as edited and is left alone.
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
