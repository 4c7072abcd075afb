package backup

import (
	"archive/tar"
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"reverie/internal/store"
)

// Target says how to restore.
type Target struct {
	Passphrase string
	Migrations fs.FS
	Prepare    func(ctx context.Context, db *store.DB) error // called with the restored bot.db; may be nil
	Progress   func(bytes int64)                             // called with the bytes written so far; may be nil
}

// staging is the folder in the data folder in which a restore unpacks. Its name marks one that did not finish.
const staging = ".restore"

// Restore unpacks the backup at file into dir, which must be empty or missing. It checks all of it
// first, so after an error dir has no file of it. The caller holds no lock on dir.
func Restore(ctx context.Context, file, dir string, t Target) (m Manifest, err error) {
	defer func() { err = store.Wrap(err, "restore %s", file) }()
	if err := checkEmpty(dir); err != nil {
		return m, err
	}
	temp := filepath.Join(dir, staging)
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return m, err
	}
	defer os.RemoveAll(temp)
	if m, err = t.unpackAndCheck(ctx, file, temp); err != nil {
		return m, err
	}
	// bot.db is moved last: without it the folder is not taken for a restored one.
	if err := os.Rename(filepath.Join(temp, database), filepath.Join(dir, staging+".db")); err != nil {
		return m, err
	}
	if err := store.MoveEntries(dir, staging, "."); err != nil {
		return m, err
	}
	return m, os.Rename(filepath.Join(dir, staging+".db"), filepath.Join(dir, database))
}

// CheckFinished returns an error if a restore into dir was interrupted.
func CheckFinished(dir string) error {
	exists := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	if exists(database) || !exists(staging) && !exists(staging+".db") {
		return nil
	}
	return fmt.Errorf("a restore into %s was interrupted; empty the folder and run `bot restore` again", dir)
}

// checkEmpty returns an error unless dir is missing or empty, apart from an unpacking that did not finish.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != staging {
			return fmt.Errorf("the data folder %s is not empty (it has %s), and nothing in it is replaced; "+
				"stop the bot, move the folder away, and try again", dir, e.Name())
		}
	}
	return nil
}

// Check tries whether the backup at file can be restored: it unpacks it into a temporary folder in dir,
// compares all files with the manifest, and reads the database. It leaves nothing behind.
func Check(ctx context.Context, file, dir string, t Target) (m Manifest, err error) {
	defer func() { err = store.Wrap(err, "check %s", file) }()
	temp, err := os.MkdirTemp(dir, tempPrefix)
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(temp)
	return t.unpackAndCheck(ctx, file, temp)
}

// unpackAndCheck unpacks a backup into dir, checks its database and calls Prepare.
func (t Target) unpackAndCheck(ctx context.Context, file, dir string) (m Manifest, err error) {
	if m, err = t.unpack(ctx, file, dir); err != nil {
		return m, err
	}
	db, err := store.Open(ctx, filepath.Join(dir, database), t.Migrations)
	if err != nil {
		return m, err
	}
	if err = store.CheckIntegrity(ctx, db); err == nil && t.Prepare != nil {
		err = t.Prepare(ctx, db)
	}
	return m, errors.Join(err, db.Close())
}

const remedy = "; use another backup"

// unpack unpacks the archive into dir and compares it with its manifest.
func (t Target) unpack(ctx context.Context, file, dir string) (m Manifest, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	plain, err := t.decrypt(bufio.NewReader(f))
	if err != nil {
		return m, err
	}
	u := unpacking{ctx: ctx, root: root, dir: dir, files: map[string]File{}, progress: t.Progress}
	zipped, err := gzip.NewReader(plain)
	if err == nil {
		if err = u.extract(tar.NewReader(zipped)); err == nil {
			_, err = io.Copy(io.Discard, zipped) // up to the checksum
		}
	}
	var flaw flate.CorruptInputError
	switch {
	case err == nil:
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return m, errCutOff
	case errors.Is(err, gzip.ErrHeader):
		return m, errors.New("the file is no backup of this program")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader), errors.As(err, &flaw):
		return m, fmt.Errorf("%w (%w)", errDamaged, err)
	default:
		return m, err
	}
	return u.manifest, u.compare()
}

// decrypt returns the archive, which the passphrase may have to open.
func (t Target) decrypt(in *bufio.Reader) (io.Reader, error) {
	const magic = "age-encryption.org/"
	if begins, _ := in.Peek(len(magic)); string(begins) != magic { // a shorter file is read as plain
		return in, nil
	}
	if t.Passphrase == "" {
		return nil, errors.New("the backup is encrypted; give its passphrase")
	}
	by, err := age.NewScryptIdentity(t.Passphrase)
	if err != nil {
		return nil, err
	}
	plain, err := age.Decrypt(in, by)
	if err == nil {
		return sealed{plain}, nil
	}
	if wrong := (*age.NoIdentityMatchError)(nil); errors.As(err, &wrong) {
		return nil, errors.New("the passphrase does not open this backup")
	}
	return nil, fmt.Errorf("%w (%w)", errDamaged, err)
}

var (
	errCutOff  = errors.New("the file is cut off, or empty; use another backup")
	errDamaged = errors.New("the file is damaged; use another backup")
)

// sealed reads what is encrypted. An error means that the file was changed.
type sealed struct{ io.Reader }

func (r sealed) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w (%w)", errDamaged, err)
	}
	return n, err
}

// unpacking is an archive that is being unpacked. Its content is not trusted.
type unpacking struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call of unpack
	root     *os.Root
	dir      string
	files    map[string]File
	manifest Manifest
	written  int64
	progress func(int64)
}

const (
	maxManifest = 256 << 20 // bytes
	spare       = 16 << 20  // bytes of the disk that are left free
)

func (u *unpacking) extract(in *tar.Reader) error {
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			if u.manifest.Format == 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, dataPrefix)
		switch {
		case u.manifest.Format != 0:
			return fmt.Errorf("something follows the manifest (%.80q)%s", h.Name, remedy)
		case h.Name == manifestName && h.Typeflag == tar.TypeReg:
			err = u.readManifest(in)
		case !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || path.Clean(name) != name:
			err = fmt.Errorf("it has an entry that no backup of this program has (%.80q); nothing of it was used", h.Name)
		default:
			err = u.extractFile(in, name, h.Size)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) readManifest(in io.Reader) error {
	if err := json.NewDecoder(io.LimitReader(in, maxManifest)).Decode(&u.manifest); err != nil || u.manifest.Format < 1 {
		return fmt.Errorf("its manifest is damaged%s", remedy)
	}
	if u.manifest.Format > format {
		return fmt.Errorf("it was made by a newer release (%.40s); install that one", u.manifest.Version)
	}
	return nil
}

func (u *unpacking) extractFile(in io.Reader, name string, size int64) (err error) {
	if free, err := store.FreeSpace(u.dir); err == nil && size > free-spare {
		return fmt.Errorf("%.80q has %d bytes, and the disk has room for %d; free some space, or use another disk", name, size, free)
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), in)
	if err == nil {
		err = f.Sync()
	}
	if u.written += n; err == nil && u.progress != nil {
		u.progress(u.written)
	}
	u.files[name] = File{name, n, hexSum(sum)}
	return err
}

func (u *unpacking) compare() error {
	if _, ok := u.files[database]; !ok {
		return fmt.Errorf("it has no %s%s", database, remedy)
	}
	for _, want := range u.manifest.Files {
		got, ok := u.files[want.Path]
		if !ok || got != want {
			return fmt.Errorf("%.80q is missing or damaged%s", want.Path, remedy)
		}
		delete(u.files, want.Path)
	}
	for name := range u.files {
		return fmt.Errorf("%.80q is not in its manifest%s", name, remedy)
	}
	return nil
}
