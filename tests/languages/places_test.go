package languages_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// places builds and serves the C example, and returns tokens of its two scopes.
func places(t *testing.T) (s *harness.Server, editor, reader string) {
	t.Helper()
	a := harness.NewApp(t, "", "")
	if err := os.Remove(a.Path("app.schema")); err != nil {
		t.Fatal(err)
	}
	example := harness.RepoFile("plugins/examples/places")
	if err := os.CopyFS(a.Path("handlers"), os.DirFS(filepath.Join(example, "handlers"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(example, "places.schema"))
	if err != nil {
		t.Fatal(err)
	}
	a.Write("places.schema", strings.Replace(string(text), "rateLimit: 600/minute", "rateLimit: none", 1))
	a.Must("build")
	s = a.Serve()
	return s, a.Token("places_edit"), a.Token("places_read")
}

type place struct {
	ID, Name     string
	Lat, Lon, KM float64
}

func TestAnAppInCServes(t *testing.T) {
	s, editor, reader := places(t)
	made := s.Matches(201, `\{"id":"[0-9a-z]{26}","name":"Skagen","lat":57.64911,"lon":10.40744,"cell":"u4pruydqq"\}`,
		"POST", "/v1/places", `{"name":"Skagen","lat":57.64911,"lon":10.40744}`, editor)
	at := made.Header.Get("Location")
	s.Matches(200, `\{.*"name":"Skagen".*\}`, "GET", at, "", reader)
	s.Matches(200, `\[\{"id":"[^"]+","name":"Skagen","lat":57.64911,"lon":10.40744,"km":0.4\d*\}\]`, "GET", "/v1/places/near?lat=57.65&lon=10.40", "", reader)
	s.Matches(400, `.*"code":"invalid_input".*`, "POST", "/v1/places", `{"name":"nowhere"}`, editor)
	s.Matches(403, `.*`, "POST", "/v1/places", `{"name":"x","lat":1,"lon":1}`, reader)
	s.Matches(400, `.*"detail":"lat and lon must be degrees".*`, "GET", "/v1/places/near?lat=91&lon=0", "", reader)
	s.Matches(400, `.*"detail":"km must be from 0 to 1000".*`, "GET", "/v1/places/near?lat=1&lon=0&km=1e9", "", reader)
	s.Matches(204, "", "DELETE", at, "", editor)
	s.Matches(404, `.*`, "GET", at, "", reader)
	s.Matches(404, `.*`, "DELETE", at, "", editor)
}

// Around points on the whole earth, with the poles and the date line, the search finds the
// same places as a comparison with all of them.
func TestEveryNearbyPlaceIsFound(t *testing.T) {
	s, editor, reader := places(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	centres := [][2]float64{{52.5, 13.4}, {0, 0}, {-33.9, 180}, {10, -179.999}, {89.9, 20}, {-90, 0}, {66, 45}}
	var all []place
	for i := range 210 {
		centre := centres[i%len(centres)]
		reach := math.Pow(10, 2-3*random.Float64()) / 10 // degrees
		lat := max(-90, min(90, centre[0]+reach*(2*random.Float64()-1)))
		lon := math.Remainder(centre[1]+reach*(2*random.Float64()-1), 360)
		all = append(all, place{Name: fmt.Sprint("p", i), Lat: lat, Lon: lon})
		body, err := json.Marshal(map[string]any{"name": all[i].Name, "lat": lat, "lon": lon})
		if err != nil {
			t.Fatal(err)
		}
		s.Matches(201, `.*`, "POST", "/v1/places", string(body), editor)
	}
	found := 0
	for _, centre := range centres {
		for _, km := range []float64{0.5, 7, 90, 1000} {
			got := s.Matches(200, `.*`, "GET", fmt.Sprintf("/v1/places/near?lat=%v&lon=%v&km=%v", centre[0], centre[1], km), "", reader)
			var near []place
			if err := json.Unmarshal([]byte(got.Body), &near); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, p := range all {
				if distance(centre[0], centre[1], p.Lat, p.Lon) <= km {
					want = append(want, p.Name)
				}
			}
			var names []string
			for _, p := range near {
				names = append(names, p.Name)
			}
			if !slices.IsSortedFunc(near, func(a, b place) int { return int(math.Copysign(1, a.KM-b.KM)) }) && len(near) > 1 {
				t.Errorf("within %v km of %v: not the nearest first: %v", km, centre, near)
			}
			slices.Sort(names)
			slices.Sort(want)
			if !slices.Equal(names, want) {
				t.Errorf("within %v km of %v there are %v, want %v", km, centre, names, want)
			}
			found += len(names)
		}
	}
	if found < 300 {
		t.Errorf("only %d were found in all: the test looks at nothing", found)
	}
}

// distance is the distance of two points on a sphere of the earth's size, in km.
func distance(lat1, lon1, lat2, lon2 float64) float64 {
	vector := func(lat, lon float64) [3]float64 {
		lat, lon = lat*math.Pi/180, lon*math.Pi/180
		return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
	}
	a, b := vector(lat1, lon1), vector(lat2, lon2)
	chord := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
	return 2 * 6371 * math.Asin(min(1, chord/2))
}
