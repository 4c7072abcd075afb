package command

import (
	"cmp"
	"context"
)

func startNew(ctx context.Context, call *Call, _ string) (string, error) {
	return call.text(ctx, "new"), call.Session.StartNew(ctx)
}

func retry(ctx context.Context, call *Call, _ string) (string, error) {
	return "", cmp.Or(call.Session.Retry(ctx, call.In), ErrAnswered)
}

func stop(ctx context.Context, call *Call, _ string) (string, error) {
	return call.Session.Stop(ctx, call.In)
}

func compact(ctx context.Context, call *Call, _ string) (string, error) {
	return call.Session.CompactNow(ctx, call.In)
}

func approve(ctx context.Context, call *Call, args string) (string, error) {
	return call.Session.Approve(ctx, call.In, args)
}

func deny(ctx context.Context, call *Call, args string) (string, error) {
	return call.Session.Deny(ctx, call.In, args)
}
