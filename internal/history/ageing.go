package history

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"reverie/internal/llm"
)

// A summary that follows another has three parts. What was said since the one before is
// told in detail; what that one told in detail is kept at moderate length, and all that is
// older is compact. What a part loses that must not be lost goes to the details.

// Headings of the parts, the oldest first.
const (
	LongestAgo = "Longest ago"
	Earlier    = "Earlier"
	Lately     = "Lately"
)

// Shares of the summary's room, in percent, that the parts with age have at most.
const (
	EarlierShare = 30
	LongestShare = 20
)

// ages is a summary by the age of what it says.
type ages struct {
	longest, earlier, lately string
	headed                   bool // it has headings
}

var ageHeading = regexp.MustCompile(`(?i)^[#*_\s]*(` + LongestAgo + `|` + Earlier + `|` + Lately + `)[*_\s]*(?::[*_\s]*(.*))?$`)

// agesOf takes a summary apart. Words under no heading are new.
func agesOf(summary string) ages {
	var a ages
	part := &a.lately
	for line := range strings.Lines(summary) {
		if m := ageHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			a.headed = true
			switch strings.ToLower(m[1]) {
			case strings.ToLower(LongestAgo):
				part = &a.longest
			case strings.ToLower(Earlier):
				part = &a.earlier
			default:
				part = &a.lately
			}
			line = m[2] + "\n"
		}
		*part += line
	}
	a.longest, a.earlier, a.lately = strings.TrimSpace(a.longest), strings.TrimSpace(a.earlier), strings.TrimSpace(a.lately)
	return a
}

// String is the summary as it is kept; without age there are no headings.
func (a ages) String() string {
	if a.longest == "" && a.earlier == "" {
		return a.lately
	}
	var parts []string
	for _, p := range []struct{ heading, text string }{{LongestAgo, a.longest}, {Earlier, a.earlier}, {Lately, a.lately}} {
		if p.text != "" {
			parts = append(parts, p.heading+":\n"+p.text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// older is a one compaction later, without what is new then, in a summary of at most
// so many tokens.
func (a ages) older(most int) ages {
	a.longest = briefly(a.longest+"\n"+a.earlier, most*LongestShare/100)
	a.earlier = briefly(a.lately, most*EarlierShare/100)
	a.lately = ""
	return a
}

var errNothingNew = errors.New("the summary says nothing of what was said since the one before")

// Aged is what a model wrote as the summary that follows before, with its parts
// within their shares of most tokens; a part that it forgot is taken from before.
// What has no headings stays as it is written: then all of it is new.
func Aged(before, written string, most int) (string, error) {
	a := agesOf(written)
	switch {
	case !a.headed:
		return strings.TrimSpace(written), nil
	case a.lately == "":
		return "", errNothingNew
	}
	was := agesOf(before).older(most)
	a.longest = briefly(cmp.Or(a.longest, was.longest), most*LongestShare/100)
	a.earlier = briefly(cmp.Or(a.earlier, was.earlier), most*EarlierShare/100)
	rest := a
	rest.lately = "-"
	a.lately = briefly(a.lately, most*overLong/100-llm.EstimateTokens(rest.String()))
	return a.String(), nil
}

// briefly keeps at most so many tokens of text: if not all of it, then sentences, of
// which what was decided stays first and then the newest, in the order they stand in.
func briefly(text string, most int) string {
	text = strings.ReplaceAll("\n"+text, "\n"+saidSince, "\n")
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n"+notListed, ""))
	if llm.EstimateTokens(text) <= most {
		return text
	}
	var all []detail
	for _, s := range sentences(text) {
		all = append(all, newDetail("", s, len(all)))
	}
	slices.SortStableFunc(all, func(a, b detail) int {
		if a, b := min(a.rank, saidRank), min(b.rank, saidRank); a != b {
			return a - b
		}
		return b.at - a.at
	})
	var kept []detail
	for _, d := range all {
		n := llm.EstimateTokens(d.line) + 2 // for the dash and the line end
		if n <= most {
			most -= n
			kept = append(kept, d)
		}
	}
	slices.SortFunc(kept, func(a, b detail) int { return a.at - b.at })
	var b strings.Builder
	for _, d := range kept {
		b.WriteString("- " + d.line + "\n")
	}
	return strings.TrimSpace(b.String())
}
