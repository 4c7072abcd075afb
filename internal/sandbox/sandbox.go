// Package sandbox runs commands and JavaScript in a process that the kernel confines.
//
// The program starts itself again as a keeper, and the keeper starts itself once more as the confined
// process. That one gives up its rights before it runs anything: Landlock leaves it the programs of
// the system and one folder, seccomp takes away the network and the system calls that reach other
// processes or the kernel, limits bound its memory, files and processes, and its environment is new.
// The keeper stays outside. It holds a pipe to the program, so that it notices also when the program
// is killed, and it ends everything that the command started, in whatever session that is.
//
// Nothing runs unconfined: what the kernel refuses to set up is an error. Reader alone also works on older
// kernels; it is for programs of the system whose input is untrusted.
//
// The package stands this low, and its path sorts this early, because Go initializes packages in the
// order of their paths: a child takes over before the word lists and patterns of others are made.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Spec is what to run: either Command or Code.
type Spec struct {
	Command  string // for /bin/sh -c
	Code     string // for package script; it has no files, programs or network
	Dir      string // the work folder of Command, absolute; it must exist
	ReadOnly bool   // Dir cannot be changed
	Network  bool   // IP sockets are allowed, to every address that this machine reaches

	Time  time.Duration // until it is ended; 0 = 30 s
	Quota int64         // bytes that Dir may hold, and the temporary folder as many again; 0 = 256 MiB
	Zone  string        // the time zone, such as Europe/Berlin; "" = the machine's

	Folders     []string          // further ones that Command may read and run programs from, absolute
	Environment map[string]string // further variables of Command; only it gets them

	Input  io.Reader `json:"-"` // nil = empty
	Output io.Writer `json:"-"` // gets the output as it comes; nil = Result.Output has it
	Errors io.Writer `json:"-"` // gets the standard error; nil = it is in the output

	// Hidden are files and folders that must not be readable, such as the data folder. Run refuses if
	// one of them is below a folder of programs, or one of Folders below it.
	Hidden []string
}

// Forever is a time that no program reaches.
const Forever = 100 * 365 * 24 * time.Hour

// Result is the end of a run.
type Result struct {
	Output string // standard output and error; at most 64 KiB, the middle of more is left out
	Code   int    // exit status; 128 and more: ended by that signal, as in a shell
	Ended  Reason
}

// Reason says why a run was ended before it was done.
type Reason string

// The reasons.
const (
	Finished   Reason = ""          // by itself
	TimeUp     Reason = "time"      // Spec.Time is over
	QuotaFull  Reason = "quota"     // Spec.Quota is exceeded
	MemoryFull Reason = "memory"    // all processes together use too much memory
	TooMany    Reason = "processes" // there are too many processes
)

// ErrUnsupported is the error where the kernel cannot confine a process. Nothing was run.
var ErrUnsupported = errors.New("this system cannot confine programs: Linux 6.12 or newer with Landlock and seccomp is needed")

const (
	maxOutput    = 64 << 10
	maxMemory    = 1 << 30  // of one process, and of all together
	maxAddresses = 16 << 30 // of one process; some languages reserve far more than they use
	maxProcesses = 256
)

// Output keeps the head and the tail of what is written to it, 64 KiB together. It is safe for
// concurrent use.
type Output struct {
	mu         sync.Mutex
	head, tail []byte
	left       int // bytes left out between them
}

// Write keeps p or a part of it. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(p), maxOutput/2-len(o.head))
	o.head = append(o.head, p[:n]...)
	o.tail = append(o.tail, p[n:]...)
	if over := len(o.tail) - maxOutput/2; over > 0 {
		o.tail = append([]byte(nil), o.tail[over:]...)
		o.left += over
	}
	return len(p), nil
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == 0 {
		return string(o.head) + string(o.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out here]\n%s", o.head, o.left, o.tail)
}
