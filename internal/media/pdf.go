package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/sandbox"
)

// The text of PDF files is extracted by pdftotext, a program of poppler. Its input is untrusted, so
// it runs confined: see sandbox.Reader.

const (
	pdfProgram = "pdftotext"
	pdfTime    = 20 * time.Second
)

var (
	errLocked = i18n.New("why.pdf_locked")
	errLimits = i18n.New("why.pdf_spent")
	// errNoReader means that pdftotext is not installed.
	errNoReader = i18n.New("why.pdf_reader")
)

// ReadsPDF reports whether pdftotext is installed.
func ReadsPDF() bool {
	_, err := exec.LookPath(pdfProgram)
	return err == nil
}

// pdfText returns the text of a PDF file in the order of the file. If the file is damaged, it
// returns the text up to there.
func pdfText(ctx context.Context, data []byte) (string, error) {
	program, err := exec.LookPath(pdfProgram)
	if err != nil {
		return "", errNoReader
	}
	var text, complaints limitedText
	cmd := sandbox.Reader(ctx, program, "-raw", "-enc", "UTF-8", "-", "-")
	cmd.Dir, cmd.Env = "/", []string{} // not nil, which would pass on this process's environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(data), &text, &complaints, time.Second
	err = cmd.Run()
	switch said := complaints.b.String(); {
	case errors.Is(ctx.Err(), context.Canceled):
		return "", ctx.Err()
	case strings.Contains(said, "Incorrect password"):
		return "", errLocked
	case strings.TrimSpace(text.b.String()) != "":
		return strings.ReplaceAll(text.b.String(), "\f", "\n\n"), nil
	case err == nil:
		return "", nil
	case cmd.ProcessState == nil:
		return "", fmt.Errorf("read a PDF file: start %s: %w", program, err)
	case ctx.Err() != nil, cmd.ProcessState.ExitCode() < 0, strings.Contains(said, "Out of memory"):
		return "", errLimits // stopped by its limits
	}
	return "", errPDF
}

// limitedText is a buffer of at most maxText bytes. Its error on more ends the writing program.
type limitedText struct{ b bytes.Buffer }

func (t *limitedText) Write(p []byte) (int, error) {
	n := min(len(p), maxText-t.b.Len())
	t.b.Write(p[:n])
	if n < len(p) {
		return n, errLimits
	}
	return n, nil
}
