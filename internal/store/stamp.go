package store

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp identifies a version of a file by its metadata, without reading it. The zero Stamp is a
// missing file. Stamps are compared with ==.
type Stamp struct {
	size         int64
	mtime, ctime int64 // nanoseconds
	dev, ino     uint64
	mode         uint32
}

// clockStep is the coarsest resolution of a file system's clock. Within it, two versions of a file
// may have the same stamp.
const clockStep = 2 * time.Second

// Stat returns the stamp of the file at path, following links. A missing file has the zero Stamp
// and no error.
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

// Exists reports whether the file existed.
func (s Stamp) Exists() bool { return s != Stamp{} }

// Regular reports whether it is a regular file: reading another kind may block for ever.
func (s Stamp) Regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// Size is the length of the file in bytes.
func (s Stamp) Size() int64 { return s.size }

// Conclusive reports whether an equal stamp proves that the content is unchanged. The content was
// read at readAt, after s was taken. Shortly after a change it does not: another change in the same
// clock tick would have the same stamp.
func (s Stamp) Conclusive(readAt time.Time) bool {
	return readAt.UnixNano()-max(s.mtime, s.ctime) > int64(clockStep)
}
