package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"reverie/internal/media"
	"reverie/internal/trust"
)

// Old is the content that a change replaces. Err says why it is missing: fs.ErrNotExist, or a Refused
// because it cannot be read as text.
type Old struct {
	Text      []byte
	Integrity trust.Integrity
	Err       error
}

// Change replaces the file at path by what change returns, with its integrity. The new content is
// durable before it replaces the old; after an error the old is untouched.
func (s *Store) Change(ctx context.Context, at trust.Place, asked string, change func(Old) ([]byte, trust.Integrity, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.writable(at, asked)
	if err != nil {
		return err
	}
	defer p.root.Close()
	old := Old{Err: fs.ErrNotExist}
	if _, err := p.root.Lstat(p.rest); err == nil {
		old.Text, old.Integrity, old.Err = s.readText(ctx, p)
	}
	text, of, err := change(old)
	if err != nil {
		return err
	}
	_, err = s.replace(ctx, p, bytes.NewReader(text), of)
	return err
}

// Copy replaces the file at path by what r holds, as Change does. It returns the size in bytes.
func (s *Store) Copy(ctx context.Context, at trust.Place, asked string, r io.Reader, of trust.Integrity) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.writable(at, asked)
	if err != nil {
		return 0, err
	}
	defer p.root.Close()
	return s.replace(ctx, p, r, of)
}

// CheckWritable returns the Refused of a path that cannot be written for what it is.
func (s *Store) CheckWritable(at trust.Place, asked string) error {
	top, rest, err := clean(asked)
	bound := s.bound(at, top)
	switch {
	case err != nil:
		return err
	case bound == nil && top != Top:
		return refuse("Nothing was changed: %s is not in the work folder. Write below %s/, such as %s.",
			clip(asked), Top, path.Join(Top, top, rest))
	case bound != nil && !bound.Write:
		return refuse("Nothing was changed: %s/ can only be read here. Write below %s/ instead.", top, Top)
	case rest == "":
		return refuse("Nothing was changed: %s is a folder; name a file in it.", top)
	case bound == nil && (rest == Received || strings.HasPrefix(rest, Received+"/")):
		return refuse("Nothing was changed: %s/%s/ holds what people sent; write beside it.", Top, Received)
	}
	return nil
}

// Received is the part of the work folder that shows the files that people sent. Nothing is written there.
const Received = "received"

// writable opens the folder of a path that may be written.
func (s *Store) writable(at trust.Place, asked string) (spot, error) {
	if err := s.CheckWritable(at, asked); err != nil {
		return spot{}, err
	}
	p, err := s.find(at, asked, true)
	if err != nil {
		return p, err
	}
	info, err := p.root.Lstat(p.rest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = refuse("%s is a link, which is not replaced. Write to the file itself, or under another name.", p.shown)
	case err == nil:
		if err = p.check(info); errors.Is(err, ErrFolder) {
			err = refuse("%s is a folder; name a file in it.", p.shown)
		}
	}
	if err != nil {
		p.root.Close()
	}
	return p, p.explain(err)
}

// replace writes the file of p within the quota, and stores its label.
func (s *Store) replace(ctx context.Context, p spot, r io.Reader, of trust.Integrity) (int64, error) {
	left, there, err := int64(MaxText), map[string]bool{}, error(nil)
	if p.bound == nil {
		if left, there, err = s.measure(ctx, p); err != nil {
			return 0, err
		}
	}
	if err := p.root.MkdirAll(path.Dir(p.rest), 0o700); err != nil {
		return 0, p.explain(err)
	}
	size, hash, err := writeFile(p.root, p.rest, r, left)
	switch {
	case errors.Is(err, errFull) && p.bound != nil:
		return 0, refuse("Nothing was changed: what is written to %s may have %s at most.", p.shown, media.FormatSize(left))
	case errors.Is(err, errFull):
		return 0, refuse("Nothing was changed: the work folder may hold %s, and %s of them are left for this file. "+
			"Ask the person which files may be deleted.", media.FormatSize(s.cfg.Quota), media.FormatSize(max(left, 0)))
	case err != nil:
		return 0, err
	case p.bound != nil:
		return size, nil
	}
	return size, s.setLabel(ctx, p.dir, p.rest, label{hash, of}, there)
}

// measure returns the bytes left for the file of p, and the paths of all files. It deletes temporary files
// that a killed program left.
func (s *Store) measure(ctx context.Context, p spot) (left int64, there map[string]bool, err error) {
	left, there = s.cfg.Quota, map[string]bool{}
	entries := 0
	err = walk(ctx, p.root, ".", func(rel string, info fs.FileInfo) error {
		if strings.HasPrefix(info.Name(), tempPrefix) && info.Mode().IsRegular() {
			return p.root.Remove(rel)
		}
		entries++
		if !info.IsDir() {
			there[rel] = true
		}
		if rel != p.rest && !info.IsDir() {
			left -= info.Size()
		}
		return nil
	})
	if err == nil && !there[p.rest] && entries+1+strings.Count(p.rest, "/") > maxEntries {
		err = errEntries
	}
	if errors.Is(err, errEntries) {
		err = refuse("Nothing was changed: the work folder has %d files and folders, which is the most. "+
			"Ask the person which may be deleted.", maxEntries)
	}
	there[p.rest] = true
	return left, there, err
}

var errFull = errors.New("larger than what is left")

// writeFile replaces the file name in root by at most most bytes of r, durably. If a program moves its
// folder meanwhile, that is an error. It does not open the folder as a root: that would wait for a pipe.
func writeFile(root *os.Root, name string, r io.Reader, most int64) (size int64, hash string, err error) {
	mode := fs.FileMode(0o600)
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm() // a program stays a program
	}
	dir := path.Dir(name)
	temp := path.Join(dir, tempPrefix+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	defer func() {
		f.Close()
		if err != nil {
			_ = root.Remove(temp) // if that fails, the next write removes it
		}
	}()
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, max(most, 0)+1))
	switch {
	case err != nil:
		return 0, "", err
	case size > most:
		return 0, "", errFull
	}
	if err := errors.Join(f.Chmod(mode), f.Sync()); err != nil {
		return 0, "", err
	}
	if err := root.Rename(temp, name); err != nil {
		return 0, "", err
	}
	return size, fmt.Sprintf("%x", sum.Sum(nil)), syncDir(root, dir)
}

// Remove deletes a file.
func (s *Store) Remove(at trust.Place, asked string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.CheckWritable(at, asked); err != nil {
		return err
	}
	p, err := s.find(at, asked, false)
	if err != nil {
		return err
	}
	defer p.root.Close()
	info, err := p.root.Lstat(p.rest)
	if err == nil && info.IsDir() {
		return refuse("%s is a folder; name the files in it.", p.shown)
	}
	if err == nil {
		err = p.root.Remove(p.rest) // of a link, the link
	}
	return p.explain(err)
}
