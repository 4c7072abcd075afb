package store

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp tells one state of a file from another without reading it. The zero
// Stamp stands for a file that is not there. Stamps are compared with ==.
type Stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	dev, ino     uint64
	mode         uint32
}

// clockStep is the coarsest step of a file system's clock: after a change, a stamp may stand for two
// different contents for so long.
const clockStep = 2 * time.Second

// Stat takes the stamp of the file at path, following links. A missing file is
// the zero Stamp and no error.
func Stat(path string) (Stamp, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Stamp{}, nil
	}
	if err != nil {
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return Stamp{st.Size, st.Mtim.Nano(), st.Ctim.Nano(), uint64(st.Dev), st.Ino, uint32(st.Mode)}, nil
}

// Exists reports whether there was a file.
func (s Stamp) Exists() bool { return s != Stamp{} }

// Regular reports whether it was a regular file: reading another may block for ever.
func (s Stamp) Regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// Size is the length of the file in bytes.
func (s Stamp) Size() int64 { return s.size }

// Settled reports whether content read at readAt, after s was taken, is what s stands for from now
// on. Shortly after a change it is not, and must be read again: another change in the same tick of the
// file system's clock would leave the stamp as it is.
func (s Stamp) Conclusive(readAt time.Time) bool {
	return readAt.UnixNano()-max(s.mtime, s.ctime) > int64(clockStep)
}
