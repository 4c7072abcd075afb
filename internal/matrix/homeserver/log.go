package homeserver

import (
	"io"
	"os"
	"sync"
)

// maxLog limits homeserver.log, and homeserver.log.old again. A server in trouble can write
// gigabytes.
const maxLog = 2 << 20

const tailSize = 2 << 10

// cappedLog receives the server's output: it keeps a file of limited size, the last bytes in memory
// for error messages, and writes an optional copy.
type cappedLog struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64
	last []byte
	copy io.Writer
}

func openCappedLog(path string, copyTo io.Writer) (*cappedLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	if copyTo == nil {
		copyTo = io.Discard
	}
	return &cappedLog{path: path, file: file, size: info.Size(), copy: copyTo}, nil
}

// Write never returns an error: a full disk must not stop the server.
func (l *cappedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p...)
	if extra := len(l.last) - tailSize; extra > 0 {
		l.last = append([]byte(nil), l.last[extra:]...)
	}
	_, _ = l.copy.Write(p)
	if l.file == nil {
		return len(p), nil
	}
	if l.size+int64(len(p)) > maxLog {
		l.rotate()
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

// rotate starts a new file. If that fails, the server continues without a log file.
func (l *cappedLog) rotate() {
	l.file.Close()
	l.file, l.size = nil, 0
	if os.Rename(l.path, l.path+".old") != nil {
		return
	}
	if file, err := os.OpenFile(l.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err == nil {
		l.file = file
	}
}

func (l *cappedLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lastLines(string(l.last), 10)
}

// Close closes the file; later writes go to the copy only.
func (l *cappedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
