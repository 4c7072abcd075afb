package web

import "context"

// doctor offers to run the checks: they ask servers, so they do not run by themselves.
func doctor(context.Context, *visit) (view, error) {
	const note = "Checks files, models, the prompts of the newest conversations, and what tools need. It may take half a minute."
	return view{Title: "Doctor", Blocks: []block{{Note: note, Forms: []form{runChecks}}}}, nil
}

var runChecks = form{Action: "/doctor", Buttons: []button{{"", "", "Run the checks"}}}

// examine runs the checks.
func examine(ctx context.Context, v *visit) (view, error) {
	list := block{Head: []string{"Area", "State", "What", "Remedy"}, Forms: []form{runChecks}}
	for _, f := range v.cfg.Doctor(ctx) {
		state := cell{Text: f.State, Class: map[string]string{"ok": "good", "ill": "bad"}[f.State]}
		list.Rows = append(list.Rows, v.row(f.Area, state, long(f.What), long(f.Remedy)))
	}
	return view{Title: "Doctor", Blocks: []block{list}}, nil
}
