package facts

import (
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
	domain, function := groups[1], groups[4]
	if domain = strings.TrimLeft(domain, "0"); len(domain) < 4 {
		domain = strings.Repeat("0", 4-len(domain)) + domain
	}
	if function == "" {
		function = "0"
	}
	return strings.ToLower(domain + ":" + groups[2] + ":" + groups[3] + "." + function)
}
