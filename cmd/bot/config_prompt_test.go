package main

import (
	"strings"
	"testing"
)

// TestConfigPrompt: what a person writes about the prompt is taken as it stands, and
// what cannot be is named.
func TestConfigPrompt(t *testing.T) {
	c, err := parse(t, "/x", small+"prompt:\n  layout: phased\n  instructions: |\n    Prefer ${UNITS}.\n    {agent_name} is kind.\ncontext: {component_size_limits: {tasks: 300}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Prompt.Instructions; got != "Prefer ${UNITS}.\n{agent_name} is kind.\n" {
		t.Errorf("instructions: %q", got)
	}
	if got := c.Context.Limits; got != (ComponentLimits{10_000, 300, 2_000}) {
		t.Errorf("limits: %+v", got)
	}
	if !c.Prompt.Steering {
		t.Error("no steering notes, though nobody said so")
	}
	if c, err := parse(t, "/x", small+"prompt: {steering: false}\n"); err != nil || c.Prompt.Steering {
		t.Errorf("steering: %v", err)
	}
	_, err = parse(t, "/x", small+"prompt: {instructions: \"a\\u0007b\"}\ncontext: {component_size_limits: {memories: 10, skills: many}}\n")
	for _, want := range []string{"prompt.instructions: contains a control character", "context.component_size_limits.memories: write a number of characters", "context.component_size_limits.skills: write a whole number"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no fault %q in %v", want, err)
		}
	}
	long := strings.Repeat("x", maxInstructions+1)
	if _, err = parse(t, "/x", small+"prompt: {instructions: "+long+"}\n"); err == nil || !strings.Contains(err.Error(), "at most 8000 characters") {
		t.Errorf("too long: %v", err)
	}
}

// TestConfigContext: what an owner may say of windows, tiers and GPU memory.
func TestConfigContext(t *testing.T) {
	c, err := parse(t, "/x", small+"context: {tier: 5, probe: false, vram_mib: 24564}\n")
	if err != nil || c.Context.Tier != 5 || c.Context.Probe || c.Context.VRAMMiB != 24564 || c.Context.Limits.Tasks != 5_000 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := parse(t, "/x", small); err != nil || c.Context.Tier != 0 || !c.Context.Probe || c.Context.VRAMMiB != 0 {
		t.Errorf("by itself: %+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"tier: 6": "context.tier: write 1 to 5", "tier: -1": "context.tier: write 1 to 5", "tier: high": "context.tier: write a whole number",
		"probe: maybe": "context.probe: write true or false", "vram_mib: -1": "context.vram_mib: write the memory", "vram_mib: 24GB": "context.vram_mib: write a whole number",
		"vram_mib: 99999999": "context.vram_mib: write the memory", "tiers: 3": "did you mean `tier`?",
	} {
		if _, err := parse(t, "/x", small+"context: {"+text+"}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: no %q in %v", text, want, err)
		}
	}
}
