package storage

import (
	"path"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

func (r *reader) readArrays(f *facts.StorageFacts, names []string) {
	f.Arrays = []facts.RAIDArray{}
	for _, name := range matching(names, maxArrays, arrayName.MatchString) {
		dir := path.Join(disks, name, "md")
		state, err := r.Host.Text(dir + "/array_state")
		if err != nil {
			r.Missing("arrays.state", err) // Without the folder, it is no array.
			continue
		}
		if state = oneWord.FindString(state); state != "clear" { // That of a device without an array.
			f.Arrays = append(f.Arrays, r.array(name, dir, state))
		}
	}
}

func (r *reader) array(name, dir, state string) facts.RAIDArray {
	text := func(file string) string { return r.Text("arrays."+file, path.Join(dir, file)) }
	a := facts.RAIDArray{Name: name, State: state, Level: oneWord.FindString(text("level")), Sync: oneWord.FindString(text("sync_action"))}
	disks, _, _ := strings.Cut(text("raid_disks"), " ") // While it is reshaped: "5 (4)".
	a.Disks, _ = smallNumber(disks)
	if n, ok := smallNumber(text("degraded")); ok {
		a.Degraded = &n
	}
	if percent, ok := progress(text("sync_completed")); ok {
		a.SyncPercent = &percent
	}
	a.Members = r.members(dir)
	return a
}

func (r *reader) members(dir string) []facts.RAIDMember {
	entries, err := r.Host.Dir(dir)
	if err != nil {
		r.Missing("arrays.members", err)
		return nil
	}
	list := []facts.RAIDMember{}
	for _, entry := range matching(entries, maxMembers, func(name string) bool {
		return strings.HasPrefix(name, "dev-") && deviceName.MatchString(name[len("dev-"):])
	}) {
		state := r.Text("arrays.members.state", path.Join(dir, entry, "state"))
		list = append(list, facts.RAIDMember{Device: strings.TrimPrefix(entry, "dev-"), State: memberStates.FindString(state)})
	}
	return list
}
