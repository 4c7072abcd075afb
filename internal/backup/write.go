package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"reverie/internal/lazyregexp"
	"reverie/internal/store"
)

const (
	format       = 1 // of the archive
	manifestName = "manifest.json"
	dataPrefix   = "data/" // of the paths in the archive
	database     = "bot.db"
)

// Manifest describes a backup. It is the last file in it.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // of the program
	Schema  int       `json:"schema"`  // version of bot.db's
	Created time.Time `json:"created"` // when the databases were copied
	Files   []File    `json:"files"`
}

// File is a file in a backup.
type File struct {
	Path   string `json:"path"` // below the data folder, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all files.
func (m Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Source is what to back up.
type Source struct {
	Dir        string // the data folder
	DB         *store.DB
	Version    string
	Passphrase string            // empty = not encrypted
	Progress   func(bytes int64) // called with the bytes read so far; may be nil
}

// Written is a finished backup.
type Written struct {
	Manifest
	LeftOut []string `json:"left_out,omitempty"` // links and special files, below the data folder
}

// Write backs up s into the file at path (0600), which it replaces. The bot may run. After an error, or
// if the process dies, there is no new file at path.
func Write(ctx context.Context, path string, s Source) (w Written, err error) {
	defer func() { err = store.Wrap(err, "back up") }()
	abs, err := filepath.Abs(path)
	if err != nil {
		return w, err
	}
	if within(abs, s.Dir) {
		return w, fmt.Errorf("%s is inside the data folder; choose a place outside, best on another disk", abs)
	}
	err = store.WriteStream(abs, func(out io.Writer) error {
		copies, err := os.MkdirTemp(filepath.Dir(abs), tempPrefix)
		if err != nil {
			return err
		}
		defer os.RemoveAll(copies)
		return s.write(ctx, out, copies, &w)
	})
	return w, err
}

// tempPrefix begins the names of folders that a killed process may leave behind.
const tempPrefix = ".backup-"

// within reports whether path is below dir, also by way of links.
func within(path, dir string) bool {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil { // it does not exist yet
		folder = filepath.Dir(path)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, folder)
	return err == nil && filepath.IsLocal(rel)
}

// write writes the archive to out. Copies of the databases are made in the folder copies.
func (s Source) write(ctx context.Context, out io.Writer, copies string, w *Written) error {
	seal := func() error { return nil }
	if s.Passphrase != "" {
		to, err := age.NewScryptRecipient(s.Passphrase)
		if err != nil {
			return err
		}
		sealed, err := age.Encrypt(out, to)
		if err != nil {
			return err
		}
		out, seal = sealed, sealed.Close
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	a := &archive{tar: tar.NewWriter(zipped), progress: s.Progress, written: w}
	w.Format, w.Version, w.Created = format, s.Version, time.Now().UTC().Truncate(time.Second)
	if err := s.addFiles(ctx, a, copies); err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(w.Manifest, "", "  ")
	if err == nil {
		err = a.add(manifestName, int64(len(manifest)), bytes.NewReader(manifest))
	}
	for _, end := range []func() error{a.tar.Close, zipped.Close, seal} {
		if err == nil {
			err = end()
		}
	}
	return err
}

// addFiles adds bot.db, then all other files.
func (s Source) addFiles(ctx context.Context, a *archive, copies string) (err error) {
	if a.written.Schema, err = store.SchemaVersion(ctx, s.DB); err != nil {
		return err
	}
	copied := filepath.Join(copies, database)
	if err := store.Snapshot(ctx, s.DB, copied); err != nil {
		return err
	}
	if err := a.addPath(copied, database); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
			return nil
		case err != nil || ctx.Err() != nil:
			return cmp.Or(err, ctx.Err())
		case name == database || transient().MatchString(name):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			return store.Wrap(s.addFile(ctx, a, root, name, copied), "%s", name)
		case !d.IsDir():
			a.written.LeftOut = append(a.written.LeftOut, name)
		}
		return nil
	})
}

// transient matches files that belong to a process or a device, by their path in the data folder.
var transient = lazyregexp.New(`^(\.lock|\.doctor|[^/]*\.db-(wal|shm|journal)|matrix/account\.json.*)$|^\.restore`)

// addFile adds a file. A database of ours is copied to spare first. Others, as in work folders, may be
// made to do harm when they are opened, so their bytes are copied.
func (s Source) addFile(ctx context.Context, a *archive, root *os.Root, name, spare string) error {
	if strings.HasSuffix(name, ".db") && !strings.Contains(name, "/") {
		if err := store.SnapshotFile(ctx, filepath.Join(s.Dir, name), spare); err != nil {
			return err
		}
		return a.addPath(spare, name)
	}
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return a.addOpen(f, name)
}

// archive is a backup that is being written.
type archive struct {
	tar      *tar.Writer
	read     int64
	progress func(int64)
	written  *Written
}

func (a *archive) addPath(path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.addOpen(f, name)
}

func (a *archive) addOpen(f *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(dataPrefix+name, info.Size(), f)
}

// add adds size bytes of r under name. A file that becomes shorter meanwhile is an error.
func (a *archive) add(name string, size int64, r io.Reader) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.CopyN(io.MultiWriter(a.tar, sum), r, size)
	if errors.Is(err, io.EOF) {
		err = errors.New("it was changed while it was read; try again")
	}
	if err != nil {
		return err
	}
	if a.read += n; a.progress != nil {
		a.progress(a.read)
	}
	if below, ok := strings.CutPrefix(name, dataPrefix); ok {
		a.written.Files = append(a.written.Files, File{below, size, hexSum(sum)})
	}
	return nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
