package main

import (
	"context"
	"os/exec"

	"reverie/internal/sandbox"
	_ "reverie/internal/sandbox/script" // runs code
)

// commands measures how long a confined command and a confined computation take that do nothing.
func (b *bench) commands(ctx context.Context, dir string) error {
	if sandbox.Supported() != nil {
		return nil
	}
	for _, c := range []struct {
		what  string
		limit float64
		spec  sandbox.Spec
	}{{"a sandboxed command", 30, sandbox.Spec{Command: ":", Dir: dir}}, {"sandboxed code", 50, sandbox.Spec{Code: "1"}}} {
		ours, theirs, err := beside(200, func(int) error { _, err := sandbox.Run(ctx, c.spec); return err },
			func(int) error { return exec.CommandContext(ctx, "sh", "-c", ":").Run() })
		if err != nil {
			return err
		}
		b.put(percentiles("start and end of "+c.what, 0, c.limit, ours, "sh -c :", theirs)...)
	}
	return nil
}
