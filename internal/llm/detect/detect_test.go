package detect

import (
	"reflect"
	"testing"
)

func TestSources(t *testing.T) {
	m := Server{Model: `a"b&c`, BaseURL: "http://host/ollama/v1"}
	got := m.sources()
	if got[0].url != "http://host/ollama/props?autoload=false&model=a%22b%26c" || got[3].url != "http://host/ollama/v1/models" || got[4].body != `{"model":"a\"b\u0026c"}` {
		t.Errorf("%+v", got)
	}
}

func FuzzReadDescriptions(f *testing.F) {
	for _, s := range []string{`{"data":[{"id":"m","max_model_len":40960,"parent":"m"}]}`, `{"models":[{"name":"m","context_length":1}]}`, `{"default_generation_settings":{"n_ctx":8192}}`,
		`{"model_info":{"general.architecture":"a","a.context_length":8192},"parameters":"num_ctx 8192"}`, `null`, `{"data":[{"id":"m","state":"loaded","loaded_context_length":1e3}]}`, `maximum context length is 99999999999999999999 tokens`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var all []Found
		for _, read := range []func([]byte, string) (Found, string, error){readProps, readLMStudio, readPS, readList, readShow} {
			a, _, err := read([]byte(raw), "m")
			if err != nil && !reflect.DeepEqual(a, Found{}) {
				t.Errorf("%+v beside %v", a, err)
			}
			all = append(all, a)
		}
		for _, n := range []int{decide(all).Limit.Tokens, LimitInError(raw)} {
			if n != 0 && (n < minTokens || n > maxTokens) {
				t.Errorf("a window of %d", n)
			}
		}
	})
}
