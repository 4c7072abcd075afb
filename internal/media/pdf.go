package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// The text of PDF files is read by pdftotext, the program of poppler. It parses what
// anybody may send, so it runs confined: see start.

const (
	pdfProgram = "pdftotext"
	pdfTime    = 20 * time.Second
	pdfWork    = 10 * time.Second // of a processor
	pdfMemory  = 256 << 20        // bytes of address space that the program may have
)

var (
	errLocked = i18n.New("why.pdf_locked")
	errSpent  = i18n.New("why.pdf_spent")
	// errNoReader means that pdftotext is not installed.
	errNoReader = i18n.New("why.pdf_reader")
)

// ReadsPDF reports whether the program that reads PDF files is installed.
func ReadsPDF() bool {
	_, err := exec.LookPath(pdfProgram)
	return err == nil
}

// pdfText returns the text of a PDF file, in the order in which the file has it.
// Of a file that cannot be read to its end, it returns what was read.
func pdfText(ctx context.Context, data []byte) (string, error) {
	program, err := exec.LookPath(pdfProgram)
	if err != nil {
		return "", errNoReader
	}
	var text, complaints bounded
	cmd := exec.CommandContext(ctx, program, "-raw", "-enc", "UTF-8", "-", "-")
	cmd.Dir, cmd.Env = "/", []string{} // not nil, which would be this process's own environment
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &text, &complaints, time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("read a PDF file: %w", err)
	}
	if err := start(cmd); err != nil {
		return "", fmt.Errorf("read a PDF file: start %s: %w", program, err)
	}
	// What the program does not want, it need not have: how it ends says why.
	_, _ = io.Copy(stdin, bytes.NewReader(data))
	_ = stdin.Close()
	err = cmd.Wait()
	switch said := complaints.b.String(); {
	case errors.Is(ctx.Err(), context.Canceled):
		return "", ctx.Err()
	case strings.Contains(said, "Incorrect password"):
		return "", errLocked
	case strings.TrimSpace(text.b.String()) != "":
		return strings.ReplaceAll(text.b.String(), "\f", "\n\n"), nil
	case err == nil:
		return "", nil
	case ctx.Err() != nil, cmd.ProcessState.ExitCode() < 0, strings.Contains(said, "Out of memory"):
		return "", errSpent // stopped by its limits
	}
	return "", errPDF
}

// bounded is a text of at most maxText bytes. It refuses more, which ends the program
// that writes it.
type bounded struct{ b bytes.Buffer }

func (t *bounded) Write(p []byte) (int, error) {
	n := min(len(p), maxText-t.b.Len())
	t.b.Write(p[:n])
	if n < len(p) {
		return n, errSpent
	}
	return n, nil
}
