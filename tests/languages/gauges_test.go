package languages_test

import (
	"encoding/xml"
	"math"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

func TestAnAppInAssemblyScriptServes(t *testing.T) {
	a := harness.ExampleApp(t, "gauges")
	s := a.Serve()
	sensor, viewer := "X-API-Key: "+a.Token("sensor"), "X-API-Key: "+a.Token("viewer")
	for _, value := range []string{"20.5", "-3e-1", "7", "21"} {
		s.Want(204, nil, "POST", "/v1/gauges/a%26b/readings", `{"value":`+value+`}`, sensor)
		harness.NextMillisecond() // two readings must not have the same time
	}
	var sum struct {
		Count                                      int
		Last, Least, Most, Mean, Median, Deviation float64
	}
	s.Want(200, &sum, "GET", "/v1/gauges/a%26b", "", viewer)
	if sum.Count != 4 || sum.Last != 21 || sum.Least != -0.3 || sum.Most != 21 || math.Abs(sum.Mean-12.05) > 1e-9 ||
		sum.Median != 13.75 || math.Abs(sum.Deviation-9.0765) > 1e-4 {
		t.Errorf("their summary is %+v", sum)
	}
	s.Want(200, &sum, "GET", "/v1/gauges/a%26b?last=1", "", viewer)
	if sum.Count != 1 || sum.Mean != 21 || sum.Deviation != 0 {
		t.Errorf("the summary of the newest one is %+v", sum)
	}
	for _, last := range []string{"0", "1001", "x", "1.5", "", "-1", "1e2", "99999999999"} {
		s.Want(400, nil, "GET", "/v1/gauges/a%26b?last="+last, "", viewer)
	}
	s.Want(404, nil, "GET", "/v1/gauges/none", "", viewer)
	s.Want(400, nil, "POST", "/v1/gauges/a/readings", `{"value":"much"}`, sensor)
	if got := s.Want(400, nil, "POST", "/v1/gauges/"+strings.Repeat("x", 41)+"/readings", `{"value":1}`, sensor); !strings.Contains(got.Body, "at most 40") {
		t.Errorf("a name that is too long: %s", got.Body)
	}
	s.Want(403, nil, "GET", "/v1/gauges/a%26b", "", sensor)

	got := s.Do("GET", "/v1/gauges/a%26b/line", "", viewer)
	var picture struct {
		Title    string `xml:"title"`
		Polyline struct {
			Points string `xml:"points,attr"`
		} `xml:"polyline"`
	}
	if err := xml.Unmarshal([]byte(got.Body), &picture); err != nil || got.Header.Get("Content-Type") != "image/svg+xml" {
		t.Fatalf("%d %q %s: %v", got.Status, got.Header.Get("Content-Type"), got.Body, err)
	}
	if want := "4,5.2 81.3,56 158.7,38.2 236,4"; picture.Title != "a&b" || picture.Polyline.Points != want {
		t.Errorf("the picture is %+v, want the points %s", picture, want)
	}
}
