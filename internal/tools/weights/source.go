package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"reverie/internal/llm/encoder"
)

// read finds model, weights and vocabulary in the package's archive and writes the
// file of weights. The archive is the very one that this was written for, by its hash.
func read(archive []byte, to io.Writer) error {
	files, err := unpack(archive)
	if err != nil {
		return err
	}
	weights, err := floats(files)
	if err != nil {
		return err
	}
	pieces, err := vocabulary(files["vocab.json"])
	if err != nil {
		return err
	}
	return encoder.Write(to, pieces, func(name string) []float32 { return weights[nameInGraph(name)] })
}

// unpack gives the files of the archive's folder dist.
func unpack(archive []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Dir(header.Name) != "package/dist" {
			continue
		}
		if files[path.Base(header.Name)], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// floats gives the float32 weights by their names in the model's graph. They lie
// one after the other in the shards that model.json names.
func floats(files map[string][]byte) (map[string][]float32, error) {
	var model struct {
		WeightsManifest []struct {
			Paths   []string
			Weights []struct {
				Name, Dtype string
				Shape       []int
			}
		}
	}
	if err := json.Unmarshal(files["model.json"], &model); err != nil {
		return nil, fmt.Errorf("model.json: %w", err)
	}
	all := map[string][]float32{}
	for _, group := range model.WeightsManifest {
		var raw []byte
		for _, p := range group.Paths {
			raw = append(raw, files[path.Base(p)]...)
		}
		for _, w := range group.Weights {
			n := 1
			for _, d := range w.Shape {
				n *= d
			}
			if w.Dtype == "float32" { // the others are shapes and axes
				values := make([]float32, n)
				for i := range values {
					values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
				}
				all[w.Name] = values
			}
			raw = raw[4*n:]
		}
	}
	return all, nil
}

// vocabulary reads pairs of text and score. A few scores are null, which the
// model's own tokenizer takes for 0.
func vocabulary(data []byte) ([]encoder.Piece, error) {
	var pairs [][2]any
	if err := json.Unmarshal(data, &pairs); err != nil {
		return nil, fmt.Errorf("vocab.json: %w", err)
	}
	pieces := make([]encoder.Piece, len(pairs))
	for i, p := range pairs {
		text, _ := p[0].(string)
		score, _ := p[1].(float64)
		pieces[i] = encoder.Piece{Text: text, Score: score}
	}
	return pieces, nil
}

// nameInGraph turns a name of the encoder's into the one of the model's graph.
func nameInGraph(name string) string {
	if rest, ok := strings.CutPrefix(name, "layer "); ok {
		number, part, _ := strings.Cut(rest, "/")
		return strings.Replace(graph[part], "Layer_N", "Layer_"+number, 1)
	}
	return graph[name]
}

const (
	applied = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
	kept    = "module/Encoder_en/KonaTransformer/Encode/"
	layer   = "Layer_N/TransformerLayer/"
	joined  = "/ConcatPartitions/concat"
)

var graph = map[string]string{
	"embeddings":  "module/Embeddings_en",
	"timing":      applied + "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1",
	"out/weights": "module/Encoder_en/hidden_layers/tanh_layer_0/weights",
	"out/bias":    "module/Encoder_en/hidden_layers/tanh_layer_0/bias",

	"attention norm/gain":   applied + layer + "layer_prepostprocess/layer_norm/layer_norm_scale" + joined,
	"attention norm/bias":   applied + layer + "layer_prepostprocess/layer_norm/layer_norm_bias" + joined,
	"attention/weights":     kept + layer + "MultiheadAttention/qkv_transform_single/kernel/part_0",
	"attention/bias":        applied + layer + "MultiheadAttention/qkv_transform_single/bias" + joined,
	"attention out/weights": kept + layer + "MultiheadAttention/output_transform_single/kernel/part_0",
	"attention out/bias":    applied + layer + "MultiheadAttention/output_transform_single/bias" + joined,
	"residual/weights":      applied + layer + "dense/kernel" + joined,
	"residual/bias":         applied + layer + "dense/bias" + joined,
	"forward norm/gain":     applied + layer + "FFN/layer_prepostprocess/layer_norm/layer_norm_scale" + joined,
	"forward norm/bias":     applied + layer + "FFN/layer_prepostprocess/layer_norm/layer_norm_bias" + joined,
	"forward up/weights":    applied + "TransformerStack/" + layer + "FFN/conv1/Tensordot/Reshape_1",
	"forward up/bias":       applied + layer + "FFN/conv1/bias" + joined,
	"forward down/weights":  applied + "TransformerStack/" + layer + "FFN/conv2/Tensordot/Reshape_1",
	"forward down/bias":     applied + layer + "FFN/conv2/bias" + joined,
}
