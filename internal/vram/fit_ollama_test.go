package vram

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	modelHash     = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	projectorHash = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	missingHash   = "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
	linkHash      = "sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
)

func put(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// layers is a manifest with layers of such kinds and digests.
func layers(pairs ...string) string {
	text := `{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"digest":"sha256:00"},"layers":[{"mediaType":"application/vnd.ollama.image.template","digest":"x"}`
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf(`,{"mediaType":"application/vnd.ollama.image.%s","digest":%q,"size":1}`, pairs[i], pairs[i+1])
	}
	return text + "]}"
}

func TestOllamaBlob(t *testing.T) {
	models, outside := t.TempDir(), t.TempDir()
	blob := func(hash string) string { return filepath.Join(models, "blobs", strings.Replace(hash, ":", "-", 1)) }
	m := small()
	put(t, string(m.header()), blob(modelHash))
	if err := os.Truncate(blob(modelHash), m.size()); err != nil {
		t.Fatal(err)
	}
	put(t, strings.Repeat("p", 1234), blob(projectorHash))
	put(t, "secret", outside, "file")
	if err := os.Symlink(filepath.Join(outside, "file"), blob(linkHash)); err != nil {
		t.Fatal(err)
	}
	in := func(content string, path ...string) {
		put(t, content, append([]string{models, "manifests"}, path...)...)
	}
	in(layers("model", modelHash), "registry.ollama.ai", "library", "small", "latest")
	in(layers("model", modelHash, "projector", projectorHash, "adapter", projectorHash), "registry.ollama.ai", "library", "small", "2b")
	in(layers("model", modelHash), "registry.ollama.ai", "someone", "own", "latest")
	in(layers("model", modelHash), "hf.co", "someone", "Small-GGUF", "Q4_K_M")
	in(layers("model", modelHash), "localhost:5000", "a", "b", "latest")
	in(layers("model", missingHash), "registry.ollama.ai", "library", "gone", "latest")
	in(layers("model", linkHash), "registry.ollama.ai", "library", "link", "latest")
	in(layers("model", "sha256:../../../../etc/passwd"), "registry.ollama.ai", "library", "evil", "latest")
	in(layers("model", modelHash, "model", modelHash), "registry.ollama.ai", "library", "two", "latest")
	in(layers(), "registry.ollama.ai", "library", "cloud", "latest")
	in("{", "registry.ollama.ai", "library", "torn", "latest")
	in(strings.Repeat(" ", 1<<20)+layers("model", modelHash), "registry.ollama.ai", "library", "huge", "latest")
	put(t, layers("model", modelHash), outside, "latest")
	if err := os.Symlink(outside, filepath.Join(models, "manifests", "registry.ollama.ai", "library", "away")); err != nil {
		t.Fatal(err)
	}
	for name, beside := range map[string]uint64{
		"small": 0, "small:latest": 0, "small:2b": 2468, "someone/own": 0, "library/small": 0,
		"registry.ollama.ai/library/small:latest": 0, "hf.co/someone/Small-GGUF:Q4_K_M": 0, "localhost:5000/a/b": 0,
	} {
		got, err := OllamaBlob(models, name)
		if err != nil || got != (Blob{Path: blob(modelHash), Beside: beside}) {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if s, err := ReadShape(t.Context(), got.Path); err != nil || s.trained == 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for name, want := range map[string]string{
		"": "not a name", "..": "not a name", "a/../b": "not a name", "../../etc/passwd": "not a name", "a/b/c/d": "not a name",
		"small:": "not a name", "small:a:b": "not a name", "small:..": "not a name", "/small": "not a name", `a\b`: "not a name", "a\x00": "not a name",
		"unheard": "no such model", "small:8b": "no such model", "gone": "sha256-ccc", "link": "sha256-ddd", "evil": "not a digest",
		"two": "several model files", "cloud": "names no model file", "torn": "unexpected end", "huge": "larger than", "away": "away",
	} {
		if got, err := OllamaBlob(models, name); err == nil || !strings.Contains(err.Error(), want) || got.Path != "" {
			t.Errorf("%q: %+v, %v; want %q", name, got, err, want)
		}
	}
	if _, err := OllamaBlob(filepath.Join(models, "none"), "small"); err == nil {
		t.Error("a folder that is not there has a model")
	}
}
