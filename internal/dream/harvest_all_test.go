package dream

import (
	"context"
	"errors"
)

// All is Harvest for every conversation that has messages to be read. A conversation
// that fails does not keep the others from being read.
func (h *Harvester) All(ctx context.Context) (Harvested, error) {
	all, err := h.waiting(ctx)
	if err != nil {
		return Harvested{}, err
	}
	var sum Harvested
	var failed []error
	for _, w := range all {
		done, err := h.Harvest(ctx, w.room, 0)
		sum.add(done)
		if err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return sum, errors.Join(failed...)
}
