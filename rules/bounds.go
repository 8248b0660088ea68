package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// A rule that takes too long or too much memory is stopped between two steps of its
// evaluation. A single call of a function is one step, so the work of one call
// is bounded here: a call that would exceed the bounds fails, and the rule
// with it.
const (
	// maxCallBytes bounds the argument of a function that reads all of it, and
	// the result. The longest text that a built-in rule handles is a
	// line of a log.
	maxCallBytes = 1 << 20
	// maxPattern bounds a regular expression; the longest one in a built-in rule has a
	// tenth of that.
	maxPattern = 16 << 10
	// maxExponent bounds a number in arithmetic: above it, a float64 is infinite, and
	// an integer needs memory for all its digits.
	maxExponent = 308
	// maxElements bounds a list that a function joins.
	maxElements = 1 << 20
)

// refusedFunctions are the functions that no rule may call, in addition to those whose result does not
// follow from the facts: those that read foreign formats or keys, which facts do not
// contain, and those whose work is unbounded (graph.reachable_paths,
// regex.globs_match, templates) or grows out of proportion to their arguments and that no built-in rule calls.
var refusedFunctions = []string{
	"bits.lsh", "crypto.", "glob.", "graph.reachable_paths", "graphql.", "io.jwt.", "json.unmarshal", "providers.", "regex.globs_match",
	"regex.template_match", "rego.parse_module", "strings.render_template", "strings.replace_n", "units.parse_bytes", "yaml.",
}

// callBound returns what is wrong with the operands of a call; empty if nothing is.
type callBound func(operands []*ast.Term) string

// callBounds are those of each function.
var callBounds = map[string]callBound{
	"array.concat":  inElements,
	"array.flatten": inBytes,
	"sprintf":       allBounds(inBytes, inFormat),
	"units.parse":   inUnits, "to_number": inUnits,
	"replace": allBounds(inBytes, inReplaced), "regex.replace": allBounds(inBytes, inPattern(1), inReplaced),
	"regex.match": allBounds(inBytes, inPattern(0)), "regex.split": allBounds(inBytes, inPattern(0)), "regex.find_n": allBounds(inBytes, inPattern(0)),
	"regex.find_all_string_submatch_n": allBounds(inBytes, inPattern(0)), "regex.is_valid": allBounds(inBytes, inPattern(0)), "re_match": allBounds(inBytes, inPattern(0)),
}

func init() {
	for _, name := range []string{
		"base64.decode", "base64.encode", "base64.is_valid", "base64url.decode", "base64url.encode", "base64url.encode_no_pad", "concat", "hex.decode",
		"hex.encode", "indexof", "indexof_n", "internal.template_string", "json.is_valid", "json.marshal", "json.marshal_with_options", "lower", "print",
		"split", "strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.reverse", "strings.split_n", "substring", "trace", "trim",
		"trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper", "urlquery.decode", "urlquery.decode_object", "urlquery.encode",
		"urlquery.encode_object",
	} {
		callBounds[name] = inBytes
	}
	for _, name := range []string{
		"abs", "bits.and", "bits.negate", "bits.or", "bits.rsh", "bits.xor", "ceil", "div", "floor", "format_int", "minus", "mul", "numbers.range",
		"numbers.range_step", "plus", "product", "rem", "round", "sum",
	} {
		callBounds[name] = inNumbers
	}
	for name, within := range callBounds {
		call := topdown.GetBuiltin(name)
		topdown.RegisterBuiltinFunc(name, func(c topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
			if fault := within(operands); fault != "" {
				return topdown.Halt{Err: &topdown.Error{Code: topdown.BuiltinErr, Message: fmt.Sprintf("%s: %s", name, fault), Location: c.Location}}
			}
			return call(c, operands, iter)
		})
	}
}

func allBounds(all ...callBound) callBound {
	return func(operands []*ast.Term) string {
		for _, one := range all {
			if fault := one(operands); fault != "" {
				return fault
			}
		}
		return ""
	}
}

// inBytes checks that the operands, written out, have a bounded size.
func inBytes(operands []*ast.Term) string {
	left := maxCallBytes
	for _, o := range operands {
		if left = measure(o.Value, left); left < 0 {
			return fmt.Sprintf("its arguments are larger than %d MiB", maxCallBytes>>20)
		}
	}
	return ""
}

// measure subtracts the size of a value, written out, from what is left, and stops when
// nothing is. A value may contain another many times, so it can be larger than the
// memory that it takes.
func measure(v ast.Value, left int) int {
	each := func(t *ast.Term) bool {
		left = measure(t.Value, left)
		return left < 0
	}
	left -= 2
	switch v := v.(type) {
	case ast.String:
		left -= len(v)
	case ast.Number:
		left -= len(v)
	case *ast.Array:
		v.Until(each)
	case ast.Set:
		v.Until(each)
	case ast.Object:
		v.Until(func(k, value *ast.Term) bool { return each(k) || each(value) })
	}
	return left
}

// inElements checks that the joined list is not too long.
func inElements(operands []*ast.Term) string {
	n := 0
	for _, o := range operands {
		if a, ok := o.Value.(*ast.Array); ok {
			n += a.Len()
		}
	}
	if n > maxElements {
		return fmt.Sprintf("the list would have more than %d elements", maxElements)
	}
	return ""
}

// inNumbers checks that no number, alone or in a list, has more digits than a
// float64 can represent.
func inNumbers(operands []*ast.Term) string {
	huge := func(t *ast.Term) bool {
		n, ok := t.Value.(ast.Number)
		return ok && tooLarge(string(n))
	}
	for _, o := range operands {
		found := huge(o)
		switch v := o.Value.(type) {
		case *ast.Array:
			found = v.Until(huge)
		case ast.Set:
			found = v.Until(huge)
		}
		if found {
			return "a number has too many digits"
		}
	}
	return ""
}

func tooLarge(number string) bool {
	digits, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(cmp.Or(exponent, "0"))
	return len(digits) > 2*maxExponent || err != nil || max(n, -n) > maxExponent
}

// hugeExponent is the exponent of a huge number in a text.
var hugeExponent = lazy.New(`[eE][+-]?[0-9]{4,}`)

// inUnits checks that a text is a number of a usual form.
func inUnits(operands []*ast.Term) string {
	if s, ok := operands[0].Value.(ast.String); ok && (len(s) > maxExponent || hugeExponent.MatchString(string(s))) {
		return "the text is not a number of a supported size"
	}
	return ""
}

// inPattern checks that the operand at that place is a regular expression of bounded length.
func inPattern(at int) callBound {
	return func(operands []*ast.Term) string {
		if s, ok := operands[at].Value.(ast.String); ok && len(s) > maxPattern {
			return fmt.Sprintf("the pattern is longer than %d KiB", maxPattern>>10)
		}
		return ""
	}
}

// inReplaced checks that a replacement at every place of the text does not make it too long.
func inReplaced(operands []*ast.Term) string {
	text, _ := operands[0].Value.(ast.String)
	replacement, _ := operands[2].Value.(ast.String)
	return boundProduct(len(text)+1, len(replacement)+1)
}

func boundProduct(a, b int) string {
	if a > 16*maxCallBytes/b {
		return fmt.Sprintf("it could make more than %d MiB", 16*maxCallBytes>>20)
	}
	return ""
}

// widths are numbers in a format: "%1000d", "%.1000f".
var widths = lazy.New(`[0-9]{3,}|\*`)

// inFormat checks that a format has no wide fields and does not repeat long texts.
func inFormat(operands []*ast.Term) string {
	format, ok := operands[0].Value.(ast.String)
	if !ok {
		return ""
	}
	for _, verb := range strings.Split(string(format), "%")[1:] {
		if end := strings.IndexAny(verb, "bcdefgoqstvxEGOTUX"); end >= 0 && widths.MatchString(verb[:end]) {
			return "a field is wider than 99 characters"
		}
	}
	verbs := 1 + strings.Count(string(format), "%")
	return boundProduct(verbs, maxCallBytes-measure(operands[1].Value, maxCallBytes)+1)
}
