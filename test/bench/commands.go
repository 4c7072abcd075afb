package main

import (
	"context"
	"os"
	"slices"
	"time"

	"reverie/internal/sandbox"
	_ "reverie/internal/sandbox/script" // runs code
)

// commands measures how long a confined command and a confined computation take that do nothing.
func commands(ctx context.Context) ([]figure, error) {
	if sandbox.Supported() != nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var all []figure
	for _, c := range []struct {
		what string
		aim  float64
		spec sandbox.Spec
	}{{"start of a sandboxed command", 30, sandbox.Spec{Command: ":", Dir: dir}}, {"start of sandboxed code", 50, sandbox.Spec{Code: "1"}}} {
		var took []float64
		for range 200 {
			began := time.Now()
			if _, err := sandbox.Run(ctx, c.spec); err != nil {
				return nil, err
			}
			took = append(took, float64(time.Since(began).Microseconds())/1000)
		}
		slices.Sort(took)
		all = append(all, figure{c.what + ", median", took[len(took)/2], "ms", 0}, figure{c.what + ", p99", took[len(took)*99/100], "ms", c.aim})
	}
	return all, nil
}
