package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/vram"
)

// fit works out which window of the chat model fits into this machine's GPUs, from
// the header of the model's file. It reads files, and so is called in the background.
func (b *bot) fit(ctx context.Context) {
	said := prompt.Said{}
	if here, _ := b.located(); here {
		f, err := b.fitting(ctx)
		switch {
		case err != nil:
			said.By = err.Error()
		case f.Window == 0:
			said.By = f.Reason
		default:
			said = prompt.Said{Tokens: f.Window, By: f.Reason}
		}
	}
	b.fits.Store(&said)
}

func (b *bot) fitting(ctx context.Context) (vram.Fitting, error) {
	report := b.gpu.Last()
	if report.State != vram.Known {
		return vram.Fitting{}, fmt.Errorf("the GPU memory is not known: %s", report.Reason)
	}
	m, found := b.chatModel()
	blob, err := modelFile(m.Model, found)
	if err != nil {
		return vram.Fitting{}, err
	}
	shape, err := vram.ReadShape(ctx, blob.Path)
	if err != nil {
		return vram.Fitting{}, err
	}
	return vram.Fit(shape, report, vram.Options{Beside: blob.Beside, Held: found.Held, Limit: found.Trained})
}

// modelFile is the file of a model, if its server tells or is known to keep it in a
// certain place.
func modelFile(model string, found llm.Detection) (vram.Blob, error) {
	if found.File != "" {
		return vram.Blob{Path: found.File}, nil
	}
	if found.Server != llm.Ollama {
		return vram.Blob{}, errors.New("the server does not say which file its model is")
	}
	dir := os.Getenv("OLLAMA_MODELS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return vram.Blob{}, err
		}
		dir = filepath.Join(home, ".ollama", "models")
	}
	return vram.OllamaBlob(dir, model)
}
