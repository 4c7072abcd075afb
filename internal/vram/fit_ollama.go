package vram

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

var (
	ollamaPart   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	ollamaHost   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,254}(:[0-9]{1,5})?$`)
	ollamaDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// OllamaBlob finds the file of a model by the name Ollama knows it by (qwen3:8b,
// hf.co/someone/model:Q4_K_M) in its folder models, which is ~/.ollama/models if
// OLLAMA_MODELS does not say otherwise. It reads nothing outside that folder.
func OllamaBlob(models, name string) (Blob, error) {
	manifest, err := ollamaManifest(name)
	if err != nil {
		return Blob{}, err
	}
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

// ollamaManifest is where the manifest of a model lies within the folder.
func ollamaManifest(name string) (string, error) {
	rest, tag := name, "latest"
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		rest, tag = name[:colon], name[colon+1:]
	}
	parts := strings.Split(rest, "/")
	switch len(parts) {
	case 1:
		parts = append([]string{"registry.ollama.ai", "library"}, parts...)
	case 2:
		parts = append([]string{"registry.ollama.ai"}, parts...)
	}
	ok := len(parts) == 3 && ollamaHost.MatchString(parts[0])
	for _, part := range append([]string{tag}, parts[1:]...) {
		ok = ok && ollamaPart.MatchString(part)
	}
	if !ok {
		return "", fmt.Errorf("%q is not a name of a model: want NAME, NAME:TAG or HOST/OWNER/NAME:TAG", name)
	}
	return path.Join("manifests", parts[0], parts[1], parts[2], tag), nil
}

// ollamaLayers reads a manifest and finds its files.
func ollamaLayers(root *os.Root, models, name string) (Blob, error) {
	raw, err := readPlain(root, name, 1<<20)
	if err != nil {
		return Blob{}, fmt.Errorf("%s: %w", name, err)
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
		info, err := root.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is not a plain file")
		}
		if err != nil {
			return Blob{}, fmt.Errorf("%s: %w", file, withoutPath(err))
		}
		if kind != "model" {
			blob.Beside += uint64(info.Size())
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

// readPlain reads a plain file of at most limit bytes.
func readPlain(root *os.Root, name string, limit int64) ([]byte, error) {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("there is no such model here")
		}
		return nil, errors.Join(withoutPath(err), errors.New("not a plain file"))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("it is larger than %s", Size(uint64(limit)))
	}
	return raw, err
}
