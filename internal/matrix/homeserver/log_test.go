package homeserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "homeserver.log")
	var copied bytes.Buffer
	log, err := openCappedLog(path, &copied)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 1023) + "\n")
	total := 0
	for total < 5*maxLog {
		n, err := log.Write(line)
		if err != nil || n != len(line) {
			t.Fatalf("write: %d, %v", n, err)
		}
		total += n
	}
	log.Write([]byte("the last words\n"))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".old"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxLog {
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), maxLog)
		}
	}
	if !strings.HasSuffix(log.tail(), "the last words") {
		t.Errorf("tail %q lacks the last words", log.tail())
	}
	if copied.Len() != total+len("the last words\n") {
		t.Errorf("the copy got %d bytes of %d", copied.Len(), total)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(data, []byte("the last words\n")) {
		t.Errorf("the file does not end with the last words (%v)", err)
	}
}
