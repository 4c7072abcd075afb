// Package backend lists the ways to find memories. A new one is a row of table and a package with a Server that
// compares vectors.
package backend

import (
	"context"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/search"
	"reverie/internal/search/qdrant"
)

// table lists every backend, by its name in the configuration.
var table = []Backend{
	{Name: "flat_file", Whole: true},
	{Name: "fts5"},
	{Name: "local_vector", Meaning: true},
	{Name: "qdrant", Meaning: true, Open: func(c Config) Server { return qdrant.Open(c) }},
}

// Backend is one way to find memories.
type Backend struct {
	Name    string
	Whole   bool                // prompts show all memories, not only those that are found
	Meaning bool                // memories are found by their meaning too: it needs vectors
	Open    func(Config) Server // where vectors are compared; nil = in the program
}

// Config says where a server is and what it gets.
type Config = qdrant.Config

// Server compares vectors elsewhere. While it fails, memories are found by their words.
type Server interface {
	search.Server
	Run(ctx context.Context) error            // sends it what changes, until ctx ends
	Wake()                                    // something changed
	Forget(ctx context.Context, ids []string) // removes the entries ids
	Probe(ctx context.Context) error          // asks whether it can be used
	Line(zone *time.Location) i18n.Text       // says for people how it is
}

// Names lists the backends as the configuration names them.
func Names() []string {
	names := make([]string, len(table))
	for i, b := range table {
		names[i] = b.Name
	}
	return names
}

// Of returns the backend called name; an unknown name is the first, flat_file.
func Of(name string) Backend {
	for _, b := range table {
		if b.Name == name {
			return b
		}
	}
	return table[0]
}
