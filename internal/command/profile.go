package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/profile"
)

// changeProfile is the command !profile: it shows the person's own profile, changes a field, or deletes it.
func changeProfile(ctx context.Context, call *Call, args string) (string, error) {
	person := call.Place.Readers().Person()
	if person == "" {
		return call.text(ctx, "profile.where"), nil
	}
	if args == "forget" {
		return call.text(ctx, "profile.forgotten"), call.Profiles.Forget(person)
	}
	values, faults, err := call.Profiles.Read(person)
	if err != nil || args == "" {
		return showProfile(ctx, call, values, faults), err
	}
	field, value := call.fieldAndValue(ctx, args)
	value, err = call.Profiles.Set(person, field, value)
	var why i18n.Text
	switch {
	case errors.As(err, &why):
		return call.Messages.Reason(ctx, call.In.Room, why), nil
	case value == "":
		return call.text(ctx, "profile.removed", "field", call.fieldName(ctx, field), "value", values[field]), err
	}
	return call.text(ctx, "profile.set", "field", call.fieldName(ctx, field), "value", value), err
}

// showProfile lists all fields, and the lines that do not count.
func showProfile(ctx context.Context, call *Call, values map[string]string, faults []profile.Fault) string {
	var b strings.Builder
	b.WriteString(call.text(ctx, "profile.head") + "\n\n")
	for _, field := range profile.Fields {
		fmt.Fprintf(&b, "- %s: %s\n", call.fieldName(ctx, field), cmp.Or(values[field], call.text(ctx, "settings.none")))
	}
	b.WriteString("\n" + call.text(ctx, "profile.usage", "file", code(profile.RelativePath(call.In.Sender))))
	for _, f := range faults {
		why := call.Messages.Reason(ctx, call.In.Room, f.Why)
		b.WriteString("\n\n" + call.text(ctx, "profile.fault", "line", strconv.Itoa(f.Line), "why", why))
	}
	return b.String()
}

// fieldName returns the name of a field in the room's language.
func (c *Call) fieldName(ctx context.Context, field string) string {
	return c.text(ctx, "profile.field."+strings.ReplaceAll(field, " ", "_"))
}

// fieldAndValue splits args after the name of a field, in English or in the room's language.
func (c *Call) fieldAndValue(ctx context.Context, args string) (field, value string) {
	for _, field := range profile.Fields {
		names := regexp.QuoteMeta(field) + "|" + regexp.QuoteMeta(c.fieldName(ctx, field))
		if m := regexp.MustCompile(`(?is)^(?:` + names + `)(?:[\s:：]+(.*))?$`).FindStringSubmatch(args); m != nil {
			return field, m[1]
		}
	}
	return args, ""
}
