package vram

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Blob is where Ollama keeps a model.
type Blob struct {
	Path string // the model, in GGUF
	// Beside is the size of what is loaded with it, in bytes: what sees pictures, adapters.
	Beside uint64
}

// maxManifest is the largest manifest that is read, in bytes. Real ones have some hundred.
const maxManifest = 1 << 20

var (
	ollamaName   = regexp.MustCompile(`^(?:(?:(\w[\w.-]*(?::\d{1,5})?)/)?(\w[\w.-]*)/)?(\w[\w.-]*)(?::(\w[\w.-]*))?$`)
	ollamaDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// OllamaBlob finds the file of a model by the name Ollama knows it by (qwen3:8b,
// hf.co/someone/model:Q4_K_M) in its folder models, which is ~/.ollama/models if
// OLLAMA_MODELS does not say otherwise. It reads nothing outside that folder.
func OllamaBlob(models, name string) (Blob, error) {
	part := ollamaName.FindStringSubmatch(name)
	if part == nil {
		return Blob{}, fmt.Errorf("%q is not a name of a model: want NAME, NAME:TAG or HOST/OWNER/NAME:TAG", name)
	}
	manifest := path.Join("manifests", cmp.Or(part[1], "registry.ollama.ai"), cmp.Or(part[2], "library"),
		part[3], cmp.Or(part[4], "latest"))
	root, err := os.OpenRoot(models)
	if err != nil {
		return Blob{}, fmt.Errorf("the models of Ollama: %w", err)
	}
	defer root.Close()
	blob, err := ollamaLayers(root, models, manifest)
	if err != nil {
		return Blob{}, fmt.Errorf("model %s in %s: %w", name, models, err)
	}
	return blob, nil
}

// ollamaLayers reads a manifest and finds its files.
func ollamaLayers(root *os.Root, models, name string) (Blob, error) {
	size, err := plainSize(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Blob{}, fmt.Errorf("%s: there is no such model here", name)
	case err == nil && size > maxManifest:
		return Blob{}, fmt.Errorf("%s: it is larger than %s", name, Size(maxManifest))
	case err != nil:
		return Blob{}, err
	}
	raw, err := root.ReadFile(name)
	if err != nil {
		return Blob{}, err
	}
	var manifest struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return Blob{}, fmt.Errorf("%s: %w", name, err)
	}
	var blob Blob
	for _, layer := range manifest.Layers {
		kind, _ := strings.CutPrefix(layer.MediaType, "application/vnd.ollama.image.")
		if kind != "model" && kind != "projector" && kind != "adapter" {
			continue
		}
		if !ollamaDigest.MatchString(layer.Digest) {
			return Blob{}, fmt.Errorf("%s: %q is not a digest", name, layer.Digest)
		}
		file := path.Join("blobs", strings.Replace(layer.Digest, ":", "-", 1))
		size, err := plainSize(root, file)
		if err != nil {
			return Blob{}, err
		}
		if kind != "model" {
			blob.Beside += size
			continue
		}
		if blob.Path != "" {
			return Blob{}, fmt.Errorf("%s: it has several model files; only one is read", name)
		}
		blob.Path = filepath.Join(models, filepath.FromSlash(file))
	}
	if blob.Path == "" {
		return Blob{}, fmt.Errorf("%s: it names no model file in GGUF; it may be one that runs elsewhere", name)
	}
	return blob, nil
}

// plainSize returns the size of a plain file.
func plainSize(root *os.Root, name string) (uint64, error) {
	info, err := root.Stat(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, withoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s: it is not a plain file", name)
	}
	return uint64(info.Size()), nil
}
