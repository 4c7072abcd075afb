package tty

import (
	"bytes"
	"io"
)

// RenamingWriter writes `bot …` in sentences under the name by which the program was started. A package may
// install it as reverie.
type RenamingWriter struct {
	W    io.Writer
	Name string
}

// Write implements io.Writer.
func (r RenamingWriter) Write(b []byte) (int, error) {
	if _, err := r.W.Write(bytes.ReplaceAll(b, []byte("`bot "), []byte("`"+r.Name+" "))); err != nil {
		return 0, err
	}
	return len(b), nil
}
