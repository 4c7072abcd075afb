//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elastic/go-seccomp-bpf"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlockVersion is the first ABI of Landlock that confines signals and abstract sockets (Linux 6.12).
const landlockVersion = 6

// Supported returns nil if the kernel has what Run needs. It is quick and tries nothing.
func Supported() error {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case err != nil:
		return fmt.Errorf("%w (Landlock: %w)", ErrUnsupported, err)
	case abi < landlockVersion:
		return fmt.Errorf("%w (Landlock has ABI %d, not %d)", ErrUnsupported, abi, landlockVersion)
	case !seccomp.Supported():
		return fmt.Errorf("%w (seccomp is missing)", ErrUnsupported)
	}
	return nil
}

// Run runs spec and waits for its end. It returns an error if nothing was run, or if ctx ended.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := Supported(); err != nil {
		return Result{}, err
	}
	r, err := run(ctx, order{Spec: spec})
	return r.Result, err
}

func run(ctx context.Context, o order) (report, error) {
	if err := o.check(); err != nil {
		return report{}, err
	}
	o.Temporary = os.TempDir()
	r, err := start(ctx, o, namespaces())
	if !errors.Is(err, errNotStarted) {
		return r, err
	}
	if os.Geteuid() == 0 && o.Command != "" { // nothing else bounds the number of root's processes
		return r, fmt.Errorf("sandbox: as root, commands need a process namespace, and the system forbids it; "+
			"run the bot as another user: %w", err)
	}
	return start(ctx, o, nil)
}

// order is what the keeper and the confined process are told.
type order struct {
	Spec
	Probe bool // try to get out, instead of Command

	Temporary  string // the folder for temporary files; the keeper makes one of its own in it
	Namespaced bool   // there is a process namespace; the keeper finds out
}

// environment returns all variables of the keeper and the confined process. An empty TZ would be UTC.
func (o *order) environment() []string {
	all := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + o.Dir, "PWD=" + o.Dir, "LANG=C.UTF-8", "TERM=dumb"}
	if o.Temporary != "" {
		all = append(all, "TMPDIR="+o.Temporary)
	}
	if o.Zone != "" {
		all = append(all, "TZ="+o.Zone)
	}
	return all
}

// report is what the keeper says at the end.
type report struct {
	Result
	Failed     string // why nothing was run
	Namespaced bool
}

// check fills in defaults. It refuses a run that could read what is hidden.
func (s *Spec) check() error {
	s.Time, s.Quota = cmp.Or(s.Time, 30*time.Second), cmp.Or(s.Quota, 256<<20)
	if s.Command == "" {
		s.Dir = ""
		return nil
	}
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil || !filepath.IsAbs(dir) || dir == "/" {
		return errors.Join(errors.New("sandbox: no work folder"), err)
	}
	s.Dir = dir
	for _, hidden := range s.Hidden {
		real, err := filepath.EvalSymlinks(hidden)
		if err != nil {
			real = hidden
		}
		for _, path := range slices.Concat(readable(s.Network), s.Folders, []string{s.Dir}) {
			granted, err := filepath.EvalSymlinks(path)
			if err == nil && (holds(granted, real) || slices.Contains(s.Folders, path) && holds(real, granted)) {
				return fmt.Errorf("sandbox: programs could read %s, because it is in %s; move it elsewhere", hidden, path)
			}
		}
	}
	return nil
}

// holds reports whether path is folder or below it.
func holds(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

var errNotStarted = errors.New("sandbox: the keeper was not started")

// start runs o under a keeper that is created with attr; nil = no namespaces.
func start(ctx context.Context, o order, attr *syscall.SysProcAttr) (r report, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Time+10*time.Second) // a keeper that hangs
	defer cancel()
	var kept Output
	cmd := exec.CommandContext(ctx, "/proc/self/exe", keeperName)
	cmd.Stdin, cmd.Stdout = o.Input, cmp.Or[io.Writer](o.Output, &kept)
	cmd.Stderr = cmp.Or(o.Errors, cmd.Stdout)
	cmd.SysProcAttr, cmd.WaitDelay = cmp.Or(attr, &syscall.SysProcAttr{Setsid: true}), 5*time.Second
	reports, hold, err := spawn(cmd, o)
	if err != nil {
		return r, errors.Join(errNotStarted, err)
	}
	defer reports.Close()
	defer hold.Close()
	said, _ := io.ReadAll(io.LimitReader(reports, 64<<10)) // empty = it was killed
	err = cmd.Wait()
	if failed := json.Unmarshal(said, &r); failed != nil {
		return r, errors.Join(errors.New("sandbox: the keeper ended without a report"), err, ctx.Err())
	}
	if r.Failed != "" {
		return r, errors.New("sandbox: nothing was run: " + r.Failed)
	}
	r.Output = kept.String()
	return r, ctx.Err()
}

// spawn starts this program again by cmd, in a role of its own, and gives it the order o. What it reports
// can be read until it ends. It notices the end of hold, which is also that of a context of cmd.
func spawn(cmd *exec.Cmd, o order) (reports, hold *os.File, err error) {
	orders, hold, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer orders.Close()
	reports, told, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, hold.Close())
	}
	defer told.Close()
	cmd.Args[0], cmd.Env, cmd.Dir, cmd.ExtraFiles = "bot", o.environment(), "/", []*os.File{orders, told}
	if cmd.Cancel != nil {
		cmd.Cancel = hold.Close
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, hold.Close(), reports.Close())
	}
	_ = json.NewEncoder(hold).Encode(o) // if it has ended already, its reports say why
	return reports, hold, nil
}

// namespaces returns the attributes of a keeper that is the first process of a namespace: when it
// ends, the kernel ends all others in it. It returns nil if the system forbids that.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	return attr
}

// Available runs a confined process and says how it is held. It returns an error unless what must
// work works, and what must fail fails: reading files outside, among them hidden, the network, and
// signals to other processes.
func Available(ctx context.Context, hidden ...string) (level string, err error) {
	if err := Supported(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	r, err := run(ctx, order{Spec: Spec{Command: ":", Dir: dir, Hidden: hidden}, Probe: true})
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(r.Output) != held:
		return "", fmt.Errorf("sandbox: a confined process was not held: %s", r.Output)
	case r.Namespaced:
		return "Landlock, seccomp, limits and a process namespace", nil
	}
	return "Landlock, seccomp and limits", nil
}
