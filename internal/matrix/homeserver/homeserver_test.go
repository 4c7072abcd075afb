package homeserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
)

func start(t *testing.T, dir string) *homeserver.Server {
	t.Helper()
	server, err := homeserver.Start(t.Context(), homeserver.Config{BinDir: homeservertest.Build(t), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}

// login returns the HTTP status and the access token.
func login(t *testing.T, url, user, password string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"type":       "m.login.password",
		"identifier": map[string]any{"type": "m.id.user", "user": user},
		"password":   password,
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/_matrix/client/v3/login", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer.Token
}

func TestUsersSurviveStopAndKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder: with # odd 'name'")
	server := start(t, dir)
	userID, err := server.Register(t.Context(), "you", "you-password")
	if err != nil {
		t.Fatal(err)
	}
	if want := "@you:" + server.Name; userID != want {
		t.Fatalf("user id %q, want %q", userID, want)
	}
	if status, token := login(t, server.URL, userID, "you-password"); status != 200 || token == "" {
		t.Fatalf("login after registration: status %d, token %q", status, token)
	}
	if status, _ := login(t, server.URL, userID, "wrong-password"); status != 403 {
		t.Fatalf("login with a wrong password: status %d, want 403", status)
	}

	firstURL := server.URL
	for _, end := range []string{"stop", "kill"} {
		if end == "stop" {
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
		} else {
			server.Kill()
		}
		if _, err := http.Get(server.URL + "/_matrix/client/versions"); err == nil {
			t.Fatalf("after %s: the server still answers", end)
		}
		server = start(t, dir)
		if server.URL != firstURL {
			t.Errorf("after %s: address %s, want %s as before", end, server.URL, firstURL)
		}
		if status, _ := login(t, server.URL, userID, "you-password"); status != 200 {
			t.Fatalf("after %s: login status %d", end, status)
		}
	}
}

func TestOneServerPerFolder(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	_, err := homeserver.Start(t.Context(), homeserver.Config{BinDir: homeservertest.Build(t), Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by another homeserver") {
		t.Fatalf("second start in the same folder: error %v", err)
	}
}

func TestSecretsAreForTheOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	for _, name := range []string{"registration_secret", "matrix_key.pem", "dendrite.yaml", "homeserver.log"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode().Perm())
		}
	}
}

func TestBuildSkipsWhatIsThereAndNamesWhatIsMissing(t *testing.T) {
	repo := homeservertest.Repo(t)
	binDir := homeservertest.Build(t)
	var said bytes.Buffer
	if err := homeserver.Build(t.Context(), repo, binDir, &said); err != nil || said.Len() != 0 {
		t.Errorf("a second build: error %v, said %q; want it to do nothing", err, said.String())
	}

	t.Setenv("PATH", t.TempDir())
	if err := homeserver.Build(t.Context(), repo, t.TempDir(), nil); !errors.Is(err, homeserver.ErrNoGo) {
		t.Errorf("without go: error %v, want ErrNoGo", err)
	}
	if err := homeserver.Build(t.Context(), t.TempDir(), binDir, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("outside the repository: error %v, want ErrNotExist", err)
	}
}

// The child process of this test starts a server and is killed.
func TestServerEndsWithItsParent(t *testing.T) {
	if dir := os.Getenv("HOMESERVER_TEST_CHILD"); dir != "" {
		server, err := homeserver.Start(t.Context(), homeserver.Config{BinDir: os.Getenv("HOMESERVER_TEST_BIN"), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("up " + strconv.Itoa(os.Getpid()) + "\n")
		<-server.Done()
		return
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsParent$")
	child.Env = append(os.Environ(), "HOMESERVER_TEST_CHILD="+dir, "HOMESERVER_TEST_BIN="+homeservertest.Build(t))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // "signal: killed"

	// The child's server held the lock of the folder. If it still ran, this start would fail; the kernel needs
	// a moment to end it.
	var server *homeserver.Server
	for range 200 {
		server, err = homeserver.Start(t.Context(), homeserver.Config{BinDir: homeservertest.Build(t), Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
}
