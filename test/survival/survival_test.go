package main

import (
	"testing"

	"reverie/internal/store/storetest"
)

// TestSurvival is a part of `make survival`: one world in each set, some nights, the correct model, a
// deceived or cunning one and the malicious ones. In the end all true facts are there.
func TestSurvival(t *testing.T) {
	storetest.DoNotWait()
	for i, s := range []set{english, german, heldOut, heldOutGerman, freshSpanish, germanLines, household, practice} {
		t.Run(s.name, func(t *testing.T) {
			nights := map[string]int{"perfect": 6, []string{"hostile", "lossy", "hostile2", "garbage", "hostile", "hostile", "hostile", "hostile"}[i]: 3, []string{"cunning", "careless"}[i%2]: 4}
			all, err := measure(t.Context(), s, 1, func(model string) int { return nights[model] })
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 3 {
				t.Fatalf("%+v", all)
			}
			for _, r := range all {
				if r.Outdated < 20 {
					t.Errorf("%+v", r)
				}
				of := []result{r}
				t.Log(line(of))
				for _, fault := range faults(of) {
					t.Errorf("%s: %s", r.Judge, fault)
				}
			}
		})
	}
}

// TestFaults: each broken promise is reported.
func TestFaults(t *testing.T) {
	good := result{Judge: "perfect", Facts: 500, Entries: 800, Holds: 450, Kept: 450, Trace: 500, Outdated: 50, Retired: 30, Asked: 15, Copies: 40, Week: 400}
	if got := faults([]result{good}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	for name, breakIt := range map[string]func(*result){
		"small": func(r *result) { r.Facts = 449 }, "lost": func(r *result) { r.Kept-- }, "no trace": func(r *result) { r.Trace-- }, "invented": func(r *result) { r.Invented++ },
		"not settled": func(r *result) { r.Asked = 12 }, "copies": func(r *result) { r.Copies = 46 }, "calls": func(r *result) { r.Week++ }, "repeated": func(r *result) { r.Repeated++ },
	} {
		r := good
		breakIt(&r)
		if got := faults([]result{r}); len(got) != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
