package dream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"reverie/internal/memory"
)

// BenchmarkPlan plans a night of 10,000 entries without a model.
func BenchmarkPlan(b *testing.B) {
	var all []memory.Entry
	towns := []string{"Berlin", "Hamburg", "Rome", "Lisbon", "Oslo", "Prague", "Paris"}
	for i := range 10_000 {
		who := fmt.Sprintf("Person%c%c%c", 'a'+i/10%26, 'a'+i/260%26, 'a'+i/6760%26)
		text := []string{
			who + " lives in " + towns[i%7] + ".", who + " has moved to " + towns[(i+3)%7] + ".", fmt.Sprintf("%s's bike lock code is %d.", who, i),
			who + " likes tea, mostly in the evening.", who + " likes tea.", who + " doesn't eat meat any more.", who + " eats meat on Sundays.",
			fmt.Sprintf("%s hat am %d. März Geburtstag.", who, i%28+1), who + " takes the blue pill before meals.", who + " works at the library.",
		}[i%10]
		all = append(all, memory.Entry{ID: fmt.Sprint("mem_", i), Text: text, Scope: memory.Shared, State: memory.Active, Source: memory.Harvest, ObservedAt: day0.Add(time.Duration(i) * time.Hour)})
	}
	for b.Loop() {
		n := &night{now: day0.AddDate(3, 0, 0), d: &Dreamer{cfg: Config{Ask: func(context.Context, string, string) (string, error) { return "", nil }}}}
		scopes := n.arrange(all)
		pairs, corrections := n.corrections(scopes, n.find(scopes))
		b.ReportMetric(float64(len(corrections)), "corrections")
		b.ReportMetric(float64(len(n.steps)), "steps")
		b.ReportMetric(float64(len(pairs)), "pairs")
	}
}
