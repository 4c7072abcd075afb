package main

import (
	"cmp"
	"context"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"reverie/internal/memory"
)

// QdrantConfig is the server that finds vectors with memory.backend qdrant. After
// loading, APIKey holds what its file said.
type QdrantConfig struct {
	URL        string `yaml:"url"` // of its REST interface
	APIKey     secret `yaml:"api_key"`
	APIKeyFile string `yaml:"api_key_file"`
	Collection string `yaml:"collection"` // "" = reverie
}

var collectionWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

func (c *Config) completeQdrant(r *reader, dir string) {
	q := c.Memory.Qdrant
	if q == nil {
		return
	}
	const key = "memory.qdrant."
	u := checkURL(r, key+"url", q.URL, "http://127.0.0.1:6333")
	q.Collection = cmp.Or(q.Collection, "reverie")
	r.check(rule{key + "collection", collectionWord.MatchString(q.Collection),
		"write letters, digits, - and _, 63 at most; every bot needs a name of its own"})
	c.secretFile(r, dir, key+"api_key", &q.APIKey, q.APIKeyFile)
	if u != nil && u.Scheme == "http" && q.APIKey != "" && !thisMachine(u.Hostname()) {
		c.warn("%surl: the key and the vectors go over the network for everybody to read; write https, or reach the server through a tunnel", key)
	}
}

// thisMachine reports whether host is this one, whatever listens there.
func thisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && (addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified())
}

// byMeaning reports whether memories are read for their meaning.
func (c *Config) byMeaning() bool {
	return c.Memory.Backend == "local_vector" || c.Memory.Backend == "qdrant"
}

// openPoints opens the server that memory.backend asks for; nil if it asks for
// none. Without vectors, what is forgotten leaves it all the same. patience is how long a
// question waits for it; 0 = not longer than an answer may.
func (b *bot) openPoints(v *memory.Vectors, patience time.Duration) *memory.Points {
	q := b.cfg.Memory.Qdrant
	if q == nil || b.cfg.Memory.Backend != "qdrant" {
		return nil
	}
	return memory.OpenPoints(memory.PointsConfig{
		DB: b.db, Vectors: v, URL: q.URL, Key: string(q.APIKey), Collection: q.Collection, Patience: patience, Log: b.log,
	})
}

func (b *bot) examineQdrant(ctx context.Context) []finding {
	const area = "qdrant"
	points := b.openPoints(nil, 0)
	if points == nil {
		return nil
	}
	const remedy = "see that it runs and answers; its address and key stand under memory.qdrant in the configuration. " +
		"Memories are found by their words meanwhile"
	return probe(ctx, area, b.cfg.Memory.Qdrant.URL, remedy, func(ctx context.Context) (string, error) { return "", points.Probe(ctx) })
}
