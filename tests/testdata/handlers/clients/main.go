// Handlers that use packages for HTTP, the time zones and the files of a handler.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/go-resty/resty/v2"
	"github.com/google/go-github/v66/github"
	"github.com/hashicorp/go-retryablehttp"

	runner "runner.example/sdk/go"
	"runner.example/sdk/go/runnerhttp"
)

func main() {}

// handlers are the parts of the one handler, by the parameter.
var handlers = map[string]func(origin string) (any, error){
	"standard": standard, "resty": withResty, "retryable": withRetries, "github": withGithub, "timeout": tooLate, "denied": denied,
	"machine": machine,
}

//go:wasmexport ask
func exportAsk() {
	runner.Handle(func(_ *runner.Context, req *runner.Request) (runner.Response, error) {
		answer, err := handlers[req.Param("with")](string(req.RawBody()))
		return runner.OK(answer), err
	})
}

// standard follows a redirect and keeps a cookie.
func standard(origin string) (any, error) {
	response, err := http.Post(origin+"/moved", "text/plain", http.NoBody)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.Status, " ", response.Request.URL.Path, " ", response.Header.Get("X-Was"), " ", string(body)), err
}

func withResty(origin string) (any, error) {
	var got struct{ Name string }
	response, err := resty.NewWithClient(runnerhttp.Client()).R().SetBody(map[string]string{"name": "ada"}).SetResult(&got).Put(origin + "/echo")
	if err != nil {
		return nil, err
	}
	return fmt.Sprint(response.StatusCode(), " ", got.Name), nil
}

// withRetries is answered 503 the first time.
func withRetries(origin string) (any, error) {
	client := retryablehttp.NewClient()
	client.HTTPClient, client.Logger, client.RetryWaitMin = runnerhttp.Client(), nil, time.Millisecond
	response, err := client.Get(origin + "/unstable")
	if err != nil {
		return nil, err
	}
	return response.Status, response.Body.Close()
}

// withGithub uses http.DefaultTransport.
func withGithub(origin string) (any, error) {
	client := github.NewClient(nil).WithAuthToken("token")
	var err error
	if client.BaseURL, err = url.Parse(origin + "/"); err != nil {
		return nil, err
	}
	repository, _, err := client.Repositories.Get(context.Background(), "a", "b")
	return repository.GetFullName(), err
}

func tooLate(origin string) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/slow", nil)
	if err != nil {
		return nil, err
	}
	_, err = http.DefaultClient.Do(request)
	var timeout interface{ Timeout() bool }
	return fmt.Sprint(errors.Is(err, context.DeadlineExceeded), " ", errors.As(err, &timeout) && timeout.Timeout()), nil
}

func denied(string) (any, error) {
	_, err := http.Get("https://example.com/")
	var failure *runner.HostError
	return errors.As(err, &failure) && failure.Code == "denied", nil
}

func machine(string) (any, error) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		return nil, err
	}
	_, absent := os.Open("config.json")
	_, deep := os.ReadFile("/etc/passwd")
	_, none := time.LoadLocation("Mars/Base")
	entries, err := os.ReadDir("/")
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return fmt.Sprint(time.Unix(0, 0).In(zone).Format(time.RFC3339), " ", errors.Is(absent, fs.ErrNotExist), errors.Is(deep, fs.ErrNotExist), none != nil, names), err
}
