package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// benchWord is the pseudo-word of a rank: frequent ones are short.
func benchWord(rank uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n := rank + 7; n > 0; n /= 70 {
		b.WriteByte(consonants[n%14])
		b.WriteByte(vowels[n/14%5])
	}
	return b.String()
}

// benchMemories are n entries as lines to import, and questions of their words.
// The words are as frequent as those of a language.
func benchMemories(tb testing.TB, n int) (lines []byte, asked []string) {
	small := strings.Fields("the of and to in a is that it was for on are with they at be this have from or had by but what we can when there your how she")
	random := rand.New(rand.NewPCG(1, 2))
	words := rand.NewZipf(random, 1.1, 4, 40_000)
	begin := time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for i := range n {
		var text []string
		for range 6 + random.IntN(26) {
			if random.IntN(5) < 2 {
				text = append(text, small[random.IntN(len(small))])
			} else {
				text = append(text, benchWord(words.Uint64()))
			}
		}
		noError(tb, encoder.Encode(map[string]any{
			"text": strings.Join(text, " "), "scope": "shared", "subject": []string{"Anna", "Ben"}[i%2], "ref": fmt.Sprint("r", i),
			"conversation": fmt.Sprint("c", i/40), "seq": i, "observed_at": begin.Add(time.Duration(i) * 3 * time.Minute).Format(time.RFC3339),
		}))
		if i%max(1, n/400) == 0 {
			random.Shuffle(len(text), func(a, b int) { text[a], text[b] = text[b], text[a] })
			asked = append(asked, "When did Anna "+strings.Join(text[:min(len(text), 3+random.IntN(5))], " ")+"?")
		}
	}
	return out.Bytes(), asked
}

// cpuTime is the processor time of this process so far.
func cpuTime(tb testing.TB) time.Duration {
	var r syscall.Rusage
	noError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkSearch measures questions to 2,000 and 10,000 entries of one scope.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{2_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := openIndex(b)
			lines, asked := benchMemories(b, n)
			must(importInto(f).Import(b.Context(), "bench", lines))(b)
			var took []time.Duration
			ask := func(text string) {
				began := time.Now()
				must(f.Search(b.Context(), Query{Text: text, Scopes: []Scope{Shared}}))(b)
				took = append(took, time.Since(began))
			}
			for _, text := range asked {
				ask(text)
			}
			took = nil
			i, began := 0, cpuTime(b)
			for b.Loop() {
				ask(asked[i%len(asked)])
				i++
			}
			b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(i), "cpu-ms/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
