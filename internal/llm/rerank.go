package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
)

// Rerank sorts texts by how well each answers a question, best first, and returns their indexes. Models of
// the role rerank are asked in failover order, by /rerank as llama.cpp, vLLM and Jina serve it. An error is an
// *Error, or ctx's.
func (m *Models) Rerank(ctx context.Context, question string, texts []string) ([]int, error) {
	return askInTurn(ctx, m, "rerank", func(mod *model) ([]int, *Error) { return mod.rerank(ctx, question, texts) })
}

func (m *model) rerank(ctx context.Context, question string, texts []string) (order []int, _ *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, errTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": m.Model, "query": question, "documents": texts, "top_n": len(texts)})
	if err == nil {
		body, err = m.fetch(ctx, http.MethodPost, m.BaseURL+"/rerank", body, maxAnswer)
	}
	if err == nil {
		order, err = parseRanking(body, len(texts))
	}
	if err != nil {
		return nil, m.failed(m.judge(ctx, err))
	}
	return order, nil
}

// parseRanking parses scores and returns the order of n texts. Each text needs one score.
func parseRanking(raw []byte, n int) (order []int, err error) {
	var answer struct {
		Results []struct {
			Index int      `json:"index"`
			Score *float64 `json:"relevance_score"`
		} `json:"results"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Results) != n {
		return nil, garbled("the answer is no ranking of %d texts: it begins with %s", n, excerpt(raw))
	}
	scores := map[int]float64{}
	for _, r := range answer.Results {
		if _, twice := scores[r.Index]; twice || r.Score == nil || r.Index < 0 || r.Index >= n {
			return nil, garbled("the ranking of %d texts has no score for each of them", n)
		}
		scores[r.Index] = *r.Score
		order = append(order, r.Index)
	}
	slices.Sort(order) // texts with the same score keep their order
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order, nil
}
