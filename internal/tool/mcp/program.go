package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"reverie/internal/sandbox"
	"reverie/internal/text"
)

const (
	maxMessage = 4 << 20     // bytes of one message of a program
	maxStored  = 1 << 30     // bytes of its folder
	grace      = time.Second // for a program to end when its input does
)

// program is the command of a server, running in the sandbox, and the input that it reads.
type program struct {
	in      *os.File
	kill    context.CancelFunc
	running errgroup.Group
}

// start starts the command of a server. It ends with the transport, with ctx, or by end, which returns
// why it ended by itself. Its folder below the data folder is the only one that it may write.
func (s *Servers) start(ctx context.Context, server Server) (_ mcp.Transport, end func() error, err error) {
	dir := filepath.Join(s.cfg.Dir, "mcp", server.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, stdin.Close(), in.Close())
	}
	ctx, kill := context.WithCancel(ctx)
	p := &program{in: in, kill: kill}
	p.running.Go(func() error {
		defer kill()
		defer stdin.Close()
		defer stdout.Close()
		var said sandbox.Output
		r, err := sandbox.Run(ctx, sandbox.Spec{Command: server.Command, Dir: dir, Folders: server.Folders, Environment: server.Environment,
			Network: server.Network, Time: sandbox.Forever, Quota: maxStored, Hidden: s.cfg.Hidden,
			Input: stdin, Output: stdout, Errors: &said})
		words := text.Clean(said.String())
		for _, secret := range server.Environment {
			if secret != "" {
				words = strings.ReplaceAll(words, secret, "(hidden)")
			}
		}
		s.cfg.Log.Debug("MCP server ended", "server", server.Name, "status", r.Code, "limit", r.Ended, "err", err, "stderr", words)
		switch {
		case ctx.Err() != nil, err == nil && r.Code == 0:
			return nil
		case err != nil:
			return err
		case r.Ended != sandbox.Finished:
			return fmt.Errorf("the program was ended, as it has too much or too many: %s", r.Ended)
		}
		return fmt.Errorf("the program ended with status %d: %s", r.Code, text.Clip(words, 500))
	})
	return &mcp.IOTransport{Reader: out, Writer: p, MaxLineLength: maxMessage}, p.Close, nil
}

// Write sends to the program. It fails if the program does not read.
func (p *program) Write(b []byte) (int, error) {
	if err := p.in.SetWriteDeadline(time.Now().Add(connectLimit)); err != nil {
		return 0, err
	}
	return p.in.Write(b)
}

// Close ends the program and waits until nothing of it is left. It returns why it had ended by itself.
func (p *program) Close() error {
	_ = p.in.Close() // may be closed already
	defer time.AfterFunc(grace, p.kill).Stop()
	return p.running.Wait()
}
