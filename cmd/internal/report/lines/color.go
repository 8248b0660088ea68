package lines

// Color is a colour of text: the parameters of Select Graphic Rendition (ECMA-48, 8.3.117).
type Color string

// The colours that a report uses.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "1;31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)
