package work

import (
	"bytes"
	"html/template"
)

type item struct {
	ID    int
	Name  string
	State string
	Qty   int
	Price float64
}

func items() (all []item) {
	next := random()
	names := []string{`Lamp "Brass" & shade`, "Table <oak>", "Chair of the dining room", "Joiner's bench"}
	states := []string{"new", "used"}
	for i := range 200 {
		all = append(all, item{i + 1, names[next(4)], states[next(2)], next(50), float64(next(100000)) / 100})
	}
	return all
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<title>{{.Title}}</title>
<table>
{{range .Items}}<tr class="{{.State}}"><td>{{.ID}}</td><td>{{.Name}}</td><td>{{.Qty}}</td><td>{{printf "%.2f" .Price}}</td></tr>
{{end}}</table>
`))

// Table renders rows as HTML.
func Table() ([]byte, error) {
	var out bytes.Buffer
	err := page.Execute(&out, struct {
		Title string
		Items []item
	}{"Stock & prices", items()})
	return out.Bytes(), err
}
