package facts

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// anyAddress is a PCI address in any of the forms that logs and drivers use.
var anyAddress = lazy.New(`^(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?$`)

// Address returns a PCI address as the facts write it ("0000:3b:00.0"), from one that may lack domain or function or
// has a domain of eight digits, in either case; it is empty if s is not an address.
func Address(s string) string {
	groups := anyAddress.FindStringSubmatch(s)
	if groups == nil {
		return ""
	}
	domain := strings.TrimLeft(groups[1], "0")
	domain = strings.Repeat("0", max(0, 4-len(domain))) + domain
	return strings.ToLower(domain + ":" + groups[2] + ":" + groups[3] + "." + cmp.Or(groups[4], "0"))
}
