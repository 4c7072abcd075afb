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

// After a change a stamp may still stand for two different contents, for as long
// as the file system's clock takes for a step: some keep whole or even seconds,
// the others hundredths or better.
const (
	coarseStep = int64(2 * time.Second)
	fineStep   = int64(100 * time.Millisecond)
)

// Stat takes the stamp of the file at path, following links. A missing file is
// the zero Stamp and no error.
func Stat(path string) (Stamp, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(path, &st)
		if err == nil {
			return Stamp{
				size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), dev: uint64(st.Dev), ino: st.Ino, mode: uint32(st.Mode),
			}, nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return Stamp{}, nil
		}
		return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
}

// Exists reports whether there was a file.
func (s Stamp) Exists() bool { return s != Stamp{} }

// Regular reports whether it was a regular file: reading anything else may
// block for ever.
func (s Stamp) Regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// Size is the length of the file in bytes.
func (s Stamp) Size() int64 { return s.size }

// Settled reports whether content read at readAt, after s was taken, is what s
// stands for from now on. It is not when the file had been changed shortly
// before: a second change in the same tick of the file system's clock would
// leave the stamp as it is. Content of an unsettled stamp must be read again.
func (s Stamp) Settled(readAt time.Time) bool {
	at := readAt.UnixNano()
	return longAgo(s.mtime, at) && longAgo(s.ctime, at)
}

func longAgo(changed, at int64) bool {
	step := fineStep
	if changed%int64(time.Second) == 0 {
		step = coarseStep
	}
	return at-changed > step
}
