package skill

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/store"
)

// Limits of a folder that is brought in.
const (
	maxFiles = 200      // files and folders
	maxBytes = 10 << 20 // of all files
)

// File is a file or folder of a skill folder.
type File struct {
	Path string      // below the skill folder, with slashes
	Mode fs.FileMode // 0600; with execute permission 0700; for a folder fs.ModeDir
	Data []byte
}

// Folder reports whether f is a folder.
func (f File) Folder() bool { return f.Mode.IsDir() }

var errTooLarge = errors.New("too large")

// readTree reads a skill folder without hidden files. Links, devices and odd names are faults, too
// many or too large files too. Each file is read once, so what was checked is what is copied.
func readTree(root *os.Root) (files []File, found []Finding, err error) {
	size := 0
	fault := func(name, text string) {
		found = append(found, Finding{Problem: store.Problem{File: strings.ToValidUTF8(name, "\uFFFD"), Text: text}})
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), "."):
			return nil
		case len(files) == maxFiles:
			return errTooLarge
		case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsAny(name, `\:`):
			fault(name, "its name has characters that a model could not write: rename it")
			return nil
		case e.IsDir():
			files = append(files, File{Path: name, Mode: fs.ModeDir | 0o700})
			return nil
		case e.Type()&fs.ModeSymlink != 0:
			fault(name, "it is a symbolic link: put the file itself in its place")
			return nil
		case !e.Type().IsRegular():
			fault(name, "it is neither a file nor a folder: remove it")
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := readIn(root, name, int64(maxBytes-size+1))
		if size += len(data); size > maxBytes {
			err = cmp.Or(err, errTooLarge)
		}
		mode := fs.FileMode(0o600)
		if info.Mode().Perm()&0o111 != 0 {
			mode = 0o700
		}
		files = append(files, File{name, mode, data})
		return err
	})
	if errors.Is(err, errTooLarge) {
		fault(".", fmt.Sprintf("the folder has more than %d files or %d MB: remove what the skill does not need", maxFiles, maxBytes>>20))
		err = nil
	}
	return files, found, err
}

// hashFiles returns a hash over names, modes and contents.
func hashFiles(files []File) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %o %d\n", f.Path, f.Mode, len(f.Data))
		h.Write(f.Data)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// readFolder reads a skill folder below root.
func readFolder(root *os.Root, folder string) (files []File, found []Finding, err error) {
	inner, err := root.OpenRoot(folder)
	if err != nil {
		return nil, nil, err
	}
	defer inner.Close()
	return readTree(inner)
}

// readSource reads a folder that a person named, or that of a SKILL.md, and checks it.
func readSource(source string) (name string, files []File, found []Finding, err error) {
	if filepath.Base(source) == folderFile {
		source = filepath.Dir(source)
	}
	root, err := os.OpenRoot(source)
	if err != nil {
		return "", nil, nil, err
	}
	defer root.Close()
	name = filepath.Base(source)
	files, found, err = readTree(root)
	return name, files, append(checkFiles(name, files, false), found...), err
}

// CheckSource lists what is wrong with a folder that is not in the library.
func CheckSource(source string) ([]Finding, error) {
	name, _, found, err := readSource(source)
	for i := range found {
		found[i].File = path.Join(name, found[i].File)
	}
	return found, err
}
