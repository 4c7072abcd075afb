package homeserver

import (
	"context"
	"crypto/rand"
	_ "embed" // for dendrite.yaml
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"maunium.net/go/mautrix"

	"reverie/internal/matrix/setup"
)

//go:embed dendrite.yaml
var configTemplate string

// serverName is the part after the colon in every ID. It cannot change later because stored IDs
// contain it.
const serverName = "localhost"

// bcryptCost is the cheapest password hash, for speed. Docker's homeserver uses 10.
const bcryptCost = "4"

const (
	startTimeout = 60 * time.Second // a start takes 0.4 s, but longer on a busy machine
	stopTimeout  = 10 * time.Second
)

var errSlowStart = fmt.Errorf("no answer within %s", startTimeout)

// Config configures a Server.
type Config struct {
	BinDir string    // folder of the programs that Build built
	Dir    string    // data folder, created if missing; the same folder has the same users and rooms
	Port   int       // on 127.0.0.1; 0 = the last port of Dir if it is free, else any free one
	Log    io.Writer // gets a copy of Dir/homeserver.log; may be nil
}

// Server is a running homeserver. It runs until Stop or Kill. On Linux it also ends with the process
// that started it.
type Server struct {
	URL  string // "http://127.0.0.1:PORT"
	Name string // server name: the part after the colon in user IDs

	secret string
	cmd    *exec.Cmd
	done   chan struct{} // closed after the process has ended
	lock   *os.File
	log    *cappedLog
}

// Start starts the homeserver and waits until it answers. ctx limits the start only. It returns an
// error if another server uses the folder.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start homeserver: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	binDir, err := filepath.Abs(cfg.BinDir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{Name: serverName, lock: lock}
	if err := s.prepare(ctx, binDir, dir); err != nil {
		lock.Close()
		return nil, err
	}
	if s.log, err = openCappedLog(filepath.Join(dir, "homeserver.log"), cfg.Log); err != nil {
		lock.Close()
		return nil, err
	}
	// Another process may bind the free port first.
	for attempt := 1; ; attempt++ {
		err := s.launch(ctx, binDir, dir, cfg.Port)
		if err == nil {
			return s, nil
		}
		if cfg.Port != 0 || attempt == 3 || ctx.Err() != nil {
			s.release()
			return nil, err
		}
	}
}

// lockDir locks a folder against a second server. The server inherits the open file, so the lock
// holds until both it and its owner have ended.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is in use by another homeserver: stop that one first, or choose another folder", dir)
		}
		return nil, err
	}
	return f, nil
}

// prepare writes the files that the first start needs: signing key, registration secret, config.
func (s *Server) prepare(ctx context.Context, binDir, dir string) error {
	for _, name := range []string{dendriteBin, keysBin} {
		if _, err := os.Stat(filepath.Join(binDir, name)); err != nil {
			return fmt.Errorf("%w: build the homeserver first (`make homeserver`)", err)
		}
	}
	key := filepath.Join(dir, "matrix_key.pem")
	if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
		out, err := exec.CommandContext(ctx, filepath.Join(binDir, keysBin), "-private-key", key).CombinedOutput()
		if err != nil {
			os.Remove(key) // the next start must not use half a key
			return fmt.Errorf("generate signing key: %w: %s", err, lastLines(string(out), 3))
		}
		if err := os.Chmod(key, 0o600); err != nil {
			return err
		}
	}
	secretPath := filepath.Join(dir, "registration_secret")
	secret, err := os.ReadFile(secretPath)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(secret) < 16 {
		secret = []byte(rand.Text())
		err = os.WriteFile(secretPath, secret, 0o600)
	}
	if err != nil {
		return err
	}
	s.secret = strings.TrimSpace(string(secret))
	config := strings.NewReplacer("@SERVER_NAME@", serverName, "@SECRET@", s.secret, "@BCRYPT_COST@", bcryptCost).Replace(configTemplate)
	return os.WriteFile(filepath.Join(dir, "dendrite.yaml"), []byte(config), 0o600)
}

// launch starts the process on a port and waits until it answers.
func (s *Server) launch(ctx context.Context, binDir, dir string, port int) error {
	if port == 0 {
		var err error
		if port, err = choosePort(dir); err != nil {
			return err
		}
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.URL = "http://" + address
	s.cmd = exec.Command(filepath.Join(binDir, dendriteBin), "-config", "dendrite.yaml", "-http-bind-address", address)
	s.cmd.Dir = dir
	s.cmd.Env = append(os.Environ(), "GOMEMLIMIT=512MiB")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.ExtraFiles = []*os.File{s.lock}
	s.cmd.SysProcAttr = OwnGroup()
	s.cmd.WaitDelay = 2 * time.Second
	s.done = make(chan struct{})

	started := make(chan error, 1)
	// go: owns the process; Stop, Kill and a failed start wait for it through done.
	go func(cmd *exec.Cmd, done chan struct{}) {
		// The kernel ties the death signal to the thread that started the child. So the thread stays
		// locked while the child runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}(s.cmd, s.done)
	if err := <-started; err != nil {
		return err
	}
	if err := s.waitUntilUp(ctx); err != nil {
		s.end(syscall.SIGKILL)
		return err
	}
	return os.WriteFile(filepath.Join(dir, "port"), []byte(strconv.Itoa(port)+"\n"), 0o600)
}

// waitUntilUp returns nil once the client API answers.
func (s *Server) waitUntilUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errSlowStart)
	defer cancel()
	for {
		if s.answers(ctx) {
			// Another process may have taken the port, and ours may not have failed yet.
			if ours, err := s.knowsSecret(ctx); ours {
				return nil
			} else if err == nil {
				return fmt.Errorf("another homeserver answers at %s", s.URL)
			}
		}
		select {
		case <-s.done:
			return fmt.Errorf("it ended at once; last log lines:\n%s", s.log.tail())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s; last log lines:\n%s", context.Cause(ctx), s.URL, s.log.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/_matrix/client/versions", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// choosePort prefers the folder's last port, so that clients find the server after a restart.
func choosePort(dir string) (int, error) {
	last := 0
	if data, err := os.ReadFile(filepath.Join(dir, "port")); err == nil {
		last, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	for _, port := range []int{last, 0} {
		listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		chosen := listener.Addr().(*net.TCPAddr).Port
		return chosen, listener.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}

// Stop shuts the server down and waits for it. After ten seconds it kills the process. Stopping an
// ended server is no error.
func (s *Server) Stop() error {
	defer s.release()
	if s.end(syscall.SIGTERM) {
		return nil
	}
	s.end(syscall.SIGKILL)
	return fmt.Errorf("stop homeserver: it did not end within %s and was killed", stopTimeout)
}

// Kill kills the server at once, like a power cut, and waits for its end.
func (s *Server) Kill() {
	defer s.release()
	s.end(syscall.SIGKILL)
}

// Done returns a channel that is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// end sends sig to the process and reports whether it ended within stopTimeout.
func (s *Server) end(sig syscall.Signal) bool {
	_ = s.cmd.Process.Signal(sig) // "already finished" is what we want
	select {
	case <-s.done:
		return true
	case <-time.After(stopTimeout):
		return false
	}
}

func (s *Server) release() {
	s.lock.Close()
	s.log.Close()
}

// Register creates an account, see setup.Registrar.
func (s *Server) Register(ctx context.Context, localpart, password string) (string, error) {
	return setup.Registrar{URL: s.URL, Name: s.Name, Secret: s.secret}.Register(ctx, localpart, password)
}

// knowsSecret reports whether the answering server is this one. It creates no account: the server
// refuses an empty password, but only after checking the secret.
func (s *Server) knowsSecret(ctx context.Context) (bool, error) {
	_, err := s.Register(ctx, "nobody", "")
	var refused mautrix.HTTPError
	if !errors.As(err, &refused) || refused.Response == nil {
		return false, err
	}
	return refused.IsStatus(http.StatusBadRequest), nil
}
