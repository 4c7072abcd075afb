package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

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
	DB         *sql.DB
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

// within reports whether path is dir or below it, also by way of links.
func within(path, dir string) bool {
	for _, p := range []*string{&path, &dir} {
		for at := *p; ; at = filepath.Dir(at) { // path may not exist yet
			if real, err := filepath.EvalSymlinks(at); err == nil {
				*p = filepath.Join(real, strings.TrimPrefix(*p, at))
				break
			} else if at == filepath.Dir(at) {
				break
			}
		}
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// write writes the archive to out. Copies of the databases are made in the folder copies.
func (s Source) write(ctx context.Context, out io.Writer, copies string, w *Written) (err error) {
	var closers []io.Closer
	if s.Passphrase != "" {
		to, err := age.NewScryptRecipient(s.Passphrase)
		if err != nil {
			return err
		}
		sealed, err := age.Encrypt(out, to)
		if err != nil {
			return err
		}
		out, closers = sealed, append(closers, sealed)
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	a := &archive{ctx: ctx, tar: tar.NewWriter(zipped), progress: s.Progress, written: w}
	w.Format, w.Version, w.Created = format, s.Version, time.Now().UTC().Truncate(time.Second)
	if err := s.addFiles(a, copies); err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(w.Manifest, "", "  ")
	if err == nil {
		err = a.add(manifestName, int64(len(manifest)), bytes.NewReader(manifest))
	}
	for _, c := range append([]io.Closer{a.tar, zipped}, closers...) {
		if err == nil {
			err = c.Close()
		}
	}
	return err
}

// addFiles adds the databases, then all other files.
func (s Source) addFiles(a *archive, copies string) error {
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	copied := filepath.Join(copies, database)
	if err := store.Snapshot(a.ctx, s.DB, copied); err != nil {
		return err
	}
	if a.written.Schema, err = store.SchemaVersion(a.ctx, s.DB); err != nil {
		return err
	}
	if err := a.addCopy(copied, database); err != nil {
		return err
	}
	files, err := s.list(root, a.written)
	if err != nil {
		return err
	}
	for _, name := range slices.SortedStableFunc(slices.Values(files), func(x, y string) int { return depthOfDB(y) - depthOfDB(x) }) {
		if err := s.addFile(a, root, name, copied); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// depthOfDB sorts names of databases before others.
func depthOfDB(name string) int {
	if strings.HasSuffix(name, ".db") {
		return 1
	}
	return 0
}

// transient matches files that belong to a process or a device, by their path in the data folder.
var transient = regexp.MustCompile(`^(\.lock|\.doctor|matrix/account\.json.*)$|` +
	`(^|/)(` + regexp.QuoteMeta(tempPrefix) + `[^/]*|\.restore)(/|$)|` +
	`\.db-(wal|shm|journal)$|\.lock$|\.part$|(^|/)\.[^/]+[0-9]{6,}$`)

// list returns the files to copy, without bot.db. It notes what it leaves out in w.
func (s Source) list(root *os.Root, w *Written) (files []string, err error) {
	return files, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
			return nil
		case err != nil:
			return err
		case name == database || transient.MatchString(name):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			files = append(files, name)
		case !d.IsDir():
			w.LeftOut = append(w.LeftOut, name)
		}
		return nil
	})
}

// sqliteMagic begins each SQLite database.
const sqliteMagic = "SQLite format 3\x00"

// addFile adds a file. A database is copied to spare first, unless that is impossible, as with one of another program.
func (s Source) addFile(a *archive, root *os.Root, name, spare string) error {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	begins := make([]byte, len(sqliteMagic))
	if _, err := f.ReadAt(begins, 0); err == nil && string(begins) == sqliteMagic &&
		store.SnapshotFile(a.ctx, filepath.Join(s.Dir, filepath.FromSlash(name)), spare) == nil {
		return a.addCopy(spare, name)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(dataPrefix+name, info.Size(), f)
}

// archive is a backup that is being written.
type archive struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call of Write
	tar      *tar.Writer
	read     int64
	progress func(int64)
	written  *Written
}

func (a *archive) addCopy(copied, name string) error {
	f, err := os.Open(copied)
	if err != nil {
		return err
	}
	defer f.Close()
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
	n, err := io.Copy(io.MultiWriter(a.tar, sum), io.LimitReader(contextReader{a.ctx, r}, size))
	if err == nil && n < size {
		err = errors.New("it was changed while it was read; try again")
	}
	if err != nil {
		return err
	}
	if a.read += n; a.progress != nil {
		a.progress(a.read)
	}
	if below, ok := strings.CutPrefix(name, dataPrefix); ok {
		a.written.Files = append(a.written.Files, File{path.Clean(below), size, hexSum(sum)})
	}
	return nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // it lives as long as one copy
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
