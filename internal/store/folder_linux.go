package store

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ownFileSystems are those that this kernel alone writes to, so that a folder and a
// file tell of each change at once. Elsewhere, on a network or in a virtual machine's
// host, somebody else may know better than a handle.
var ownFileSystems = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// hold returns a handle of the file at path and its stamp, nil if it is a link, or on
// a file system where handles do not tell enough.
func hold(path string) (*os.File, Stamp) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, Stamp{}
	}
	file := os.NewFile(uintptr(fd), path)
	var fs unix.Statfs_t
	stamp, err := statHandle(fd)
	if err != nil || !stamp.Regular() || unix.Fstatfs(fd, &fs) != nil || !slices.Contains(ownFileSystems, int64(fs.Type)) {
		_ = file.Close() // nothing was written
		return nil, Stamp{}
	}
	return file, stamp
}

func statHandle(fd int) (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Stamp{}, err
	}
	return stamp(&st), nil
}
